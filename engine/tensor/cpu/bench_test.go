package cpu_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Each operation on matrices far larger than the caches, in turn with a copy of the
// same memory. Bytes are those that must be read and written; "x copy" is their rate
// over that of the copy.
func BenchmarkRows(b *testing.B) {
	const rows, cols = 60_000, 256
	d := cpu.New(0)
	defer d.Close()
	a, err := d.NewArena(6 * rows * cols * 4)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	r := rand.New(rand.NewPCG(1, 2))
	fresh := func(n, m int) tensor.Matrix {
		x := a.Alloc(tensor.F32, n, m)
		for i, f := 0, x.F32(); i < len(f); i++ {
			f[i] = float32(r.NormFloat64())
		}
		return x
	}
	x, y, z, w := fresh(rows, cols), fresh(rows, cols), fresh(rows, cols), fresh(rows, cols)
	half := a.Alloc(tensor.BF16, rows, cols)
	d.Combine(half, 1, x, 0, tensor.Matrix{})
	which := a.Alloc(tensor.I32, rows, cols)
	d.Max(y, which, x, 0, true)
	bias, gamma, sums, stats, scale := fresh(1, cols), fresh(1, cols), fresh(1, cols), fresh(rows, 2), fresh(rows, 1)
	ids, to := make([]uint32, rows), make([]int32, rows)
	vertices, labels := make([]uint32, rows), make([]int32, rows)
	for i, j := range r.Perm(rows) {
		ids[i], to[i], vertices[i], labels[i] = uint32(j), int32(j), r.Uint32(), int32(j%cols)
	}
	drop := tensor.Dropout{P: 0.5, Key: keyed.New(1, keyed.Dropout), Vertices: vertices}
	relu := &tensor.Epilogue{Bias: bias, Activation: tensor.ReLU}
	reluDrop := &tensor.Epilogue{Bias: bias, Activation: tensor.ReLU, Dropout: drop}
	elu := &tensor.Epilogue{Bias: bias, Activation: tensor.ELU}
	eluDrop := &tensor.Epilogue{Bias: bias, Activation: tensor.ELU, Dropout: drop}
	const one = rows * cols * 4
	none := tensor.Matrix{}
	flat := func(m tensor.Matrix) tensor.Matrix { return m.Reshape(1, rows*cols) }
	for _, c := range []struct {
		name  string
		bytes int
		run   func()
	}{
		{"ApplyReLU", 2 * one, func() { d.Apply(y, x, relu) }},
		{"ApplyReLUDrop", 2 * one, func() { d.Apply(y, x, reluDrop) }},
		{"ApplyELU", 2 * one, func() { d.Apply(y, x, elu) }},
		{"ApplyELUDrop", 2 * one, func() { d.Apply(y, x, eluDrop) }},
		{"ApplyInPlace", 2 * one, func() { d.Apply(z, z, reluDrop) }},
		{"BackReLU", 3 * one, func() { d.ApplyBack(z, sums, x, y, reluDrop) }},
		{"BackELUDrop", 3 * one, func() { d.ApplyBack(z, sums, x, y, eluDrop) }},
		{"BackInPlace", 3 * one, func() { d.ApplyBack(z, sums, z, y, reluDrop) }},
		{"Combine", 3 * one, func() { d.Combine(z, 1, x, 2, y) }},
		{"Widen", one * 3 / 2, func() { d.Combine(y, 1, half, 0, none) }},
		{"Narrow", one * 3 / 2, func() { d.Combine(half, 1, x, 0, none) }},
		{"GatherF32", 2 * one, func() { d.Gather(y, []tensor.Part{{X: x}}, ids) }},
		{"GatherBF16", one * 3 / 2, func() { d.Gather(y, []tensor.Part{{X: half}}, ids) }},
		{"ScatterAdd", 3 * one, func() { d.ScatterAdd(y, x, to) }},
		{"ScaleRows", 2 * one, func() { d.ScaleRows(y, x, scale) }},
		{"ColumnSums", one, func() { d.ColumnSums(sums, x) }},
		{"LayerNorm", 2 * one, func() { d.LayerNorm(y, stats, x, gamma, bias, &tensor.Epilogue{Activation: tensor.ReLU}) }},
		{"LayerNormBack", 3 * one, func() { d.LayerNormBack(z, sums, bias, y, x, stats, gamma) }},
		{"Max", 5 * one, func() { d.Max(y, which, x, 1, false) }},
		{"MaxBack", 3 * one, func() { d.MaxBack(z, y, which, 1) }},
		{"Finite", one, func() { d.Finite(x) }},
		{"Zero", one, func() { d.Zero(z) }},
		{"CrossEntropy", 2 * one, func() { d.CrossEntropy(z, x, labels, 1) }},
		{"BinaryCrossEntropy", 2 * one, func() { d.BinaryCrossEntropy(z, x, labels, 1) }},
		{"Adam", 7 * one, func() {
			d.Adam(flat(w), flat(x), flat(y), flat(z), tensor.AdamStep{Rate: 1e-3, Beta1: .9, Beta2: .999, Epsilon: 1e-8, Step: 5})
		}},
		{"SGD", 5 * one, func() { d.SGD(flat(w), flat(x), flat(y), tensor.SGDStep{Rate: 1e-3, Momentum: .9}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			d.Zero(z) // the second moment is not negative
			d.Combine(y, 1, x, 0, none)
			var ours, copies []float64
			for b.Loop() {
				start := time.Now()
				d.Combine(w, 1, x, 0, none)
				middle := time.Now()
				c.run()
				ours = append(ours, float64(c.bytes)/float64(time.Since(middle).Nanoseconds()))
				copies = append(copies, 2*one/float64(middle.Sub(start).Nanoseconds()))
			}
			fast := len(ours) * 9 / 10 // other programs slow down the rest
			slices.Sort(ours)
			slices.Sort(copies)
			b.ReportMetric(ours[fast], "GB/s")
			b.ReportMetric(ours[fast]/copies[fast], "x-copy")
			b.ReportMetric(copies[fast], "copy-GB/s")
		})
	}
}
