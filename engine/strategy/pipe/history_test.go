package pipe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// sizes are those of six shards.
var sizes = []int{5, 4, 6, 3, 5, 4}

// random are histories that nobody made.
func random(s int, v uint32, column int) float64 {
	draws := keyed.New(77, keyed.Initial).With(uint64(s)).With(uint64(v)).With(uint64(column)).Draws()
	return 2*draws.Float64() - 1
}

// A history is a constant: with factor 1 the gradient is that of the loss that was
// computed.
func TestHistoriesAreConstants(t *testing.T) {
	for i, model := range models {
		for _, c := range []struct{ stages, ways, chunks int }{{1, 1, 3}, {2, 1, 6}, {1, 2, 4}} {
			t.Run(fmt.Sprintf("%s/%d stages, %d ways, %d chunks", model, c.stages, c.ways, c.chunks), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i), sizes, anywhere)
				spec := deep(model, 3)
				spec.Hidden = 3
				s := newSetup(spec, c.stages, c.ways, c.chunks)
				s.Factor, s.frozen, s.still = 1, random, true
				s.Shuffle, s.Period = false, 1<<20
				j, epoch := w.start(t, s), 2
				got, _ := j.epoch(t, epoch)
				got = slices.Clone(got)
				weights := w.weights(j.model)
				at := func(i int, x float64) float64 {
					was := weights[i]
					weights[i] = x
					j.set(weights)
					weights[i] = was
					epoch++
					j.epoch(t, epoch)
					return j.plain()
				}
				seen := 0.0
				for i := 0; i < len(got); i += 1 + len(got)/40 {
					seen = max(seen, math.Abs(got[i]))
					ok, want := false, 0.0
					for _, h := range []float64{1e-5, 1e-6} { // a smaller one stays on one side of where ReLU bends
						want = (at(i, weights[i]+h) - at(i, weights[i]-h)) / (2 * h)
						ok = ok || math.Abs(got[i]-want) <= 1e-8
					}
					if !ok {
						t.Errorf("weight %d: gradient %v, slope %v", i, got[i], want)
					}
				}
				if seen == 0 {
					t.Error("all gradients are 0")
				}
			})
		}
	}
}

// Where no edge leads from chunk to chunk, no history is seen: how chunks are made, in
// which order they come and what histories count changes no bit.
func TestApart(t *testing.T) {
	for _, model := range []string{"gcn", "gcnii", "resgcn"} {
		w := newWorld(t, 4, sizes, func(from, to int) bool { return from == to })
		want := ""
		for _, chunks := range []int{1, 2, 3, 6} {
			for _, o := range []Options{
				{Seed: 1, Period: 1, Factor: 2}, {Seed: 2, Shuffle: true, Period: 2, Factor: 2}, {Seed: 3, Shuffle: true, Period: 3, Factor: 1, Recompute: true},
				{Seed: 4, Shuffle: true, Period: 2, Factor: 2, Histories: Left}, {Seed: 5, Period: 1, Factor: 1, Histories: Zeros, Kept: true},
			} {
				s := newSetup(deep(model, 3), 1, 1, chunks)
				o.Halo.Policy, o.Histories = Exact, cmp.Or(o.Histories, Made)
				s.Options, s.rate = o, 0.1
				j := w.start(t, s)
				all := ""
				for epoch := 1; epoch < 4; epoch++ {
					g, loss := j.epoch(t, epoch)
					all += fmt.Sprint(g, loss)
				}
				if want == "" {
					want = all
				}
				if all != want {
					t.Errorf("%s: %d chunks, %+v: other bits", model, chunks, o)
				}
			}
		}
	}
}

