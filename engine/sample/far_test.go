package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// elsewhere draws as another node would, which has all edges.
type elsewhere struct {
	t       testing.TB
	drawer  *Drawer
	partial *Topology
	asked   int
	ends    int // questions for degrees
	err     error
}

func (e *elsewhere) Draw(ctx context.Context, epoch, step uint64, hop, fanout int, vertices []uint32, to *Drawn) error {
	e.asked++
	if e.err != nil {
		return e.err
	}
	if k, ok := e.drawer.Fanout(hop); !ok || k != fanout {
		e.t.Errorf("hop %d was asked for with a fan-out of %d", hop, fanout)
	}
	for _, v := range vertices {
		if e.partial.Near(v) {
			e.t.Errorf("vertex %d was asked for, which is near", v)
		}
	}
	n, err := e.drawer.Draw(ctx, to, epoch, step, hop, vertices, 1<<30)
	if err == nil && n != len(vertices) {
		e.t.Errorf("%d rows of %d", n, len(vertices))
	}
	return err
}

// inverses says degrees as another node would.
func (e *elsewhere) inverses(_ context.Context, vertices []uint32, to []float32) error {
	e.ends++
	for _, v := range vertices {
		if e.partial.Near(v) {
			e.t.Errorf("the degree of vertex %d was asked for, which is near", v)
		}
	}
	return e.drawer.Inverses(vertices, to)
}

