package train

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// sharings are the ways to share that are compared with one node.
func sharings(nodes int) map[string]strategy.Settings {
	all := map[string]strategy.Settings{
		"centric": {Strategy: strategy.Centric},
		"stay":    {Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: "stay"}},
	}
	for _, slots := range []int{1, 2, nodes} {
		if slots <= nodes {
			all[fmt.Sprintf("migrate %d", slots)] = strategy.Settings{Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: "migrate", Merge: fmt.Sprint(slots)}}
		}
	}
	return all
}

// exactRecipe has all that could make a step depend on who computes it: dropout, drawn
// neighbours, a last batch that is smaller.
func exactRecipe(model string) Recipe {
	r := DefaultRecipe(model)
	r.Model.Hidden, r.Model.Dropout, r.Model.InputDropout = 4, 0.4, 0.3
	if model == "gcnii" || model == "resgcn" {
		r.Model.Layers, r.Model.InputDropout = 2, 0
	}
	if model == "gat" {
		r.Model.Heads, r.Model.AttentionDropout = 2, 0.3
	}
	r.Fanouts, r.Batch, r.Seed = []int{3, 2}, 17, 11
	return unaccelerated(r)
}

// unaccelerated has an optimizer that remembers nothing: a run is what its weights are.
func unaccelerated(r Recipe) Recipe {
	r.Optimizer.Kind, r.Rate = "sgd", 0.3
	return r
}

// within compares the gradients and losses of some steps with those of one node, on all
// nodes.
func within(t *testing.T, name string, r Recipe, shards []*graph.Shard, o Options, nodes int, want *learner, most float64) {
	t.Helper()
	m := newMesh(nodes, uneven(len(shards), nodes))
	all := m.start(t, r, shards, o)
	alike(t, name, m, all, want, most)
}

func alike(t *testing.T, name string, m *mesh, all []*learner, want *learner, most float64) {
	t.Helper()
	begin := initial(t, want.model, want.recipe.Seed)
	want.device.Write(want.weights, begin)
	for at, step := range []int{0, want.batches.steps - 1} {
		expected, err := want.one(t.Context(), 1+at, step)
		if err != nil {
			t.Fatal(err)
		}
		losses := make([]float64, len(all))
		err = m.each(func(node int) (err error) {
			losses[node], err = all[node].one(t.Context(), 1+at, step)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for node, tr := range all {
			if d := distance(tr.gradient(), want.gradient()); !(d <= most) || math.Abs(losses[node]-expected) > (most+1e-7)*expected {
				t.Fatalf("%s, node %d, step %d: the gradient is %.3g off, the loss %g in place of %g", name, node, step, d, losses[node], expected)
			}
		}
	}
}

// distance is relative to b.
func distance(a, b []float64) float64 {
	sum, of := 0.0, 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
		of += b[i] * b[i]
	}
	return math.Sqrt(sum / of)
}

// The gradient of a step is that of one node, whoever computes what of it, wherever
// features and edges are, and however they are asked for.
func TestGradientsAreThoseOfOneNode(t *testing.T) {
	shards := tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn"} {
		r := exactRecipe(model)
		want := started(t, r, shards, wide(Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range sharings(nodes) {
				for _, topology := range []string{"replicated", "sharded"} {
					r.Sharing = sharing
					r.Sharing.Topology = topology
					within(t, fmt.Sprintf("%s on %d nodes by %s, %s", model, nodes, how, topology), r, shards, wide(Options{Threads: 1}), nodes, want, 1e-10)
				}
			}
		}
	}
}

func TestHowRowsAreAskedForChangesNoGradient(t *testing.T) {
	shards := tiny(t, 90, 6)
	r := exactRecipe("sage")
	want := started(t, r, shards, wide(Options{Threads: 1}))
	for _, apart := range []bool{false, true} {
		for _, repeated := range []bool{false, true} {
			for _, topology := range []string{"replicated", "sharded"} {
				r.Sharing = strategy.Settings{Strategy: strategy.Leap, Topology: topology, Leap: strategy.LeapSettings{Mode: "migrate", Merge: "off", Apart: apart, Repeated: repeated}}
				within(t, fmt.Sprintf("apart %v, repeated %v, %s", apart, repeated, topology), r, shards, wide(Options{Threads: 1}), 3, want, 1e-10)
			}
		}
	}
}

// What a node holds beside its own it asks nobody for, and computes no more for it.
func TestCopiesSpareQuestionsAndChangeNoGradient(t *testing.T) {
	shards := tiny(t, 90, 6)
	r := exactRecipe("gcn")
	want := started(t, r, shards, wide(Options{Threads: 1}))
	for _, name := range []string{strategy.Centric, strategy.Leap} {
		r.Sharing = strategy.Settings{Strategy: name, Topology: "sharded"}
		remote := map[bool]int{}
		for _, copies := range []bool{false, true} {
			m := newMesh(3, uneven(6, 3))
			m.copies = copies
			all := m.start(t, r, shards, wide(Options{Threads: 1}))
			alike(t, name, m, all, want, 1e-10)
			for _, tr := range all {
				remote[copies] += tr.batches.slots[0].remote
			}
		}
		if remote[true] >= remote[false] {
			t.Errorf("%s: %d rows come with copies and %d without", name, remote[true], remote[false])
		}
	}
}

// Batches with fewer roots than there are nodes leave some without any.
func TestBatchesSmallerThanTheMesh(t *testing.T) {
	shards := tiny(t, 90, 6)
	r := exactRecipe("gcn")
	r.Batch = 3
	want := started(t, r, shards, wide(Options{Threads: 1}))
	for how, sharing := range sharings(5) {
		for _, deterministic := range []bool{false, true} {
			r.Sharing = sharing
			r.Sharing.Deterministic = deterministic
			within(t, fmt.Sprintf("%s, deterministic %v", how, deterministic), r, shards, wide(Options{Threads: 1}), 5, want, 1e-10)
		}
	}
}

func TestGradientsInSinglePrecision(t *testing.T) {
	dense, sparse := communities(t, 1500), coraShards(t)
	for _, c := range []struct {
		name, model, topology string
		shards                []*graph.Shard
	}{
		{"dense", "gat", "sharded", dense}, {"dense", "gcn", "replicated", dense}, {"sparse", "sage", "sharded", sparse},
	} {
		r := unaccelerated(small(c.model))
		r.Batch, r.Model.Hidden = 100, 4
		want := started(t, r, c.shards, Options{Threads: 2})
		for how, sharing := range sharings(3) {
			r.Sharing = sharing
			r.Sharing.Topology = c.topology
			within(t, fmt.Sprintf("%s, %s by %s", c.name, c.model, how), r, c.shards, Options{Threads: 2}, 3, want, 1e-4)
		}
	}
}

// initial are the weights that a model begins with.
func initial(t testing.TB, m *nn.Model, seed uint64) []float64 {
	t.Helper()
	w, err := m.Initial(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
