package edges

// dotGeneric computes the product of x and a for each element of y, head by head.
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

// leakyBackGeneric is the backward pass of leaky(source + add) times a, head by head;
// stride is the distance between the gradients of consecutive entries. It adds to the
// gradients of add and of a.
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
