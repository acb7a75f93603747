package train

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// epochsOf is what all nodes tell of a run by p3, which is the same.
func epochsOf(t *testing.T, r Recipe, shards []*graph.Shard, nodes int, ways strategy.P3Settings) []Epoch {
	t.Helper()
	r.Sharing.Strategy, r.Sharing.P3 = strategy.P3, ways
	_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, columnwise(Options{Threads: 2}))
	for node := range told {
		if learnt(told[node]) != learnt(told[0]) {
			t.Fatalf("node %d tells\n%s\nand node 0\n%s", node, learnt(told[node]), learnt(told[0]))
		}
	}
	return told[0]
}

// payload is the bytes of a kind, but for framing.
func payload(e *Epoch, k strategy.Kind) uint64 {
	return e.Sent.Bytes[k] - e.Sent.Requests[k]*(strategy.QueryFraming+strategy.AnswerFraming)
}

// Where nodes draw each other's blocks none are sent, and nothing else is another: not a
// bit of the weights, not a byte of the rest. Where a node lacks edges they are sent.
func TestBlocksThatAreDrawnAreNotSent(t *testing.T) {
	shards := communities(t, 1500)
	for _, deterministic := range []bool{false, true} {
		r := small("sage")
		r.Sharing.Deterministic = deterministic
		drawn, sent := epochsOf(t, r, shards, 3, strategy.P3Settings{}), epochsOf(t, r, shards, 3, strategy.P3Settings{Push: "blocks"})
		if learnt(drawn) != learnt(sent) {
			t.Errorf("deterministic %v: drawn blocks make\n%s\nand those that are sent\n%s", deterministic, learnt(drawn), learnt(sent))
		}
		for i := 1; i < len(drawn); i++ { // the first has what is brought before it
			a, b := &drawn[i], &sent[i]
			if a.Sent.Requests[strategy.Topology] != 0 || a.Sent.Bytes[strategy.Topology] != 0 || payload(b, strategy.Topology) == 0 {
				t.Errorf("epoch %d: %d bytes of topology where blocks are drawn, %d where they are sent", a.Epoch, a.Sent.Bytes[strategy.Topology], b.Sent.Bytes[strategy.Topology])
			}
			for _, k := range []strategy.Kind{strategy.Activation, strategy.Model, strategy.Gradient, strategy.Feature} {
				if a.Sent.Bytes[k] != b.Sent.Bytes[k] {
					t.Errorf("epoch %d: %d bytes of kind %d where blocks are drawn, %d where they are sent", a.Epoch, a.Sent.Bytes[k], k, b.Sent.Bytes[k])
				}
			}
		}
		r.Sharing.Topology = "sharded"
		if apart := epochsOf(t, r, shards, 3, strategy.P3Settings{}); learnt(apart) != learnt(drawn) || payload(&apart[1], strategy.Topology) <= payload(&sent[1], strategy.Topology) {
			t.Errorf("deterministic %v: %d bytes of topology where nodes lack edges, %d where they don't and are sent blocks", deterministic, payload(&apart[1], strategy.Topology), payload(&sent[1], strategy.Topology))
		}
	}
}

// Owners that compute their roots send fewer activations than slices of the batch do, in
// a graph whose shards are communities. Gradients are the same: with grains to the bit.
func TestOwnersSendFewerActivations(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	own, sliced := epochsOf(t, r, shards, 3, strategy.P3Settings{}), epochsOf(t, r, shards, 3, strategy.P3Settings{Roots: "slices"})
	for i := range own {
		if a, b := payload(&own[i], strategy.Activation), payload(&sliced[i], strategy.Activation); a == 0 || a >= b {
			t.Errorf("epoch %d: %d bytes of activations by owners, %d by slices", i+1, a, b)
		}
	}
	r.Sharing.Deterministic = true
	if own, sliced := epochsOf(t, r, shards, 3, strategy.P3Settings{}), epochsOf(t, r, shards, 3, strategy.P3Settings{Roots: "slices"}); learnt(own) != learnt(sliced) {
		t.Errorf("grains of owners make\n%s\nand runs of grains\n%s", learnt(own), learnt(sliced))
	}
}

// p3 beats centric where F/H > 2N|V_1|/|V_0|, in bytes of features and activations that
// were counted: a graph with half and one with twice as many features as that.
func TestWhereP3SendsLessThanCentric(t *testing.T) {
	const nodes, hidden, element = 4, 16, 4
	graphOf := func(features int) []*graph.Shard {
		src, err := generate.New(generate.Options{
			Kind: "rmat", Vertices: 1500, Edges: 9000, Features: features, Classes: 4, Seed: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		return cut(t, src, 8)
	}
	owners := []int{0, 0, 1, 1, 2, 2, 3, 3}
	epoch := func(features int, s strategy.Settings) *Epoch {
		r := small("gcn")
		r.Model.Hidden, r.Epochs, r.Sharing = hidden, 1, s
		r.Sharing.Topology = "replicated"
		_, told := newMesh(nodes, owners).mustRun(t, r, graphOf(features), columnwise(Options{Threads: 1}))
		return &told[0][0]
	}
	// The same dealing for both, so that |V_0| and |V_1| are the same.
	centric, p3 := strategy.Settings{Strategy: strategy.Centric}, strategy.Settings{Strategy: strategy.P3, P3: strategy.P3Settings{Roots: "slices"}}
	const looked = 8
	sources := float64(epoch(looked, centric).Rows)
	targets := float64(payload(epoch(looked, p3), strategy.Activation)) / (2 * (nodes - 1) * hidden * element)
	threshold := 2 * nodes * targets / sources
	for _, of := range []float64{0.5, 2} {
		features := int(of*threshold*hidden + 0.5)
		a, b := epoch(features, centric), epoch(features, p3)
		for what, e := range map[string]*Epoch{"centric": a, "p3": b} {
			if e.Strategy != what || e.Rows > 0 != (what == "centric") {
				t.Fatalf("%s tells %+v", what, e)
			}
		}
		rows, sums := payload(a, strategy.Feature)+payload(a, strategy.Activation), payload(b, strategy.Feature)+payload(b, strategy.Activation)
		if sums < rows != (of > 1) {
			t.Errorf("F/H at %g of %.2f: centric sends %d bytes of features and activations, p3 %d", of, threshold, rows, sums)
		}
		if want := uint64(2 * (nodes - 1) * hidden * element * targets); sums != want {
			t.Errorf("%d features: p3 sends %d bytes of activations, and with other features %d", features, sums, want)
		}
	}
}
