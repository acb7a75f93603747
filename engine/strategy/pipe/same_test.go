package pipe

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// learn trains some epochs and returns all that they came to.
func (w *world) learn(t testing.TB, s setup, epochs int) (all string) {
	t.Helper()
	j := w.start(t, s)
	for epoch := 1; epoch <= epochs; epoch++ {
		g, loss := j.epoch(t, epoch)
		all += fmt.Sprint(loss, g, "\n")
	}
	return all
}

func mustSame(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: other bits", what)
	}
}

// What is learnt depends on the ways and the chunks, and on neither stages nor nodes, nor
// on how it is done.
func TestSameBitsOnAnyNodes(t *testing.T) {
	for i, model := range []string{"gcnii", "gcn", "resgcn", "gat", "gcn split"} {
		for _, halo := range []Halo{{Policy: Exact}, {Policy: Previous}, {Policy: Sampled, Share: 0.5}, {Policy: Skip, Age: 2}} {
			for _, ways := range []int{1, 2, 3} {
				if ways == 1 && halo.Policy != Exact || i > 1 && ways == 3 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d ways", model, halo.Policy, ways), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, uint64(i), sizes, anywhere)
					chunks := 6
					if halo.Policy != Exact {
						chunks = ways
					}
					name, split := strings.CutSuffix(model, " split")
					s := newSetup(deep(name, 3), 1, ways, chunks)
					s.split = split
					s.nodes, s.Halo, s.rate = 1, halo, 0.1
					want := w.learn(t, s, 5)
					for _, o := range []struct {
						stages, nodes    int
						recompute, apart bool
					}{{1, 2, true, false}, {1, ways, false, false}, {2, 2 * ways, false, true}, {3, 3 * ways, true, true}, {3, 3*ways + 1, true, false}} {
						s.stages, s.nodes, s.Recompute, s.apart = o.stages, o.nodes, o.recompute, o.apart
						mustSame(t, fmt.Sprintf("%+v", o), w.learn(t, s, 5), want)
					}
				})
			}
		}
	}
}

// The same in single numbers, on the device that trains.
func TestSameBitsInSingleNumbers(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	s := newSetup(deep("gcnii", 4), 1, 2, 4)
	s.device = func() tensor.Device { return cpu.New(1) }
	s.rate, s.nodes = 0.1, 1
	want := w.learn(t, s, 4)
	for _, stages := range []int{1, 2, 4} {
		s.stages, s.nodes = stages, 2*stages
		mustSame(t, fmt.Sprintf("%d stages", stages), w.learn(t, s, 4), want)
	}
}

// Fewer positions than stages: all is done.
func TestFewPositions(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	s := newSetup(deep("gcn", 4), 1, 1, 2)
	want := w.learn(t, s, 3)
	s.stages, s.nodes = 4, 4
	mustSame(t, "two positions in four stages", w.learn(t, s, 3), want)
}

// Sampling all, and skipping nothing, are what they should be.
func TestPoliciesMeetExact(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	s := newSetup(deep("gcn", 3), 1, 2, 2)
	s.rate = 0.1
	want := w.learn(t, s, 4)
	s.Halo = Halo{Policy: Sampled, Share: 1}
	mustSame(t, "a share of 1", w.learn(t, s, 4), want)
	s.Halo = Halo{Policy: Skip, Age: 0}
	mustSame(t, "an age of 0", w.learn(t, s, 4), want)
	s.Halo = Halo{Policy: Skip, Age: 1}
	if w.learn(t, s, 4) == want {
		t.Error("an age of 1 has the bits of exact rows")
	}
	s.Halo = Halo{Policy: Previous}
	if w.learn(t, s, 4) == want {
		t.Error("rows of the last epoch have the bits of exact ones")
	}
	if first := w.learn(t, s, 1); first != want[:len(first)] {
		t.Error("the first epoch does not use current rows")
	}
}

// While weights stay and nothing is dropped, the last epoch's rows and gradients are those
// of now.
func TestPreviousEpoch(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	s := newSetup(deep("gcnii", 3), 1, 2, 2)
	s.noDrop, s.Halo.Policy = true, Previous
	j := w.start(t, s)
	want, _ := w.whole(t, s, 1, w.weights(j.model))
	for epoch := 1; epoch < 8; epoch++ {
		got, _ := j.epoch(t, epoch)
		mustNear(t, fmt.Sprintf("the gradient of epoch %d", epoch), got, want, 1e-11)
	}
}

