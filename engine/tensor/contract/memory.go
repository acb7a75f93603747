package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// arenas tests that memory is aligned to 64 bytes and does not overlap, and that Reset
// yields the same memory again.
func arenas(b *bench) {
	d := b.devices[judged]
	for _, bytes := range []int{0, 1, 1 << 12, 1 << 20} {
		b.try(fmt.Sprintf("%d bytes at first", bytes), func() {
			a, err := d.NewArena(bytes)
			if err != nil {
				b.fault("%v", err)
				return
			}
			defer a.Close()
			if a.Bytes() < bytes {
				b.fault("it holds %d bytes", a.Bytes())
			}
			var before []tensor.Matrix
			for range 3 {
				ms := b.handOut(a)
				if before == nil {
					before = ms
				}
				a.Reset()
			}
			held := a.Bytes()
			for range 5 {
				b.handOut(a)
				a.Reset()
			}
			if a.Bytes() != held {
				b.fault("it grew from %d to %d bytes with the same matrices", held, a.Bytes())
			}
			if again := a.Alloc(tensor.F32, 1, 1); bytes == 1<<20 && again.Base() != before[0].Base() {
				b.fault("after Reset it hands out other memory")
			}
		})
	}
}

// handOut fills matrices of all types and sizes, and reads them when all are full.
func (b *bench) handOut(a tensor.Arena) []tensor.Matrix {
	d := b.devices[judged]
	var ms []tensor.Matrix
	for i, size := range append([]int{0}, ragged...) {
		for j, t := range []tensor.Type{d.Type(), tensor.BF16, tensor.I32, tensor.F32} {
			m := a.Alloc(t, size, (size+i*j)%97)
			if m.Rows != size || m.Cols != (size+i*j)%97 || m.Stride != m.Cols || m.Type != t {
				b.fault("asked for %d x %d of %s, got %s", size, (size+i*j)%97, t, describe(m))
			}
			if uintptr(m.Base())%64 != 0 {
				b.fault("%s starts at %p, which is no multiple of 64", describe(m), m.Base())
			}
			ms = append(ms, m)
		}
	}
	for i, m := range ms {
		d.Write(m, repeated(float64(i), m.Rows*m.Cols))
	}
	for i, m := range ms {
		x := make([]float64, m.Rows*m.Cols)
		d.Read(x, m)
		for _, v := range x {
			if v != float64(i) {
				b.fault("%s shares memory with another", describe(m))
				return ms
			}
		}
	}
	return ms
}

func repeated(v float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// special are numbers that conversions get wrong: those between two BF16 numbers, at its
// limits, and NaN.
var special = []float64{
	0, math.Copysign(0, -1), 1, -1, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-7, -1 - 0x1p-8,
	1 + 0x1p-23, 3e38, -3e38, math.MaxFloat32, 0x1.fep127, 0x1.ffp127, 1e-40, -1e-45, 0x1p-126, 0x1p-133, 0x1p-134,
	math.Inf(1), math.Inf(-1), math.NaN(), 65504, 1.0 / 3,
}

// conversions tests that writes and reads are exact in F32.
func conversions(b *bench) {
	for _, t := range []tensor.Type{b.native(), tensor.F32, tensor.BF16, tensor.I32} {
		for range 20 {
			rows, cols := b.size(), b.size()
			x := b.wild(rows*cols, 1e30)
			for i := range x {
				switch {
				case t == tensor.I32:
					x[i] = float64(b.below(1<<24) - 1<<23)
				case b.below(4) == 0:
					x[i] = float64(float32(special[b.below(len(special))]))
				}
			}
			b.try(fmt.Sprintf("Write and Read, %d x %d of %s", rows, cols, t), func() {
				o, o32 := b.out("m", t, rows, cols), b.out("m of Write32", t, rows, cols)
				o.exact, o32.exact = true, true
				x32 := make([]float32, len(x))
				for i := range x {
					x32[i] = float32(x[i])
				}
				b.both(func(s side) {
					s.Write(s.of(o), x)
					s.Write32(s.of(o32), x32)
				})
				back := make([]float32, len(x))
				b.devices[judged].Read32(back, o32.view[judged])
				want := make([]float64, len(x))
				b.devices[right].Read(want, o32.view[right])
				for i := range back {
					if back[i] != float32(want[i]) && !math.IsNaN(want[i]) {
						b.fault("Read32 returns %g for element %d, want %g", back[i], i, want[i])
						return
					}
				}
			})
		}
	}
}

func zeros(b *bench) {
	for _, t := range []tensor.Type{b.native(), tensor.BF16, tensor.I32} {
		for range 20 {
			rows, cols := b.size(), b.size()
			b.try(fmt.Sprintf("Zero, %d x %d of %s", rows, cols, t), func() {
				m := b.out("m", t, rows, cols)
				m.exact = true
				b.both(func(s side) { s.Zero(s.of(m)) })
			})
		}
	}
}