// partial leaves out the edges of some shards.
func partial(t testing.TB, shards []*graph.Shard, far func(i int) bool) *Topology {
	t.Helper()
	some, summaries := slices.Clone(shards), make([]*Summary, len(shards))
	for i, s := range shards {
		if far(i) {
			some[i] = graph.NewSkeleton(s, graph.FeatureStats{}, false).Shard
			summaries[i] = &Summary{Edges: int64(len(s.Indices))}
		}
	}
	to, err := NewPartial(some, summaries)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestAPartialTopologyIsTheWhole(t *testing.T) {
	const n = 900
	edges := wild(n, 9000, 1)
	r := rand.New(rand.NewPCG(7, 7))
	for _, weighted := range []bool{false, true} {
		shards := cut(edges, weighted, 3, 70, 200, 200, 333, 600, n)
		whole := topology(t, shards)
		for _, form := range drawnForms() {
			for far := range 5 {
				to := partial(t, shards, func(i int) bool { return far == 4 || i%(far+2) == far/2 })
				if to.Vertices() != n || to.Edges() != whole.Edges() {
					t.Fatalf("%d vertices and %d edges", to.Vertices(), to.Edges())
				}
				for _, fanouts := range [][]int{{5, 3}, {0, 2}, {70, 0}, {1}} {
					o := Options{Fanouts: fanouts, Form: form, Seed: 3}
					e := &elsewhere{t: t, drawer: NewDrawer(whole, o), partial: to}
					a := New(whole, o)
					o.Far, o.Inverses = e, e.inverses
					b := New(to, o)
					var want, got Batch
					for step := range uint64(2) {
						roots := distinct(r, n, 150)
						e.asked, e.ends = 0, 0
						if err := errors.Join(a.Sample(t.Context(), &want, 1, step, roots), b.Sample(t.Context(), &got, 1, step, roots)); err != nil {
							t.Fatal(err)
						}
						if err := sameBlocks(&got, &want); err != nil {
							t.Fatalf("weighted %v, %v, fan-outs %v, far %d: %v", weighted, form, fanouts, far, err)
						}
						if e.asked != len(fanouts) {
							t.Fatalf("%d questions in %d hops", e.asked, len(fanouts))
						}
						if (e.ends == 1) != (form.Weighting == Symmetric) || e.ends > 1 {
							t.Fatalf("%v: %d questions for degrees", form, e.ends)
						}
					}
				}
			}
		}
	}
}

// sameBlocks compares bit by bit.
func sameBlocks(a, b *Batch) error {
	if len(a.Blocks) != len(b.Blocks) {
		return fmt.Errorf("%d blocks and %d", len(a.Blocks), len(b.Blocks))
	}
	for i := range a.Blocks {
		x, y := &a.Blocks[i], &b.Blocks[i]
		if !slices.Equal(x.Vertices, y.Vertices) || !slices.Equal(x.Indptr, y.Indptr) || !slices.Equal(x.Indices, y.Indices) ||
			!slices.Equal(x.Values, y.Values) || (x.Values == nil) != (y.Values == nil) || x.Rows != y.Rows || x.Cols != y.Cols {
			return fmt.Errorf("block %d differs", i)
		}
	}
	return nil
}

func TestPartsOfNearShards(t *testing.T) {
	const n = 400
	shards := cut(wild(n, 5000, 4), true, 150, 250, n)
	for _, form := range forms() {
		if form.Weighting == Symmetric {
			var b Block
			if err := New(partial(t, shards, func(i int) bool { return i == 1 }), Options{Form: form}).Part(&b, 0, 1); err == nil || !strings.Contains(err.Error(), "degrees of vertices on other nodes") {
				t.Errorf("%v: %v", form, err)
			}
			continue
		}
		a, b := New(topology(t, shards), Options{Form: form}), New(partial(t, shards, func(i int) bool { return i == 1 }), Options{Form: form})
		var want, got Block
		for _, r := range [][2]int{{0, 150}, {10, 5}, {250, 150}, {390, 10}, {200, 0}} {
			if err := errors.Join(a.Part(&want, r[0], r[1]), b.Part(&got, r[0], r[1])); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(want.Indptr, got.Indptr) || !slices.Equal(want.Indices, got.Indices) || !slices.Equal(want.Values, got.Values) {
				t.Fatalf("%v, %v: differs", form, r)
			}
		}
		for _, r := range [][2]int{{100, 51}, {150, 1}, {0, n}, {249, 2}} {
			if err := b.Part(&got, r[0], r[1]); err == nil || !strings.Contains(err.Error(), "on another node") {
				t.Errorf("%v: %v", r, err)
			}
		}
	}
}

func TestWhatFarSaysGoesWrong(t *testing.T) {
	shards := cut(wild(100, 500, 1), false, 50, 100)
	to := partial(t, shards, func(i int) bool { return i == 1 })
	e := &elsewhere{t: t, err: errors.New("no way")}
	var b Batch
	for want, far := range map[string]Far{"nobody asks": nil, "no way": e, "1 rows were asked for, and 0 came": nothing{}} {
		s := New(to, Options{Fanouts: []int{2}, Far: far})
		if err := s.Sample(t.Context(), &b, 0, 0, []uint32{1, 99}); err == nil || !strings.Contains(err.Error(), want) || len(b.Blocks) != 0 {
			t.Errorf("%v, and %q was expected", err, want)
		}
		if err := s.Sample(t.Context(), &b, 0, 0, []uint32{1, 49}); err != nil || len(b.Blocks) != 1 {
			t.Errorf("where all is near: %v", err)
		}
	}
}

type nothing struct{}

func (nothing) Draw(context.Context, uint64, uint64, int, int, []uint32, *Drawn) error { return nil }

func TestSummariesAreChecked(t *testing.T) {
	shards := cut(wild(100, 500, 1), false, 50, 100)
	bare := []*graph.Shard{shards[0], graph.NewSkeleton(shards[1], graph.FeatureStats{}, false).Shard}
	for _, summaries := range [][]*Summary{nil, {nil, nil}} {
		if _, err := NewPartial(bare, summaries); err == nil || !strings.Contains(err.Error(), "shard 1") {
			t.Errorf("%v", err)
		}
	}
	if _, err := NewTopology(bare); err == nil {
		t.Error("a topology without summaries")
	}
}

// Degrees that come from another node are checked, and so is that somebody asks for them.
func TestDegreesOfOtherNodesAreChecked(t *testing.T) {
	shards := cut(wild(100, 500, 1), false, 50, 100)
	to := partial(t, shards, func(i int) bool { return i == 1 })
	form := Form{SelfLoops: true, Weighting: Symmetric}
	o := Options{Fanouts: []int{0}, Form: form}
	drawer := NewDrawer(topology(t, shards), o)
	say := func(f float32, err error) Inverses {
		return func(_ context.Context, _ []uint32, to []float32) error {
			for i := range to {
				to[i] = f
			}
			return err
		}
	}
	for want, inverses := range map[string]Inverses{
		"nobody asks": nil, "no way": say(1, errors.New("no way")),
		"no number": say(float32(math.NaN()), nil), "or negative": say(-1, nil), "is no number": say(float32(math.Inf(1)), nil),
	} {
		o.Far, o.Inverses = &elsewhere{t: t, drawer: drawer, partial: to}, inverses
		var b Batch
		if err := New(to, o).Sample(t.Context(), &b, 0, 0, []uint32{1, 99}); err == nil || !strings.Contains(err.Error(), want) || len(b.Blocks) != 0 {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
	for _, vertices := range [][]uint32{{1, 50}, {100}, {1<<32 - 1}} {
		if err := NewDrawer(to, o).Inverses(vertices, make([]float32, len(vertices))); err == nil || !strings.Contains(err.Error(), "are not here") {
			t.Errorf("%v: %v", vertices, err)
		}
	}
	if err := NewDrawer(to, Options{Form: Form{SelfLoops: true}}).Inverses([]uint32{1}, make([]float32, 1)); !errors.Is(err, errNoInverses) {
		t.Error(err)
	}
}

func TestADrawerTakesWhatFits(t *testing.T) {
	var edges []edge
	for to, degree := range []uint32{3, 0, 5, 2, 9} {
		for from := range degree {
			edges = append(edges, edge{from, uint32(to), 1 + float32(from)})
		}
	}
	shards := cut(edges, true, 5, 10)
	to := partial(t, shards, func(i int) bool { return i == 1 })
	d := NewDrawer(to, Options{Fanouts: []int{0, 4}})
	all := []uint32{4, 0, 1, 2, 3, 0}
	var drawn Drawn
	for most, want := range map[int]int{8: -1, 9: 1, 11: 1, 12: 3, 16: 3, 17: 4, 18: 4, 19: 5, 22: 6, 1 << 40: 6} {
		n, err := d.Draw(t.Context(), &drawn, 0, 0, 0, all, most)
		if want < 0 {
			if err == nil || !strings.Contains(err.Error(), "more entries than fit") {
				t.Error(err)
			}
			continue
		}
		if err != nil || n != want || len(drawn.Degrees) != n || len(drawn.Indptr) != n+1 || len(drawn.Sources) != int(drawn.Indptr[n]) || len(drawn.Weights) != len(drawn.Sources) {
			t.Errorf("at most %d entries: %d rows, %v, %v", most, n, drawn, err)
		}
	}
	if n, err := d.Draw(t.Context(), &drawn, 0, 0, 1, all, 8); err != nil || n != 3 || !slices.Equal(drawn.Degrees, []int32{9, 3, 0}) || !slices.Equal(drawn.Indptr, []int64{0, 4, 7, 7}) {
		t.Errorf("%d rows, %v, %v", n, drawn, err)
	}
	for _, v := range []uint32{5, 9, 10, 1<<32 - 1} {
		if _, err := d.Draw(t.Context(), &drawn, 0, 0, 0, []uint32{1, v}, 10); err == nil || !strings.Contains(err.Error(), "are not here") {
			t.Errorf("vertex %d: %v", v, err)
		}
	}
	for _, hop := range []int{-1, 2} {
		if _, err := d.Draw(t.Context(), &drawn, 0, 0, hop, all, 100); err == nil || !strings.Contains(err.Error(), "no hop") {
			t.Errorf("hop %d: %v", hop, err)
		}
	}
}

func TestPartialSamplingAllocatesNothing(t *testing.T) {
	const n = 3000
	shards := cut(wild(n, 40000, 3), true, 1000, 2000, n)
	form := Form{SelfLoops: true, Weighting: Symmetric}
	to := partial(t, shards, func(i int) bool { return i == 1 })
	o := Options{Fanouts: []int{70, 4, 0}, Form: form}
	e := &elsewhere{t: t, drawer: NewDrawer(topology(t, shards), o), partial: to}
	o.Far, o.Inverses = e, e.inverses
	s := New(to, o)
	roots := distinct(rand.New(rand.NewPCG(4, 4)), n, 300)
	var b Batch
	step := uint64(0)
	run := func() {
		step = (step + 1) % 8
		if err := s.Sample(t.Context(), &b, 0, step, roots); err != nil {
			t.Error(err)
		}
	}
	for range 8 {
		run()
	}
	if got := testing.AllocsPerRun(20, run); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}
