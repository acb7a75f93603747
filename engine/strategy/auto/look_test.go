package auto

import (
	"context"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// asking is a counter that asks others for neighbours: so many bytes a root.
type asking struct {
	Counter
	tally *peer.Tally
}

const askedBytes = 12

func (a asking) Count(ctx context.Context, to []sample.Size, epoch, step uint64, roots []uint32) ([]sample.Size, error) {
	a.tally.Count(peer.Topology, askedBytes*len(roots))
	return a.Counter.Count(ctx, to, epoch, step, roots)
}

// What is counted is what the steps of the epoch will ask for, by their own draws.
func TestWhatIsCounted(t *testing.T) {
	for name, settings := range map[string]strategy.Settings{
		"stay":     {},
		"slots":    strategy.Given("", "leap.merge=2"),
		"repeated": strategy.Given("", "leap.merge=2", "leap.dedup=off"),
	} {
		w := newWorld(t, 2, linksOf(2, link{1e12, 0}))
		all, _, err := w.choose(t, func(_ int, j *Job) {
			j.Settings, j.Epoch = settings, 4
			j.Strategies = []Dealing{leapDealing}
			j.Counter = asking{j.Counter, j.Tally}
		})
		if err != nil {
			t.Fatal(err)
		}
		sampler := sample.New(w.topology, sample.Options{Fanouts: []int{5, 5}, Seed: 3})
		dealer, err := leap.Deal(w.layout, settings)
		if err != nil {
			t.Fatal(err)
		}
		for node, got := range all[0].tried[0].loads {
			var want Load
			for step := range uint64(3) {
				seen := map[uint32]bool{}
				for _, g := range dealer.Deal(nil, w.batch[step*512:][:512], node) {
					var b sample.Batch
					if err := sampler.Sample(t.Context(), &b, 4, step, g.Roots); err != nil {
						t.Fatal(err)
					}
					n := uint64(len(g.Roots))
					want.Slots++
					want.Roots += n
					want.Topology += askedBytes * n
					want.Rows += uint64(b.Blocks[0].Cols + b.Blocks[1].Cols)
					want.Inputs += uint64(b.Blocks[0].Cols)
					want.First += uint64(b.Blocks[0].Rows)
					want.Edges += uint64(len(b.Blocks[0].Indices))
					for _, v := range b.Blocks[0].Vertices {
						if seen[v] && settings.Values["leap.dedup"] != strategy.Off {
							continue
						}
						seen[v] = true
						if w.layout.Owner(v) == node {
							want.Local++
						} else {
							want.Remote++
						}
					}
				}
			}
			if got != want {
				t.Errorf("%s: node %d counts %+v, want %+v", name, node, got, want)
			}
		}
	}
}

// A row is what it takes on average, of nodes that have some.
func TestWhatARowTakes(t *testing.T) {
	w := newWorld(t, 3, linksOf(3, link{1e12, 0}))
	all, _, err := w.choose(t, func(node int, j *Job) {
		j.Rows = owned{&world{layout: w.layout, row: []float64{100, 0, 200}[node]}, node}
	})
	if err != nil {
		t.Fatal(err)
	}
	for node, c := range all {
		if c.facts.row != 150+idBytes {
			t.Errorf("node %d: a row takes %g bytes", node, c.facts.row)
		}
	}
}

// A model without hops reads the features of its roots.
func TestNothingIsDrawn(t *testing.T) {
	w := newWorld(t, 2, linksOf(2, link{1e12, 0}))
	all, _, err := w.choose(t, func(_ int, j *Job) { j.Counter = sample.NewCounter(w.topology, sample.Options{Seed: 3}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all[0].tried[1].loads {
		if l.Rows != l.Roots || l.Inputs != l.Roots || l.First != l.Roots || l.Remote != 0 || l.Local != l.Roots || l.Roots == 0 {
			t.Errorf("by leap: %+v", l)
		}
	}
}
