//go:build cuda

package main

import (
	"errors"
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/cuda/device"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// table is one device with what is timed on it.
type table struct {
	*device.Device
	m     measure
	arena tensor.Arena
	draws *rand.Rand
}

// timeKernels times the copies, and the kernels that are compared with them and with
// cuBLAS.
func timeKernels(m measure) (err error) {
	if err := timeCopies(m); err != nil {
		return err
	}
	d, err := device.Open(0, device.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	arena, err := d.NewArena(0)
	if err != nil {
		return err
	}
	defer arena.Close()
	t := &table{d, m, arena, rand.New(rand.NewPCG(1, 1))}
	return errors.Join(t.sums(), t.products())
}

// random returns a matrix of random numbers.
func (t *table) random(rows, cols int) tensor.Matrix {
	m := t.arena.Alloc(tensor.F32, rows, cols)
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = t.draws.Float32() - 0.5
	}
	t.Write32(m, x)
	return m
}

// median returns the median milliseconds of one operation, after a warm-up.
func (t *table) median(operation func()) (float64, error) {
	operation()
	var all []float64
	for range t.m.rounds {
		took, err := t.Time(func() {
			for range t.m.each {
				operation()
			}
		})
		if err != nil {
			return 0, err
		}
		all = append(all, took.Seconds()*1e3/float64(t.m.each))
	}
	return stats.Median(all), nil
}

// sums times the mean over neighbours, forward and backward. A row counts as often as it
// is read.
func (t *table) sums() error {
	m := t.m
	g := block(m, t.draws)
	for _, cols := range []int{m.columns, m.hidden} {
		t.arena.Reset()
		x, y := t.random(m.inputs, cols), t.random(m.targets, cols)
		dx := t.arena.Alloc(tensor.F32, m.inputs, cols)
		bytes := float64(4 * (g.Entries()*(cols+1) + m.targets*cols))
		ms, err := t.median(func() { t.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil) })
		if err != nil {
			return err
		}
		back, err := t.median(func() { t.AggregateBack(dx, g, tensor.Matrix{}, y, tensor.Mean, false) })
		if err != nil {
			return err
		}
		name := "mean of features"
		if cols == m.hidden {
			name = "mean of hidden rows"
		}
		figure(name+", ours", bytes/ms/1e6, "GB/s")
		bytes = float64(4 * (g.Entries()*(cols+2) + m.inputs*cols))
		figure(name+", back, ours", bytes/back/1e6, "GB/s")
	}
	return nil
}

// block returns a block like the outermost one of a mini-batch, with random sources.
func block(m measure, draws *rand.Rand) *tensor.CSR {
	n := m.targets * m.fanout
	g := &tensor.CSR{Rows: m.targets, Cols: m.inputs, Indptr: make([]int64, m.targets+1), Indices: make([]int32, n), Stamp: tensor.NewStamp()}
	t := &tensor.Transpose{Indptr: make([]int64, m.inputs+1), Rows: make([]int32, n), Edges: make([]int32, n)}
	for r := range m.targets {
		g.Indptr[r+1] = int64((r + 1) * m.fanout)
	}
	for i := range g.Indices {
		g.Indices[i] = int32(draws.IntN(m.inputs))
		t.Indptr[g.Indices[i]+1]++
	}
	for c := range m.inputs {
		t.Indptr[c+1] += t.Indptr[c]
	}
	next := append([]int64{}, t.Indptr...)
	for i, c := range g.Indices {
		t.Rows[next[c]], t.Edges[next[c]] = int32(i/m.fanout), int32(i)
		next[c]++
	}
	g.Transposed = t
	return g
}

// products times the matrix products of a step: forward, and the gradients of weights and
// inputs. theirs.py uses the same names.
func (t *table) products() error {
	n, in, out := t.m.targets, 2*t.m.columns, t.m.hidden
	for _, c := range []struct {
		name    string
		shape   tensor.Shape
		m, n, k int
	}{
		{"product forwards", tensor.NN, n, out, in},
		{"product of hidden rows", tensor.NN, n, out, out},
		{"product for weights", tensor.TN, in, out, n},
		{"product for inputs", tensor.NT, n, out, out},
	} {
		t.arena.Reset()
		a, b := t.random(c.m, c.k), t.random(c.k, c.n)
		switch c.shape {
		case tensor.TN:
			a = t.random(c.k, c.m)
		case tensor.NT:
			b = t.random(c.n, c.k)
		}
		y := t.arena.Alloc(tensor.F32, c.m, c.n)
		ms, err := t.median(func() { t.MatMul(y, a, b, c.shape, false, nil) })
		if err != nil {
			return err
		}
		figure(c.name+", ours", 2*float64(c.m)*float64(c.n)*float64(c.k)/ms/1e9, "TFLOP/s")
	}
	return nil
}
