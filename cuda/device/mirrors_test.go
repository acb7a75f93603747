//go:build cuda && emulator

package device

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A copy is used as long as its stamp stays, and made anew for another, or none.
func TestMirrorsFollowStamps(t *testing.T) {
	d := opened(t, Options{})
	x, y := matrix(t, d, 3, 1, func(i int) float32 { return float32(10 * i) }), matrix(t, d, 2, 1, nil)
	g := &tensor.CSR{Rows: 2, Cols: 3, Indptr: []int64{0, 1, 2}, Indices: []int32{0, 1}, Values: []float32{1, 1}, Stamp: tensor.NewStamp()}
	sum := func(of *tensor.CSR) [2]float32 {
		d.Aggregate(y, of, tensor.Matrix{}, x, tensor.Sum, false, nil)
		got := numbers(d, y)
		return [2]float32{got[0], got[1]}
	}
	if got := sum(g); got != [2]float32{0, 10} {
		t.Errorf("got %v", got)
	}
	g.Indices[0] = 2
	if got := sum(g); got != [2]float32{0, 10} {
		t.Errorf("with the same stamp: got %v", got)
	}
	g.Stamp = tensor.NewStamp()
	if got := sum(g); got != [2]float32{20, 10} {
		t.Errorf("with another stamp: got %v", got)
	}
	g.Stamp = 0
	for i := range int32(3) {
		g.Indices[1] = i
		if got := sum(g); got != [2]float32{20, float32(10 * i)} {
			t.Errorf("without a stamp: got %v", got)
		}
	}
	// Both ways of one stamp are copies of their own.
	g.Transposed = &tensor.Transpose{Indptr: []int64{0, 0, 0, 2}, Rows: []int32{0, 1}, Edges: []int32{0, 1}}
	g.Stamp = tensor.NewStamp()
	dx, dy := matrix(t, d, 3, 1, nil), matrix(t, d, 2, 1, func(i int) float32 { return float32(1 + i) })
	sum(g)
	d.AggregateBack(dx, g, tensor.Matrix{}, dy, tensor.Sum, false)
	if got := numbers(d, dx); got[0] != 0 || got[1] != 0 || got[2] != 3 {
		t.Errorf("back: got %v", got)
	}
}

// Blocks with a new stamp each step take the memory of old ones: after a while no
// memory is taken any more, and there are no more copies than are allowed.
func TestMirrorsAreReused(t *testing.T) {
	d := opened(t, Options{})
	x, y := matrix(t, d, 1, 1, func(int) float32 { return 1 }), matrix(t, d, 700, 1, nil)
	held := 0
	for step := range 120 {
		for _, rows := range []int{5 + step%7, 100 + 2*(step%11), 390 + step%50} {
			d.Aggregate(y.RowRange(0, rows), star(rows, tensor.NewStamp()), tensor.Matrix{}, x, tensor.Sum, false, nil)
		}
		if step == 80 {
			held = d.mirrors.bytes
		}
	}
	if len(d.mirrors.kept) > mostMirrors || d.mirrors.bytes != held {
		t.Errorf("%d copies, %d bytes, and %d some steps before", len(d.mirrors.kept), d.mirrors.bytes, held)
	}
	// With little memory, copies go before there are many.
	d.mirrors.most = 20 << 10
	for step := range 20 {
		rows := 100 + 200*step%600
		d.Aggregate(y.RowRange(0, rows), star(rows, tensor.NewStamp()), tensor.Matrix{}, x, tensor.Sum, false, nil)
		if got := numbers(d, y.RowRange(0, rows)); got[0] != 1 || got[rows-1] != 1 {
			t.Fatalf("got %v and %v", got[0], got[rows-1])
		}
	}
	if d.mirrors.bytes > 20<<10 {
		t.Errorf("%d bytes are kept", d.mirrors.bytes)
	}
}

// What operations are given may be changed when they return, however much it is: the
// pinned memory is gone round several times, and not used before it was copied.
func TestStagingKeepsWhatItWasGiven(t *testing.T) {
	const n, rows, cols = 30, 100, 1000
	d := opened(t, Options{})
	m := matrix(t, d, n*rows, cols, nil)
	list := make([]float32, rows*cols)
	for i := range n {
		for j := range list {
			list[j] = float32(i*len(list) + j)
		}
		d.Write32(m.RowRange(i*rows, rows), list)
	}
	clear(list)
	for i, v := range numbers(d, m) {
		if v != float32(i) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	// Rows with gaps go by way of others, so many at a time.
	v := m.View(0, 6*rows, 1, cols-2)
	got := numbers(d, v)
	for i := range got {
		if want := float32(i/v.Cols*cols + i%v.Cols + 1); got[i] != want {
			t.Fatalf("with gaps: element %d is %v, want %v", i, got[i], want)
		}
		got[i]++
	}
	d.Write32(v, got)
	for i, v := range numbers(d, m.RowRange(0, 6*rows)) {
		want := float32(i)
		if c := i % cols; c > 0 && c < cols-1 {
			want++
		}
		if v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}

// Scratch that is too small in the middle of an operation stays until that is done.
func TestScratchGrows(t *testing.T) {
	const n = 100_000
	d := opened(t, Options{})
	x, y := matrix(t, d, n, 1, func(i int) float32 { return float32(i) }), matrix(t, d, n, 1, func(int) float32 { return 1 })
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(n - 1 - i)
	}
	for round := range 2 {
		d.ScatterAdd(y, x, rows)
		for i, v := range numbers(d, y) {
			if want := float32(1 + (round+1)*(n-1-i)); v != want {
				t.Fatalf("round %d: row %d is %v, want %v", round, i, v, want)
			}
		}
	}
	if n := len(d.scratch.small); n != 0 {
		t.Errorf("%d pieces that were too small are kept", n)
	}
}
