package edges

// dotGeneric is the product of x and a for each element of y, head by head.
func dotGeneric(y, x, a []float32) {
	width := len(x) / len(y)
	for h := range y {
		a := a[h*width:][:width]
		sum := float32(0)
		for j, v := range x[h*width:][:width] {
			sum += v * a[j]
		}
		y[h] = sum
	}
}

func productsGeneric(to []float32, toStride, heads int, a, x []float32, xStride int, indices []int32) {
	for i, s := range indices {
		dotGeneric(to[i*toStride:][:heads], x[int(s)*xStride:][:len(a)], a)
	}
}

func leakyProductsGeneric(to []float32, heads int, a, x []float32, xStride int, indices []int32, add []float32, slope float32) {
	width := len(a) / heads
	for i, s := range indices {
		x := x[int(s)*xStride:][:len(a)]
		for h := range heads {
			sum := float32(0)
			for j := h * width; j < (h+1)*width; j++ {
				sum += a[j] * leaky(x[j]+add[j], slope)
			}
			to[i*heads+h] = sum
		}
	}
}

// leakyBackGeneric is the way back from leaky(source + add), multiplied with a head by
// head, whose gradients are given for each entry, stride after the one before. It
// adds to what add gets and to what a gets.
func leakyBackGeneric(dadd, da, a, x []float32, xStride int, indices []int32, add, grads []float32, stride, heads int, slope float32) {
	width := len(a) / heads
	for i, s := range indices {
		x := x[int(s)*xStride:][:len(a)]
		for h, d := range grads[i*stride:][:heads] {
			for j := h * width; j < (h+1)*width; j++ {
				z := x[j] + add[j]
				step := d * steep(z, slope)
				da[j] += step * z
				dadd[j] += step * a[j]
			}
		}
	}
}
