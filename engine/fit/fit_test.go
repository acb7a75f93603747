package fit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		threads, inflight int
		alone             bool
		slots, workers    int
	}{{1, 1, true, 1, 1}, {1, 1, false, 3, 1}, {2, 1, true, 3, 1}, {8, 1, true, 4, 2}, {8, 3, false, 6, 2}} {
		if slots, workers := Slots(c.threads, c.inflight, c.alone); slots != c.slots || workers != c.workers {
			t.Errorf("%+v: %d slots, %d workers", c, slots, workers)
		}
	}
}

// Each way gives up about as much as is asked for, and never more than there is.
func TestWays(t *testing.T) {
	need := &Needs{Slot: 10}
	b := &slot.Batches{Extent: slot.Extent{Depth: 6, Hands: 2}}
	need.Set(budget.Slots, 60)
	w := Ahead(1<<20, b, 2, need)
	for _, c := range []struct {
		bytes uint64
		depth int
	}{{1, 5}, {15, 3}, {1 << 40, 2}} {
		need.Set(budget.Slots, 10*uint64(b.Depth))
		if !w.Possible() {
			t.Fatalf("nothing can be given up of %d slots", b.Depth)
		}
		said, err := w.Take(c.bytes)
		if err != nil || b.Depth != c.depth || b.Hands > max(1, c.depth-1) || !strings.Contains(said, ", not 6:") {
			t.Errorf("%d bytes: %d slots, %d workers, %q, %v", c.bytes, b.Depth, b.Hands, said, err)
		}
	}
	if w.Possible() {
		t.Error("slots of steps under way are given up")
	}
	held := uint64(8000)
	w = Cached(1<<20, &held, 1000, func(rows int) (uint64, error) { return uint64(8 * rows), nil })
	for _, c := range []struct{ bytes, held uint64 }{{800, 6480}, {5500, 0}} {
		if !w.Possible() {
			t.Fatal("no cached rows can be given up")
		}
		if said, err := w.Take(c.bytes); err != nil || held != c.held || !strings.Contains(said, ", not 1000:") {
			t.Errorf("%d bytes: %d are held, %q, %v", c.bytes, held, said, err)
		}
	}
	if w.Possible() {
		t.Error("rows are given up of none")
	}
	need.Set(budget.Slots, 10<<20)
	enough, shed := need.OnHost(), 0
	if w = Edges(enough-200, 100, need, func() error { shed++; return nil }); w.Possible() {
		t.Error("edges are given up in vain")
	}
	w = Edges(enough-100, 100, need, func() error { shed++; return nil })
	if !w.Possible() {
		t.Error("edges are not given up")
	}
	if said, err := w.Take(1); err != nil || shed != 1 || w.Possible() || !strings.Contains(said, "{topology}=sharded") {
		t.Errorf("edges are given up %d times: %q, %v", shed, said, err)
	}
}

// Rows that are gathered late are counted once for all slots, and fewer slots give up none
// of them.
func TestRowsOfAllSlots(t *testing.T) {
	of := func(late bool) *Needs {
		n := &Needs{}
		n.See(&Step{
			Roots: 1, Groups: []slot.Shape{{Group: deal.Group{Roots: []uint32{7}}}}, Late: late, Far: 3000, Heap: 2000,
			Input:  func(int) (slot, rows uint64) { return 100_000, 90_000 },
			Passes: func(int, func(int, int)) {},
		})
		return n
	}
	early, late := of(false), of(true)
	if late.Slot != early.Slot-90_000 || late.Rows != 90_000 || late.Far != 2000 || early.Far != 0 {
		t.Errorf("a slot takes %d and rows %d, of others %d; all early %d", late.Slot, late.Rows, late.Far, early.Slot)
	}
	late.Ahead(4, 1, true)
	if got, want := late.Of(budget.Slots), 4*late.Slot+90_000; got != want {
		t.Errorf("4 slots take %d, not %d", got, want)
	}
	early.GivesBack(4)
	late.GivesBack(4)
	if early.Inference.Instead != 0 || late.Inference.Instead != 90_000+4*2000 {
		t.Errorf("%d and %d are given back", early.Inference.Instead, late.Inference.Instead)
	}
	b := &slot.Batches{Extent: slot.Extent{Depth: 4, Hands: 1}}
	if _, err := Ahead(1<<20, b, 1, late).Take(late.Slot + 1); err != nil || b.Depth != 2 {
		t.Errorf("%d slots are left: %v", b.Depth, err)
	}
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		whole, has int
		each       uint64
		want       budget.Instead
		tried      int
	}{
		{1000, 1010, 4, budget.Instead{Value: 250, Needs: 1010}, 3},
		{1000, 1000, 100, budget.Instead{}, 1},                    // not even the smallest
		{1000, 860, 50, budget.Instead{Value: 15, Needs: 760}, 6}, // only the smallest
		{3, 20, 10, budget.Instead{Value: 1, Needs: 20}, 1},
		{1, 5, 10, budget.Instead{}, 0}, // can't be smaller
		{0, 5, 10, budget.Instead{}, 0},
	} {
		n, now, tried := &budget.Node{Has: uint64(c.has)}, c.whole, 0
		err := Search(n, func() (uint64, error) { tried++; return 10 + c.each*uint64(now), nil }, Batch(c.whole, func(b int) { now = b }))
		if err != nil || n.Instead[batch] != c.want || tried != c.tried || now != c.whole {
			t.Errorf("%+v: %+v after %d tries, %d at the end, %v", c, n.Instead, tried, now, err)
		}
	}
}

