package pipe

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// levels counts those of a model that see rows of other chunks: a model that begins with
// its features reads the true ones.
var levels = map[string]int{"gcn": 2, "sage": 2, "gcnii": 3, "resgcn": 3}

// While weights stay and nothing is dropped, what epochs leave becomes exact from one
// level to the next, one period each; what is made is exact from the start, which is a
// warm start.
func TestLeftHistoriesBecomeExact(t *testing.T) {
	for model, n := range levels {
		for _, c := range []struct{ stages, ways, chunks, period int }{{1, 1, 6, 1}, {3, 1, 6, 2}, {2, 2, 6, 3}} {
			w := newWorld(t, 3, sizes, anywhere)
			s := newSetup(deep(model, 3), c.stages, c.ways, c.chunks)
			s.noDrop, s.Period = true, c.period
			_, want := w.whole(t, s, 1, w.weights(w.model(t, s.spec)))
			for _, s.Histories = range []string{Zeros, Left} {
				j := w.start(t, s)
				for epoch := range (n + 1) * c.period {
					j.epoch(t, epoch+1)
					off := math.Abs(j.plain() - want/float64(w.learnt))
					switch exact := s.Histories == Left || epoch >= n*c.period; {
					case exact && off > 1e-12:
						t.Errorf("%s, %+v, %s: the loss of epoch %d is %g off", model, c, s.Histories, epoch, off)
					case !exact && off < 1e-9:
						t.Errorf("%s, %+v, %s: the loss of epoch %d is exact already", model, c, s.Histories, epoch)
					}
				}
			}
		}
	}
}

// An epoch sees the rows that the last epoch of the period before has left: those of 1 to
// as many epochs ago as a period has, and zeros or what was made in the first.
func TestAgesOfLeftHistories(t *testing.T) {
	const period = 3
	for _, histories := range []string{Zeros, Left} {
		w := newWorld(t, 2, sizes, anywhere)
		s := newSetup(deep("gcnii", 3), 1, 2, 6)
		s.nodes, s.rate, s.Period, s.Histories = 1, 0.5, period, histories
		j := w.start(t, s)
		n := j.nodes[0]
		all := func(of func(l *level) tensor.Matrix) (x []float64) {
			for _, way := range n.ways {
				for _, l := range way.levels {
					if l == nil {
						continue
					}
					m := of(l)
					some := make([]float64, m.Rows*m.Cols)
					n.Device.Read(some, m)
					x = append(x, some...)
				}
			}
			return x
		}
		var seen, first []float64
		var left [][]float64
		n.trace = func(e event, place int) {
			switch {
			case e == forwardDone && place == 0:
				seen = all(func(l *level) tensor.Matrix { return n.pastOf(l) })
			case e == forwardDone && place == len(n.order)-1:
				left = append(left, all(func(l *level) tensor.Matrix { return l.rows }))
			}
		}
		for epoch := range 3*period + 1 {
			j.epoch(t, epoch+1)
			if epoch == 0 {
				first = seen
			}
			want := first
			if from := period*(epoch/period) - 1; from >= 0 {
				want = left[from]
			}
			if !slices.Equal(seen, want) {
				t.Errorf("%s: epoch %d sees other rows than those of epoch %d", histories, epoch, period*(epoch/period)-1)
			}
			if epoch > 0 && slices.Equal(left[epoch], left[epoch-1]) {
				t.Fatal("all epochs leave the same: the test shows nothing")
			}
		}
		if zeros := !slices.ContainsFunc(first, func(x float64) bool { return x != 0 }); zeros != (histories == Zeros) {
			t.Errorf("%s: the first history is zeros: %v", histories, zeros)
		}
	}
}

