//go:build cuda && emulator

package device

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// wild is a graph of random edges, with hubs and vertices without any.
func wild(t *testing.T, vertices, most int, weighted bool) *sample.Topology {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(vertices), 3))
	s := &graph.Shard{Shards: 1, Vertices: vertices, Total: uint32(vertices), Indptr: []int64{0}}
	for v := range vertices {
		n := r.IntN(most) * (v % 5) / 4
		var row []int32
		for range n {
			row = append(row, int32(r.IntN(vertices)))
		}
		slices.Sort(row)
		for _, u := range slices.Compact(row) {
			s.Indices = append(s.Indices, u)
			if weighted {
				s.Weights = append(s.Weights, 0.5+r.Float32())
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	to, err := sample.NewTopology([]*graph.Shard{s})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Operations see in blocks that were drawn on the GPU what they see in the processor's,
// to the last bit, both ways, also when slots are used again.
func TestResidentBlocksAreTheProcessors(t *testing.T) {
	d := opened(t, Options{})
	l := lane(t, d)
	const vertices, cols = 400, 9
	for _, form := range []sample.Form{{}, {SelfLoops: true, Weighting: sample.Symmetric}} {
		whole := wild(t, vertices, 30, form.Weighting != sample.Ones)
		o := sample.Options{Fanouts: []int{6, 3}, Form: form, Seed: 5}
		r, err := l.Hold(whole, sample.ResidentOptions{Options: o})
		if err != nil {
			t.Fatal(err)
		}
		ours, want := sample.New(whole, o), &sample.Batch{}
		slots := [2]struct {
			batch        sample.Batch
			filled, done tensor.Mark
		}{}
		for i := range slots {
			var err1, err2 error
			slots[i].filled, err1 = l.NewMark()
			slots[i].done, err2 = d.NewMark()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
		}
		x := matrix(t, d, vertices, cols, func(i int) float32 { return float32(i%19) / 3 })
		for step := range 5 {
			s := &slots[step%len(slots)]
			roots := every(vertices, 90-20*(step/2))
			l.After(s.done)
			if err := r.Sample(&s.batch, 1, uint64(step), roots); err != nil {
				t.Fatal(err)
			}
			l.Mark(s.filled)
			d.After(s.filled)
			if err := ours.Sample(t.Context(), want, 1, uint64(step), roots); err != nil {
				t.Fatal(err)
			}
			for i := range want.Blocks {
				w, g := &want.Blocks[i], &s.batch.Blocks[i]
				w.Transpose()
				g.Transpose()
				if err := sameBlocks(t, d, w, g, x); err != nil {
					t.Errorf("%+v, step %d, block %d: %v", form, step, i, err)
				}
			}
			d.Mark(s.done)
		}
		for i := range slots {
			slots[i].batch.Close()
			slots[i].filled.Close()
			slots[i].done.Close()
		}
		r.Close()
	}
}

// A batch is drawn where another was only once what was computed of that is past the mark
// behind it, however late that is.
func TestResidentWaitsForTheStepBefore(t *testing.T) {
	d := opened(t, Options{})
	l := lane(t, d)
	const vertices, cols, steps = 400, 9, 6
	whole := wild(t, vertices, 30, false)
	o := sample.Options{Fanouts: []int{6}, Seed: 5}
	r, err := l.Hold(whole, sample.ResidentOptions{Options: o})
	filled, err1 := l.NewMark()
	done, err2 := d.NewMark()
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	x := matrix(t, d, vertices, cols, func(i int) float32 { return float32(i%19) / 3 })
	roots := every(vertices, 9)
	var late, want [steps]tensor.Matrix
	ours, host, b := sample.New(whole, o), [steps]sample.Batch{}, &sample.Batch{}
	for step := range steps {
		late[step], want[step] = matrix(t, d, len(roots), cols, nil), matrix(t, d, len(roots), cols, nil)
		if err := ours.Sample(t.Context(), &host[step], 1, uint64(step), roots); err != nil {
			t.Fatal(err)
		}
	}
	for step := range steps {
		l.After(done)
		if err := r.Sample(b, 1, uint64(step), roots); err != nil {
			t.Fatal(err)
		}
		l.Mark(filled)
		d.After(filled)
		d.Aggregate(late[step], &b.Blocks[0].CSR, tensor.Matrix{}, x.RowRange(0, b.Blocks[0].Cols), tensor.Sum, false, nil)
		d.Mark(done)
	}
	for step := range steps {
		block := &host[step].Blocks[0]
		d.Aggregate(want[step], &block.CSR, tensor.Matrix{}, x.RowRange(0, block.Cols), tensor.Sum, false, nil)
		if got, want := numbers(d, late[step]), numbers(d, want[step]); !slices.Equal(got, want) {
			t.Errorf("what was computed in step %d is of another batch", step)
		}
	}
	b.Close()
	r.Close()
	filled.Close()
	done.Close()
}

// sameBlocks says in what two blocks differ, by what operations make of them.
func sameBlocks(t *testing.T, d *Device, want, got *sample.Block, x tensor.Matrix) error {
	if got.Rows != want.Rows || got.Cols != want.Cols || got.Entries() != want.Entries() || got.Valued() != want.Valued() || !slices.Equal(got.Vertices, want.Vertices) {
		return fmt.Errorf("it is %d x %d with %d entries, want %d x %d with %d", got.Rows, got.Cols, got.Entries(), want.Rows, want.Cols, want.Entries())
	}
	if got.Indptr != nil || got.There == nil {
		return errors.New("its arrays are on the host")
	}
	from := x.RowRange(0, got.Cols)
	var all [2][]float32
	for i, g := range []*tensor.CSR{&want.CSR, &got.CSR} {
		y, dx := matrix(t, d, g.Rows, x.Cols, nil), matrix(t, d, g.Cols, x.Cols, nil)
		d.Aggregate(y, g, tensor.Matrix{}, from, tensor.Mean, false, nil)
		d.AggregateBack(dx, g, tensor.Matrix{}, y, tensor.Sum, false)
		all[i] = append(numbers(d, y), numbers(d, dx)...)
	}
	if !slices.Equal(all[0], all[1]) {
		return errors.New("what is aggregated along it differs")
	}
	return nil
}

// The outermost hop, added up as it is drawn, is to the last bit what its block gives,
// and its block says how many edges that took.
func TestResidentSums(t *testing.T) {
	d := opened(t, Options{})
	l := lane(t, d)
	const vertices, cols = 300, 21
	for _, form := range []sample.Form{{}, {SelfLoops: true, Weighting: sample.Symmetric}} {
		whole := wild(t, vertices, 25, false)
		o := sample.Options{Fanouts: []int{4, 7}, Form: form, Seed: 2}
		how := tensor.Mean
		if form.Weighting != sample.Ones {
			how = tensor.Sum
		}
		r, err := l.Hold(whole, sample.ResidentOptions{Options: o, Summed: true})
		if err != nil {
			t.Fatal(err)
		}
		filled, err := l.NewMark()
		if err != nil {
			t.Fatal(err)
		}
		roots := every(vertices, 17)
		b, want := &sample.Batch{}, &sample.Batch{}
		if err := errors.Join(r.Sample(b, 0, 3, roots), sample.New(whole, o).Sample(t.Context(), want, 0, 3, roots)); err != nil {
			t.Fatal(err)
		}
		outer, block := &want.Blocks[0], &b.Blocks[0]
		if block.Rows != outer.Rows || block.Cols != outer.Rows || block.Entries() != outer.Entries() || !slices.Equal(block.Vertices, outer.Vertices[:outer.Rows]) || len(b.Blocks) != 2 {
			t.Errorf("the block that is summed is %d x %d with %d entries, want %d rows with %d", block.Rows, block.Cols, block.Entries(), outer.Rows, outer.Entries())
		}
		x := matrix(t, d, vertices, cols, func(i int) float32 { return float32(i*7%23) / 5 })
		rows, y := matrix(t, d, outer.Cols, cols, nil), matrix(t, d, outer.Rows, cols, nil)
		d.Gather(rows, []tensor.Part{{X: x}}, outer.Vertices)
		d.Aggregate(y, &outer.CSR, tensor.Matrix{}, rows, how, false, nil)
		if err := d.Err(); err != nil {
			t.Fatal(err)
		}
		sums := matrix(t, d, outer.Rows, cols, nil)
		r.Sum(sums, b, x, how)
		l.Mark(filled)
		d.After(filled)
		if got, want := numbers(d, sums), numbers(d, y); !slices.Equal(got, want) {
			t.Errorf("%+v: the sums differ: %v, want %v", form, got[:cols], want[:cols])
		}
		filled.Close()
		b.Close()
		r.Close()
	}
}

// A step's part of a lane, and coming after it, take no memory of Go's.
func TestResidentAllocatesNothing(t *testing.T) {
	d := opened(t, Options{})
	l := lane(t, d)
	const vertices, cols = 300, 8
	r, err := l.Hold(wild(t, vertices, 20, false), sample.ResidentOptions{Options: sample.Options{Fanouts: []int{4, 3}}, Summed: true})
	host, err1 := l.HostArena(4 * vertices)
	filled, err2 := l.NewMark()
	done, err3 := d.NewMark()
	if err := errors.Join(err, err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	b, roots := &sample.Batch{}, every(vertices, 20)
	x, sums, there := matrix(t, d, vertices, cols, func(int) float32 { return 1 }), matrix(t, d, vertices, cols, nil), matrix(t, d, 1, vertices, nil)
	here := host.Alloc(tensor.F32, 1, vertices)
	step := uint64(0)
	one := func() {
		l.After(done)
		if err := r.Sample(b, 1, step, roots); err != nil {
			t.Fatal(err)
		}
		r.Sum(sums.RowRange(0, b.Blocks[0].Rows), b, x, tensor.Mean)
		l.Bring(there, here)
		l.Mark(filled)
		d.After(filled)
		d.Aggregate(sums.RowRange(0, b.Blocks[1].Rows), &b.Blocks[1].CSR, tensor.Matrix{}, x.RowRange(0, b.Blocks[1].Cols), tensor.Sum, false, nil)
		d.Mark(done)
		step++
	}
	for range 5 {
		one()
	}
	if n := testing.AllocsPerRun(10, one); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
	if err := errors.Join(d.Err(), l.Err()); err != nil {
		t.Fatal(err)
	}
	b.Close()
	r.Close()
	filled.Close()
	done.Close()
	host.Close()
}

// What goes wrong in a lane is told by those that come after it.
func TestLanesTellOfFaults(t *testing.T) {
	d, err := Open(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l, err := d.Lane()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, err := l.NewMark()
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	_, total := d.Free()
	a.Alloc(tensor.F32, int(total)/1024, 1024) // which can't be had
	l.Mark(m)
	if err := d.Err(); err != nil {
		t.Fatalf("before it comes after the lane: %v", err)
	}
	d.After(m)
	if err := d.Err(); err == nil || !errors.Is(err, l.Err()) {
		t.Errorf("got %v, and the lane has %v", err, l.Err())
	}
}

func lane(t *testing.T, d *Device) *Device {
	t.Helper()
	l, err := d.Lane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		l.Close()
	})
	return l.(*Device)
}

// every is each so many-th vertex, from the last.
func every(n, step int) []uint32 {
	var all []uint32
	for v := n - 1; v >= 0; v -= step {
		all = append(all, uint32(v))
	}
	return all
}