// Each setting is looked at by itself, and is as before afterwards.
func TestSearchOfSeveral(t *testing.T) {
	fanouts, width := []int{8, 3}, 64
	n := &budget.Node{Has: 100}
	needs := func() (uint64, error) { return uint64(fanouts[0] * fanouts[1] * width), nil }
	err := Search(n, needs, Fanout(fanouts, func(f []int) { fanouts = f }), Hidden(width, func(w int) error {
		width = w
		return nil
	}), Fanout([]int{4, 0}, func([]int) { t.Error("a fan-out of all neighbours is changed") }))
	want := [budget.Settings]budget.Instead{fanout: {Value: 8, Needs: 64}, hidden: {Value: 4, Needs: 96}}
	if err != nil || n.Instead != want || !slices.Equal(fanouts, []int{8, 3}) || width != 64 {
		t.Errorf("%+v, %v, %d, %v", n.Instead, fanouts, width, err)
	}
	none := errors.New("no such model")
	n = &budget.Node{Has: 100}
	if err := Search(n, needs, Hidden(64, func(w int) error {
		if w < 64 {
			return none
		}
		return nil
	})); err != nil || n.Instead[hidden].Needs > 0 {
		t.Errorf("%+v, %v", n.Instead, err)
	}
}

func TestLent(t *testing.T) {
	of := func(first, rows, edges int) *graph.Shard {
		return &graph.Shard{First: uint32(first), Vertices: rows, Indptr: make([]int64, rows+1), Indices: make([]int32, edges)}
	}
	r := &replica.Replica{Shards: []*graph.Shard{of(0, 10, 100), of(10, 5, 50), {}}, Bytes: 1 << 20}
	own := func(v uint32) bool { return v < 10 }
	if got := Lent(r, own); got != 8*6+4*50 {
		t.Errorf("%d bytes are lent", got)
	}
	if r.Bytes = 100; Lent(r, own) != 100 {
		t.Error("more is lent than was brought")
	}
	n := &budget.Node{Needs: 1000, Has: 900}
	if Topology(n, 50); n.Instead[topology].Needs != 0 {
		t.Error("a run does not fit without these edges")
	}
	if Topology(n, 150); n.Instead[topology].Needs != 850 {
		t.Errorf("without edges: %+v", n.Instead)
	}
}

// A device holds features and edges as far as it has room, and says what it has not.
func TestADeviceHoldsWhatItHasRoomFor(t *testing.T) {
	for _, c := range []struct {
		free     uint64
		features bool
		edges    uint64
		notes    int
	}{{1 << 30, true, 30 << 20, 0}, {80 << 20, true, 20 << 20, 0}, {50 << 20, true, 0, 1}, {30 << 20, false, 0, 2}} {
		d := &Device{
			Name: "d", Free: c.free, Slots: 2, Features: 20 << 20,
			Edges: func(summed bool) sample.Footprint {
				if summed {
					return sample.Footprint{Graph: 30 << 20}
				}
				return sample.Footprint{Graph: 20 << 20}
			},
			Sums: func() (tensor.Aggregation, bool) { return tensor.Mean, c.free > 100<<20 },
		}
		n := &Needs{Rows: 4 << 20, Slot: 5 << 20}
		n.Set(budget.Slots, 10<<20)
		n.Set(budget.Pass, 10<<20)
		d.Hold(n)
		h := &n.Holds
		if (h.Features > 0) != c.features || h.Edges.Graph != c.edges || len(h.Notes) != c.notes || n.Of(budget.Held) != n.There(2) {
			t.Errorf("%+v: %+v, %s", c, h, budget.Format(n.Of(budget.Held)))
		}
		if err := OnDevice(n, n.OnDevice(), c.free); err != nil {
			t.Error(err)
		}
		if err := OnDevice(n, n.OnDevice()-1, c.free); err == nil {
			t.Error("a byte is missing and it fits")
		}
	}
}