// Where the last epoch's gradients stand for those that come too late, nothing is lost
// once weights stay: the gradient is that of one machine as soon as it has come down all
// levels, one epoch each, in whatever order chunks go.
func TestKeptGradientsBecomeExact(t *testing.T) {
	for model, n := range levels {
		for _, c := range []struct {
			stages, ways, chunks int
			recompute            bool
		}{{1, 1, 6, true}, {3, 1, 3, false}, {2, 2, 6, true}} {
			w := newWorld(t, 5, sizes, anywhere)
			s := newSetup(deep(model, 3), c.stages, c.ways, c.chunks)
			s.noDrop, s.Kept, s.Factor, s.Recompute = true, true, 1, c.recompute
			j := w.start(t, s)
			want, _ := w.whole(t, s, 1, w.weights(j.model))
			for epoch := range n + 3 {
				got, _ := j.epoch(t, epoch+1)
				what := fmt.Sprintf("%s, %+v, epoch %d", model, c, epoch)
				if epoch >= n {
					mustNear(t, what, got, want, 1e-11)
					continue
				}
				off := 0.0
				for i := range got {
					off = max(off, math.Abs(got[i]-want[i]))
				}
				if off < 1e-9 {
					t.Errorf("%s: the gradient is exact already", what)
				}
			}
		}
	}
}

// What depends on the epochs before comes to the same bits on any nodes, too.
func TestChainedRunsAreTheSameOnAnyNodes(t *testing.T) {
	for i, o := range []struct {
		histories string
		kept      bool
		period    int
	}{{Zeros, false, 2}, {Left, true, 1}, {Made, true, 3}} {
		for _, ways := range []int{1, 2} {
			w := newWorld(t, uint64(i), sizes, anywhere)
			s := newSetup(deep("gcnii", 3), 1, ways, 6)
			s.nodes, s.rate, s.Histories, s.Kept, s.Period = 1, 0.1, o.histories, o.kept, o.period
			if o.kept {
				s.Factor = 1
			}
			want := w.learn(t, s, 6)
			for _, stages := range []int{1, 2, 3} {
				s.stages, s.nodes, s.Recompute = stages, stages*ways+stages%2, stages == 2
				mustSame(t, fmt.Sprintf("%+v, %d stages of %d ways", o, stages, ways), w.learn(t, s, 6), want)
			}
		}
	}
}

// What one epoch leaves for the next is in memory that was taken before.
func TestWhatEpochsLeaveTakesNoMemory(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	s := newSetup(deep("gcnii", 3), 1, 2, 6)
	s.device = func() tensor.Device { return cpu.New(1) }
	s.nodes, s.Histories, s.Kept, s.Factor, s.Period = 1, Left, true, 1, 1
	j := w.start(t, s)
	for epoch := 1; epoch < 4; epoch++ {
		j.epoch(t, epoch)
	}
	n := j.nodes[0]
	if allocs := testing.AllocsPerRun(20, func() { n.begin(); n.endPeriod() }); allocs > 0 {
		t.Errorf("an epoch begins and ends with %v allocations", allocs)
	}
}

// Histories that epochs leave cost nothing to bring, but for the first.
func TestVolumeOfLeftHistories(t *testing.T) {
	for _, histories := range []string{Left, Zeros} {
		w := newWorld(t, 3, sizes, anywhere)
		s := newSetup(deep("gcnii", 3), 2, 2, 6)
		s.Histories, s.Period = histories, 1
		j := w.start(t, s)
		for epoch := 1; epoch <= 3; epoch++ {
			j.epoch(t, epoch)
		}
		var got uint64
		for _, n := range j.nodes {
			got += n.payload(peer.Activation)
		}
		sizes := arrange.Sizes{
			Stages: 2, Ways: 2, Nodes: 4, Vertices: w.vertices(), Layers: 3,
			Mirrors: w.mirrors(j.nodes[0].Shape), Hidden: s.spec.Hidden, Number: 8, Tensors: 2, Weights: j.model.Size(),
		}
		of := sizes.Of()
		want := 3 * (of.Boundary + of.Halo)
		if histories == Left {
			want += sizes.History()
		}
		if got != want {
			t.Errorf("%s: %d bytes in three epochs, want %d", histories, got, want)
		}
	}
}
