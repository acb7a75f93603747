package gemm

import "unsafe"

// The kernels in Go. A block of 4 rows and 4 columns has its sums in registers.
var generic = kernels{transpose: genericTranspose, add: genericAdd, widths: []width{
	{4, []kernel{
		{4, genericSweep(4, false), genericSweep(4, true)},
		{1, genericSweep(1, false), genericSweep(1, true)},
	}},
}}

func genericSweep(rows int, byColumns bool) sweep {
	return func(a *float32, lda int, b *float32, ldb, nextB int, c *float32, ldc, k, blocks, panels, last int, add bool) {
		row, step := lda, 1
		if byColumns {
			row, step = 1, lda
		}
		for block := range blocks {
			for panel := range panels {
				columns := 4
				if panel == panels-1 {
					columns = last
				}
				t := tile{
					a: offset(a, block*rows*row), row: row, step: step,
					b: offset(b, panel*nextB), ldb: ldb,
					c: offset(c, block*rows*ldc+panel*4), ldc: ldc,
				}
				if rows == 4 && columns == 4 {
					t.fourByFour(k, add)
				} else {
					t.ragged(k, rows, columns, add)
				}
			}
		}
	}
}

// offset returns the address n elements after p.
func offset(p *float32, n int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), n*4))
}

// A tile is one block of rows times one panel. Element (i, k) of a is a[i*row+k*step].
type tile struct {
	a, b, c   *float32
	row, step int
	ldb, ldc  int
}

func (t *tile) ragged(k, rows, columns int, add bool) {
	for i := range rows {
		for j := range columns {
			c := offset(t.c, i*t.ldc+j)
			var sum float32
			if add {
				sum = *c
			}
			for l := range k {
				sum += *offset(t.a, i*t.row+l*t.step) * *offset(t.b, l*t.ldb+j)
			}
			*c = sum
		}
	}
}

func (t *tile) fourByFour(k int, add bool) {
	var s [4][4]float32
	if add {
		for i := range s {
			s[i] = *(*[4]float32)(unsafe.Pointer(offset(t.c, i*t.ldc)))
		}
	}
	for l := range k {
		b := (*[4]float32)(unsafe.Pointer(offset(t.b, l*t.ldb)))
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		for i := range s {
			a := *offset(t.a, i*t.row+l*t.step)
			s[i][0] += a * b0
			s[i][1] += a * b1
			s[i][2] += a * b2
			s[i][3] += a * b3
		}
	}
	for i := range s {
		*(*[4]float32)(unsafe.Pointer(offset(t.c, i*t.ldc))) = s[i]
	}
}

func genericTranspose(to *float32, w int, from *float32, stride, blocks int) {
	for j := range 8 {
		for k := range 8 * blocks {
			*offset(to, k*w+j) = *offset(from, j*stride+k)
		}
	}
}

func genericAdd(to, from *float32, n int) {
	sums := unsafe.Slice(to, n)
	for i, v := range unsafe.Slice(from, n) {
		sums[i] += v
	}
}
