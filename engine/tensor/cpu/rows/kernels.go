package rows

// A finisher applies bias, activation and dropout to some rows; strides are in bytes.
type finisher func(y, x *float32, yStride, xStride, rows, cols int, bias *float32, vertices *uint32, key uint64, threshold uint32, scale float32)

// A backer computes the gradient of a finisher.
type backer func(dx, dy, y *float32, dxStride, dyStride, yStride, rows, cols int, sums *float32, vertices *uint32, key uint64, threshold uint32, scale, unscale float32)

// assembly holds a family's assembly kernels. Where one is nil a Go loop is used. n is
// never 0, except if rows have no columns; then any address is allowed.
type assembly struct {
	finish [3][2][2]finisher // by activation, bias, dropout; nil for plain copies
	back   [3][2][2]backer   // by activation, dropout, sums; nil for plain copies

	add      func(y, x *float32, n int)
	addUp    func(sums, x *float32, stride, rows, n int) // stride in bytes, rows not 0
	scale    func(y, x *float32, n int, by float32)
	combine  func(y, a, b *float32, n int, alpha, beta float32)
	max      func(y *float32, which *int32, x *float32, n int, index int32)
	maxBack  func(dx, dy *float32, which *int32, n int, index int32)
	exp      func(y, x *float32, n int, less float32)
	finite   func(x *float32, n int) bool
	narrow   func(y *uint16, x *float32, n int) // n is a multiple of 16
	norm     func(y, x, gamma, beta, stats *float32, n int, epsilon float32)
	normBack func(dx, dgamma, dbeta, dy, x, gamma *float32, n int, mean, inverse float32)
	sum      func(x *float32, n int) float32
	largest  func(x *float32, n int) float32
	binary   func(y, x *float32, n int, by float32) float32
	adam     func(w, g, m, v, rule *float32, n int)
	sgd      [2]func(w, g, m *float32, n int, rate, momentum, decay float32) // by momentum
	drop     func(to, from *float32, columns *int32, n int, key uint64, threshold uint32, scale float32)
}

// kernels are the kernels of this process.
var kernels = choose()
