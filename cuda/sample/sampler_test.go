//go:build cuda && emulator

package sample

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// forms are all there are.
func forms() []sample.Form {
	var all []sample.Form
	for _, w := range []sample.Weighting{sample.Ones, sample.Sums, sample.Symmetric} {
		all = append(all, sample.Form{Weighting: w}, sample.Form{SelfLoops: true, Weighting: w})
	}
	return all
}

// differ says in what the GPU's blocks are not the processor's.
func differ(on *driver.Thread, got *Batch, want *sample.Batch) error {
	if len(got.Blocks) != len(want.Blocks) {
		return fmt.Errorf("%d blocks, want %d", len(got.Blocks), len(want.Blocks))
	}
	if len(want.Blocks) > 0 && !slices.Equal(got.Listed, want.Blocks[0].Vertices) {
		return fmt.Errorf("listed are %v, want %v", got.Listed, want.Blocks[0].Vertices)
	}
	for i := range want.Blocks {
		w := &want.Blocks[i]
		w.Transpose()
		g, err := got.Blocks[i].Host(on)
		if err != nil {
			return err
		}
		for _, a := range []struct {
			name string
			same bool
		}{
			{"shape", g.Rows == w.Rows && g.Cols == w.Cols && g.Own == w.Own},
			{"vertices", slices.Equal(g.Vertices, w.Vertices)},
			{"indptr", slices.Equal(g.Indptr, w.Indptr)},
			{"indices", slices.Equal(g.Indices, w.Indices)},
			{"values", slices.Equal(g.Values, w.Values) && (g.Values == nil) == (w.Values == nil)},
			{"the transpose's indptr", slices.Equal(g.Transposed.Indptr, w.Transposed.Indptr)},
			{"the transpose's rows", slices.Equal(g.Transposed.Rows, w.Transposed.Rows)},
			{"the transpose's edges", slices.Equal(g.Transposed.Edges, w.Transposed.Edges)},
		} {
			if !a.same {
				return fmt.Errorf("block %d: %s: got %+v, want %+v", i, a.name, g, *w)
			}
		}
	}
	return nil
}

// within holds what a batch takes of memory against what is foretold of it.
func within(to *sample.Topology, s *Sampler, b *Batch, roots []uint32) error {
	var entries []int
	for i := range b.Blocks {
		entries = append(entries, b.Blocks[len(b.Blocks)-1-i].Entries)
	}
	taken := b.header.Len() + b.vertices.Len()
	for h := range b.hops {
		for _, m := range b.hops[h].memories() {
			taken += m.Len()
		}
	}
	kept := 0
	for _, m := range append(s.graph.memories(), &s.table, &s.ranks, &s.partial, &s.order, &s.digits) {
		kept += m.Len()
	}
	f := Footprint(to, s.o, len(roots), entries)
	if len(roots) > 1 && (uint64(taken) > f.Batch || uint64(kept) > f.Graph || f.Batch > 4*uint64(taken) || f.Graph > 4*uint64(kept)) {
		return fmt.Errorf("a batch of %d roots takes %d bytes beside %d, foretold are %+v", len(roots), taken, kept, f)
	}
	return nil
}

