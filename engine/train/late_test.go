package train_test

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// On several nodes a slot has memory for the rows of others only, and the rows of its step
// are gathered when that begins, whatever else has been prepared meanwhile.
func TestRowsAreGatheredWhenAStepBegins(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	whole, err := dataset.Open(shards, 0, traintest.Small("sage").Features)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []strategy.Settings{traintest.Ways()["leap"], {Strategy: "centric"}, strategy.Given("leap", "leap.mode=migrate")} {
		r := traintest.Small("sage")
		r.Sharing, r.Batch = of, 60
		all := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Start(t, r, shards, train.Options{Threads: 2})
		far := 0
		for node, l := range all {
			run := l.Run
			b := run.Batches
			if len(b.Slots) < 2 || b.Rows == nil {
				t.Fatalf("%v: %d slots, which share %v", of, len(b.Slots), b.Rows)
			}
			for step, s := range b.Slots[:2] {
				if s.Rows.Bytes() > 0 {
					t.Errorf("%v, node %d: a slot has %d bytes for rows of all nodes", of, node, s.Rows.Bytes())
				}
				b.Set(s, step)
				if err := run.Method.Prepare(t.Context(), b.Workers[0], s, 1); err != nil {
					t.Fatal(err)
				}
			}
			for step, s := range b.Slots[:2] {
				if err := run.Arrive(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				far += s.Remote
				if at := wrongRow(t, s, whole); at >= 0 {
					t.Errorf("%v, node %d, step %d: the row of vertex %d is another's", of, node, step, at)
				}
			}
		}
		if far == 0 {
			t.Errorf("%v: no row is another node's", of)
		}
	}
}

// wrongRow returns a vertex whose row is not as in a graph; -1: all are.
func wrongRow(t *testing.T, s *slot.Slot, whole *dataset.Graph) int {
	d := cpu.New(1)
	defer d.Close()
	memory, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for i := range s.Groups {
		if len(s.Groups[i].Roots) == 0 {
			continue
		}
		x := s.Groups[i].Input.Dense
		want := memory.Alloc(tensor.F32, x.Rows, x.Cols)
		whole.Features.Dense(d, memory, want, s.Sets[i], nil)
		for row, v := range s.Sets[i] {
			if !slices.Equal(x.F32()[row*x.Stride:][:x.Cols], want.F32()[row*want.Stride:][:want.Cols]) {
				return int(v)
			}
		}
	}
	return -1
}

// What steps read is given back before weights are evaluated for the last time, and not
// before: evaluation takes its place.
func TestRowsAreGivenBackOnceNoStepFollows(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	var want string
	for _, every := range []int{1, 1 << 20} {
		r := traintest.Small("sage")
		r.Sharing, r.Batch, r.Epochs, r.EvalEvery = traintest.Ways()["leap"], 60, 2, every
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		all := m.Start(t, r, shards, train.Options{Threads: 2})
		for epoch := 1; epoch <= r.Epochs; epoch++ {
			if err := m.Each(func(node int) error { return all[node].Run.Epoch(t.Context()) }); err != nil {
				t.Fatal(err)
			}
			for node, l := range all {
				held := l.Run.Batches.Rows != nil
				for _, s := range l.Run.Batches.Slots {
					held = held || s.Far.Far.Memory != nil
				}
				if held != (epoch < r.Epochs) {
					t.Errorf("evaluated every %d epochs: after epoch %d node %d has memory for rows: %v", every, epoch, node, held)
				}
			}
		}
		last := all[0].History[r.Epochs-1]
		if want == "" {
			want = last.Hash
		}
		if last.Hash != want || last.Eval == nil {
			t.Errorf("evaluated every %d epochs: learns %s, not %s", every, last.Hash, want)
		}
	}
}