// Over all orders, gradients that go one hop through histories are whole on average,
// where those count twice.
func TestCompensation(t *testing.T) {
	w := newWorld(t, 6, sizes, anywhere)
	s := newSetup(deep("gcn", 3), 1, 1, 3)
	s.noDrop, s.Period = true, 1
	j := w.start(t, s)
	want, _ := w.whole(t, s, 1, w.weights(j.model))
	mean := make([]float64, len(want))
	seen := map[string]bool{}
	for epoch := 4; len(seen) < 6; epoch++ {
		g, _ := j.epoch(t, epoch)
		if order := fmt.Sprint(j.nodes[0].order); epoch > 10 && !seen[order] {
			seen[order] = true
			for i := range mean {
				mean[i] += g[i] / 6
			}
		}
	}
	from := j.model.Params()[0]
	for _, p := range j.model.Params() {
		if p.Name == "layers.1.weight" {
			from = p
		}
	}
	mustNear(t, "the mean gradient of the last two layers", mean[from.Offset:], want[from.Offset:], 1e-10)
	first := 0.0
	for i := range from.Offset {
		first = max(first, math.Abs(mean[i]-want[i]))
	}
	if first < 1e-6 {
		t.Error("the first layer's mean gradient is exact, too: the test shows nothing")
	}
}

// What a layer sees of a chunk is of now if the chunk has had its turn, else that of the
// history.
func TestRowsOfNowAndOfHistories(t *testing.T) {
	w := newWorld(t, 2, sizes, anywhere)
	s := newSetup(deep("gcnii", 3), 2, 1, 6)
	s.rate = 0.5
	j := w.start(t, s)
	numbers := func(n *node, p int, m tensor.Matrix) []float64 {
		first, end := n.Shape.Vertices(0, p)
		x := make([]float64, int(end-first)*m.Cols)
		n.Device.Read(x, m.RowRange(int(first), int(end-first)))
		return x
	}
	for epoch := 1; epoch < 6; epoch++ {
		shown := make([][][]float64, len(j.nodes)) // of each place, level and position
		all := func(n *node) (rows [][]float64) {
			for _, l := range n.ways[0].levels {
				for p := 0; l != nil && p < s.chunks; p++ {
					rows = append(rows, numbers(n, p, l.rows))
				}
			}
			return rows
		}
		for i, n := range j.nodes {
			n.trace = func(e event, _ int) {
				if e == forwardDone {
					shown[i] = append(shown[i], all(n)...)
				}
			}
		}
		j.epoch(t, epoch)
		for i, n := range j.nodes {
			seen := shown[i]
			now := seen[len(seen)/s.chunks*(s.chunks-1):] // when all have gone forward
			if len(now) == 0 || len(seen) != s.chunks*len(now) {
				t.Fatalf("stage %d showed %d rows, and %d at last", i, len(seen), len(now))
			}
			now = slices.Clone(now)
			for place := range s.chunks {
				for at, l := range n.ways[0].levels {
					for p := 0; l != nil && p < s.chunks; p++ {
						fresh := slices.Index(n.order, p) <= place
						want := now[0]
						if !fresh {
							want = numbers(n, p, n.pastOf(l))
						}
						if !slices.Equal(seen[0], want) || slices.Equal(now[0], numbers(n, p, n.pastOf(l))) {
							t.Fatalf("epoch %d, place %d of %v, level %d: rows of position %d are others than expected (of now: %v)", epoch, place, n.order, at, p, fresh)
						}
						seen, now = seen[1:], append(now[1:], now[0])
					}
				}
			}
		}
	}
}

// Nothing of an epoch's gradients is left for the next.
func TestEpochsBeginEmpty(t *testing.T) {
	w := newWorld(t, 2, sizes, anywhere)
	s := newSetup(deep("gcn", 3), 1, 2, 6)
	s.Period, s.Shuffle, s.still = 100, false, true
	j := w.start(t, s)
	first, _ := j.epoch(t, 1)
	first = slices.Clone(first)
	if again, _ := j.epoch(t, 2); !slices.Equal(again, first) {
		t.Error("an epoch that is done again has another gradient")
	}
}