// agree samples on both and compares.
func agree(t *testing.T, d *driver.Device, to *sample.Topology, o sample.Options, steps ...[]uint32) {
	t.Helper()
	ours, b, want := sample.New(to, o), &Batch{}, &sample.Batch{}
	err := d.Do(func(on *driver.Thread) error {
		s, err := New(on, to, Options{Options: o})
		if err != nil {
			return err
		}
		for step, roots := range steps {
			if err := ours.Sample(t.Context(), want, 3, uint64(step), roots); err != nil {
				return err
			}
			if err := s.Sample(on, b, 3, uint64(step), roots); err != nil {
				return err
			}
			if err := differ(on, b, want); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			if err := within(to, s, b, roots); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return errors.Join(b.Close(on), s.Close(on))
	})
	if err != nil {
		t.Errorf("%+v, fan-outs %v, seed %d: %v", o.Form, o.Fanouts, o.Seed, err)
	}
}

// Blocks are the processor's, array by array: all fan-outs, forms and weights, more
// roots than before and fewer, none, and hops that do not fit at first.
func TestBlocksAreTheProcessors(t *testing.T) {
	d := opened(t)
	seed := uint64(0)
	for _, weighted := range []bool{false, true} {
		whole := topology(t, cut(wild(300, 3000, 1), weighted, 100, 250, 300))
		for _, form := range forms() {
			if weighted && form.Weighting == sample.Ones {
				continue // which has no use for weights
			}
			for _, fanouts := range [][]int{{0}, {1, 15, 5}, {70}, {3, 0}} {
				seed++
				agree(t, d, whole, sample.Options{Fanouts: fanouts, Form: form, Seed: seed},
					[]uint32{7}, every(300, 2), nil)
			}
		}
	}
}

func TestBlocksOfCora(t *testing.T) {
	shards := coraShards(t)
	agree(t, opened(t), topology(t, shards), sample.Options{Fanouts: []int{15, 10}, Form: sample.Form{SelfLoops: true, Weighting: sample.Symmetric}, Seed: 1}, every(2708, 20))
}

func TestBlocksOfASkewedGraph(t *testing.T) {
	agree(t, opened(t), topology(t, rmat(t, 4096, 40_000)), sample.Options{Fanouts: []int{10, 5}, Seed: 2}, every(4096, 50), every(4096, 41))
}

func TestBlocksOfNoEdges(t *testing.T) {
	empty := topology(t, cut(nil, false, 9))
	agree(t, opened(t), empty, sample.Options{Fanouts: []int{5, 5}}, every(9, 2))
	agree(t, opened(t), empty, sample.Options{Fanouts: []int{0, 5}, Form: sample.Form{SelfLoops: true, Weighting: sample.Symmetric}}, every(9, 2))
}

// What does not fit is not written, and found: the emulator's memory has margins.
func TestRoomGrows(t *testing.T) {
	d, whole := opened(t), topology(t, cut(wild(600, 9000, 2), true, 600))
	o := sample.Options{Fanouts: []int{0, 0, 0}, Form: sample.Form{Weighting: sample.Sums}}
	want := &sample.Batch{}
	roots := every(600, 200)
	if err := sample.New(whole, o).Sample(t.Context(), want, 0, 0, roots); err != nil {
		t.Fatal(err)
	}
	err := d.Do(func(on *driver.Thread) error {
		s, err := New(on, whole, Options{Options: o})
		if err != nil {
			return err
		}
		b := &Batch{}
		s.roots = 256
		for h := range s.entries {
			s.entries[h] = 1
		}
		if err := s.Sample(on, b, 0, 0, roots); err != nil {
			return err
		}
		if s.entries[1] == 1 || s.entries[2] == 1 {
			t.Errorf("there is room for %v entries", s.entries)
		}
		err = differ(on, b, want)
		held := append([]int{}, s.entries...)
		err = errors.Join(err, s.Sample(on, b, 0, 1, roots))
		if !slices.Equal(s.entries, held) {
			t.Errorf("room grew from %v to %v for the same roots", held, s.entries)
		}
		return errors.Join(err, b.Close(on), s.Close(on))
	})
	if err != nil {
		t.Error(err)
	}
}

// A batch for which there is room allocates nothing.
func TestBatchesAllocateNothing(t *testing.T) {
	d, whole := opened(t), topology(t, cut(wild(300, 2000, 3), false, 300))
	roots := every(300, 30)
	err := d.Do(func(on *driver.Thread) error {
		s, err := New(on, whole, Options{Options: sample.Options{Fanouts: []int{5, 5}}})
		if err != nil {
			return err
		}
		b := &Batch{}
		step := uint64(0)
		batch := func() {
			err = errors.Join(err, s.Sample(on, b, 0, step, roots))
			step++
		}
		batch()
		batch() // now it is a chain
		if n := testing.AllocsPerRun(5, batch); n > 0 {
			t.Errorf("%v allocations a batch", n)
		}
		before := s.Counts()
		batch()
		if now := s.Counts(); now.Chains != before.Chains+1 || now.Alone != before.Alone {
			t.Errorf("a batch took it from %+v to %+v", before, now)
		}
		return errors.Join(err, b.Close(on), s.Close(on))
	})
	if err != nil {
		t.Error(err)
	}
}

// Bad roots are refused in the processor's words, and the sampler goes on.
func TestRootsAreChecked(t *testing.T) {
	d, whole := opened(t), topology(t, cut(wild(300, 2000, 3), false, 300))
	o := sample.Options{Fanouts: []int{5}}
	ours, want := sample.New(whole, o), &sample.Batch{}
	err := d.Do(func(on *driver.Thread) error {
		s, err := New(on, whole, Options{Options: o})
		if err != nil {
			return err
		}
		b := &Batch{}
		for _, roots := range [][]uint32{{1, 2, 3, 2, 1}, {9, 9}, {4, 300}} {
			expected, got := ours.Sample(t.Context(), want, 0, 0, roots), s.Sample(on, b, 0, 0, roots)
			if expected == nil || got == nil || got.Error() != expected.Error() {
				t.Errorf("roots %v: %v, want %v", roots, got, expected)
			}
			if len(b.Blocks) != 0 {
				t.Errorf("roots %v: %d blocks", roots, len(b.Blocks))
			}
		}
		err = errors.Join(s.Sample(on, b, 0, 0, every(300, 3)), ours.Sample(t.Context(), want, 0, 0, every(300, 3)))
		return errors.Join(err, differ(on, b, want), b.Close(on), s.Close(on))
	})
	if err != nil {
		t.Error(err)
	}
}

// What a GPU cannot sample is refused in a sentence, and its memory given back.
func TestWhatIsRefused(t *testing.T) {
	d := opened(t)
	shards := cut(wild(300, 2000, 3), false, 100, 300)
	far := *shards[1]
	far.Indptr, far.Indices = nil, nil
	partial, err := sample.NewPartial([]*shard{shards[0], &far}, []*sample.Summary{nil, {}})
	if err != nil {
		t.Fatal(err)
	}
	whole := topology(t, shards)
	err = d.Do(func(on *driver.Thread) error {
		before, _, err := on.Memory()
		for _, c := range []struct {
			to   *sample.Topology
			o    Options
			want string
		}{
			{partial, Options{Options: sample.Options{Fanouts: []int{5}}}, "on other nodes"},
			{whole, Options{Options: sample.Options{Fanouts: []int{-1}}}, "fan-outs are from 0"},
			{whole, Options{Options: sample.Options{Fanouts: []int{5, 33}}, Fused: true}, "at most 32"},
			{whole, Options{Fused: true}, "at most 32"},
		} {
			if _, err := New(on, c.to, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q", c.o, err, c.want)
			}
		}
		after, _, err2 := on.Memory()
		if after != before {
			t.Errorf("%d bytes of memory are free, and %d were", after, before)
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Error(err)
	}
}

// A GPU that is full refuses a graph, however much of it was to be sent.
func TestAFullGPURefuses(t *testing.T) {
	d := opened(t)
	err := d.Do(func(on *driver.Thread) error {
		free, _, err := on.Memory()
		if err != nil {
			return err
		}
		hog, err := on.Alloc(int(free) - 1<<20)
		if err != nil {
			return err
		}
		staging, err := on.AllocPinned(stagedBytes)
		if err != nil {
			return errors.Join(err, on.Free(hog))
		}
		var to driver.Memory
		if err := send(on, &to, staging, make([]float32, 3<<20)); !errors.Is(err, errRoom) {
			t.Errorf("sent to a GPU without room: %v", err)
		}
		return errors.Join(on.FreePinned(staging), on.Free(hog))
	})
	if err != nil {
		t.Error(err)
	}
}
