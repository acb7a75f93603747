package pipe

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// Histories that are refreshed are of the weights with which a period began: without
// dropout and while weights stay, all that is computed is exact.
func TestRefreshedHistoriesAreExact(t *testing.T) {
	for i, model := range models {
		for _, c := range []struct{ stages, ways, chunks int }{{1, 1, 6}, {3, 1, 6}, {1, 2, 4}, {2, 2, 6}} {
			w := newWorld(t, uint64(i), sizes, anywhere)
			s := newSetup(deep(model, 3), c.stages, c.ways, c.chunks)
			s.noDrop = true
			s.Recompute = i%2 == 0
			j := w.start(t, s)
			_, want := w.whole(t, s, 1, w.weights(j.model))
			for epoch := 1; epoch < 6; epoch++ {
				j.epoch(t, epoch)
				if got := j.plain(); math.Abs(got-want/float64(w.learnt)) > 1e-12 {
					t.Errorf("%s, %+v, epoch %d: the loss is %v, and exactly %v", model, c, epoch, got, want/float64(w.learnt))
				}
			}
		}
	}
}

// Bits depend on ways and chunks alone, and a run that goes on from weights, and those of
// before, comes to the same.
func TestRefreshedRunsGoOn(t *testing.T) {
	for i, model := range []string{"gcnii", "gcn", "resgcn"} {
		for _, ways := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d ways", model, ways), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i), sizes, anywhere)
				s := newSetup(deep(model, 3), 1, ways, 6)
				s.nodes, s.rate, s.Period = 1, 0.1, 4
				want := w.learn(t, s, 7)
				for _, stages := range []int{1, 2, 3} {
					s.stages, s.nodes = stages, stages*ways+stages%2
					mustSame(t, fmt.Sprintf("%d stages", stages), w.learn(t, s, 7), want)
				}
				// After each epoch others take over.
				s.stages, s.nodes = 1, ways
				got, weights, before := "", w.weights(w.model(t, s.spec)), []float64(nil)
				for epoch := 1; epoch <= 7; epoch++ {
					s.stages = 1 + epoch%3
					s.nodes = s.stages * ways
					j := w.start(t, s)
					j.set(weights)
					for _, n := range j.nodes {
						if before != nil {
							n.Device.Write(n.PeriodWeights(), before)
						}
						n.Resumed()
					}
					g, loss := j.epoch(t, epoch)
					got += fmt.Sprint(loss, g, "\n")
					j.settle(t)
					n := j.nodes[epoch%len(j.nodes)]
					weights, before = make([]float64, len(weights)), make([]float64, len(weights))
					n.Device.Read(weights, n.weights)
					n.Device.Read(before, n.PeriodWeights())
				}
				mustSame(t, "taken over each epoch", got, want)
			})
		}
	}
}

// What has its turn later is seen as it was when the period began.
func TestRefreshedRowsStay(t *testing.T) {
	w := newWorld(t, 2, sizes, anywhere)
	s := newSetup(deep("gcn", 3), 1, 1, 6)
	s.rate, s.Period = 0.5, 3
	j := w.start(t, s)
	n := j.nodes[0]
	numbers := func(l *level) []float64 {
		x := make([]float64, l.rows.Rows*l.rows.Cols)
		n.Device.Read(x, n.pastOf(l))
		return x
	}
	var last []float64
	for epoch := range 9 {
		j.epoch(t, epoch+1)
		now := numbers(n.ways[0].levels[1])
		if same := slices.Equal(now, last); same != (epoch%3 != 0) {
			t.Errorf("epoch %d: the history is the same as in the epoch before: %v", epoch, same)
		}
		last = now
	}
}

// Histories cost what the formula says, once in a period.
func TestVolumeOfHistories(t *testing.T) {
	for _, c := range []struct{ stages, ways int }{{3, 1}, {2, 2}, {1, 3}} {
		w := newWorld(t, 3, sizes, anywhere)
		s := newSetup(deep("gcnii", 3), c.stages, c.ways, 6)
		s.Period = 3
		j := w.start(t, s)
		for epoch := 1; epoch <= 4; epoch++ {
			j.epoch(t, epoch)
		}
		var got uint64
		for _, n := range j.nodes {
			got += n.payload(peer.Activation)
		}
		sizes := arrange.Sizes{
			Stages: c.stages, Ways: c.ways, Nodes: s.nodes, Vertices: w.vertices(), Layers: 3,
			Mirrors: w.mirrors(j.nodes[0].Shape), Hidden: s.spec.Hidden, Number: 8, Tensors: 2, Weights: j.model.Size(),
		}
		of := sizes.Of()
		if want := 4*(of.Boundary+of.Halo) + 2*sizes.History(); got != want {
			t.Errorf("%+v: %d bytes in four epochs, of which two begin a period, want %d", c, got, want)
		}
	}
}