// A share of the rows, scaled up, is all of them on average, and so are gradients.
func TestSamplingIsUnbiased(t *testing.T) {
	const epochs, share = 400, 0.4
	w := newWorld(t, 8, sizes, anywhere)
	spec := deep("gcn", 2)
	s := newSetup(spec, 1, 2, 2)
	s.noDrop, s.linear = true, true
	want, _ := w.start(t, s).epoch(t, 1)
	want = slices.Clone(want)
	s.Halo = Halo{Policy: Sampled, Share: share}
	j := w.start(t, s)
	mean, square := make([]float64, len(want)), make([]float64, len(want))
	for epoch := 1; epoch <= epochs; epoch++ {
		g, _ := j.epoch(t, epoch)
		for i, x := range g {
			mean[i] += x / epochs
			square[i] += x * x / epochs
		}
	}
	spread := 0.0
	for i := range want {
		deviation := math.Sqrt(max(0, square[i]-mean[i]*mean[i]) / epochs)
		spread = max(spread, deviation)
		if math.Abs(mean[i]-want[i]) > 4*deviation+1e-9 {
			t.Errorf("weight %d: the mean gradient is %v±%v, want %v", i, mean[i], deviation, want[i])
		}
	}
	if spread == 0 {
		t.Error("nothing was sampled")
	}
	// In bytes it is about that share.
	some := float64(j.nodes[0].payload(peer.Activation)+j.nodes[1].payload(peer.Activation)) / epochs
	m := w.mirrors(j.nodes[0].Shape)
	all := float64(2 * m * spec.Hidden * 8)
	if some < 0.9*share*all || some > 1.1*share*all {
		t.Errorf("%g bytes an epoch are sent, of %g", some, all)
	}
}

// payload is what a node took of a kind, without framing.
func (n *node) payload(k peer.Kind) uint64 {
	c := n.tally.Read()
	return c.Bytes[k] - c.Requests[k]*(peer.QueryFraming+peer.AnswerFraming)
}

// What nodes send each other is what the formulas say, to the byte.
func TestVolumes(t *testing.T) {
	for _, model := range []string{"gcn", "gcnii", "resgcn"} {
		for _, c := range []struct{ stages, ways, chunks, layers, nodes int }{
			{1, 1, 4, 3, 1}, {2, 1, 8, 3, 2}, {3, 1, 4, 3, 3}, {4, 1, 8, 5, 4}, {1, 2, 2, 3, 2}, {1, 4, 4, 2, 4},
			{2, 2, 8, 4, 4}, {2, 4, 8, 2, 8}, {3, 2, 4, 3, 6}, {2, 1, 4, 3, 4},
			{1, 3, 3, 3, 3}, {2, 3, 6, 2, 6}, // whose shards are no whole parts of the tree
		} {
			w := newWorld(t, 3, []int{5, 4, 6, 3, 5, 4, 2, 7}, anywhere)
			s := newSetup(deep(model, c.layers), c.stages, c.ways, c.chunks)
			s.nodes = c.nodes
			j := w.start(t, s)
			const epochs = 2
			for epoch := 1; epoch <= epochs; epoch++ {
				j.epoch(t, epoch)
			}
			var activation, gradient uint64
			for _, n := range j.nodes {
				activation += n.payload(peer.Activation)
				gradient += n.payload(peer.Gradient)
			}
			sizes := arrange.Sizes{
				Stages: c.stages, Ways: c.ways, Nodes: c.nodes, Vertices: w.vertices(), Layers: c.layers,
				Mirrors: w.mirrors(j.nodes[0].Shape), Hidden: s.spec.Hidden, Number: 8, Tensors: 1, Weights: j.model.Size(),
				Partials: j.nodes[0].Partials(c.nodes),
			}
			switch model {
			case "gcn":
				sizes.Layers--
			case "gcnii":
				sizes.Tensors = 2
			}
			want := sizes.Of()
			activated := epochs * (want.Boundary + want.Halo)
			if c.chunks > c.ways {
				activated += sizes.History() // of the first epoch
			}
			if activation != activated {
				t.Errorf("%s, %+v: %d bytes of activations in an epoch, want %d", model, c, activation/epochs, activated/epochs)
			}
			if gradient != epochs*want.Sum {
				t.Errorf("%s, %+v: %d bytes of gradients in an epoch, want %d", model, c, gradient/epochs, want.Sum)
			}
		}
	}
}

// What is large is taken window by window.
func TestWindows(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	s := newSetup(deep("gcnii", 3), 2, 2, 4)
	s.rate = 0.1
	want := w.learn(t, s, 3)
	defer func(n int) { traffic.WindowBytes = n }(traffic.WindowBytes)
	traffic.WindowBytes = 72
	mustSame(t, "in windows", w.learn(t, s, 3), want)
}

// Where sending is skipped, ways see what was sent last: while weights
// stay, that is what they would be sent.
func TestSkippedRowsAreThoseSentBefore(t *testing.T) {
	w := newWorld(t, 5, sizes, anywhere)
	s := newSetup(deep("gcn", 2), 1, 2, 2)
	s.noDrop = true
	exact := w.start(t, s)
	s.Halo = Halo{Policy: Skip, Age: 2}
	skips := w.start(t, s)
	for epoch := 1; epoch < 6; epoch++ {
		_, want := exact.epoch(t, epoch)
		if _, got := skips.epoch(t, epoch); got != want {
			t.Errorf("epoch %d: the loss is %v, want %v", epoch, got, want)
		}
	}
}
