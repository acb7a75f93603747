package p3_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// epochsOf is what all nodes tell of a run by p3, which is the same.
func epochsOf(t *testing.T, r recipe.Recipe, shards []*graph.Shard, nodes int, ways ...string) []trained.Epoch {
	t.Helper()
	r.Sharing = r.Sharing.With(ways...)
	r.Sharing.Strategy = "p3"
	_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: 2}))
	for node := range reports {
		if traintest.Learnt(reports[node]) != traintest.Learnt(reports[0]) {
			t.Fatalf("node %d tells\n%s\nand node 0\n%s", node, traintest.Learnt(reports[node]), traintest.Learnt(reports[0]))
		}
	}
	return reports[0]
}

// payload is the bytes of a kind, but for framing.
func payload(e *trained.Epoch, k peer.Kind) uint64 {
	return e.Sent.Bytes[k] - e.Sent.Requests[k]*(peer.QueryFraming+peer.AnswerFraming)
}

// Where nodes draw each other's blocks none are sent, and nothing else is another: not a
// bit of the weights, not a byte of the rest. Where a node lacks edges they are sent.
func TestBlocksThatAreDrawnAreNotSent(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, deterministic := range []bool{false, true} {
		r := traintest.Small("sage")
		r.Sharing.Deterministic = deterministic
		drawn, sent := epochsOf(t, r, shards, 3), epochsOf(t, r, shards, 3, "p3.push=blocks")
		if traintest.Learnt(drawn) != traintest.Learnt(sent) {
			t.Errorf("deterministic %v: drawn blocks make\n%s\nand those that are sent\n%s", deterministic, traintest.Learnt(drawn), traintest.Learnt(sent))
		}
		for i := 1; i < len(drawn); i++ { // the first has what is brought before it
			a, b := &drawn[i], &sent[i]
			if a.Sent.Requests[peer.Topology] != 0 || a.Sent.Bytes[peer.Topology] != 0 || payload(b, peer.Topology) == 0 {
				t.Errorf("epoch %d: %d bytes of topology where blocks are drawn, %d where they are sent", a.Epoch, a.Sent.Bytes[peer.Topology], b.Sent.Bytes[peer.Topology])
			}
			for _, k := range []peer.Kind{peer.Activation, peer.Model, peer.Gradient, peer.Feature} {
				if a.Sent.Bytes[k] != b.Sent.Bytes[k] {
					t.Errorf("epoch %d: %d bytes of kind %d where blocks are drawn, %d where they are sent", a.Epoch, a.Sent.Bytes[k], k, b.Sent.Bytes[k])
				}
			}
		}
		r.Sharing = r.Sharing.With("topology=sharded")
		if apart := epochsOf(t, r, shards, 3); traintest.Learnt(apart) != traintest.Learnt(drawn) || payload(&apart[1], peer.Topology) <= payload(&sent[1], peer.Topology) {
			t.Errorf("deterministic %v: %d bytes of topology where nodes lack edges, %d where they don't and are sent blocks", deterministic, payload(&apart[1], peer.Topology), payload(&sent[1], peer.Topology))
		}
	}
}

// Owners that compute their roots send fewer activations than slices of the batch do, in
// a graph whose shards are communities. Gradients are the same: with grains to the bit.
func TestOwnersSendFewerActivations(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	own, sliced := epochsOf(t, r, shards, 3), epochsOf(t, r, shards, 3, "p3.roots=slices")
	for i := range own {
		if a, b := payload(&own[i], peer.Activation), payload(&sliced[i], peer.Activation); a == 0 || a >= b {
			t.Errorf("epoch %d: %d bytes of activations by owners, %d by slices", i+1, a, b)
		}
	}
	r.Sharing.Deterministic = true
	if own, sliced := epochsOf(t, r, shards, 3), epochsOf(t, r, shards, 3, "p3.roots=slices"); traintest.Learnt(own) != traintest.Learnt(sliced) {
		t.Errorf("grains of owners make\n%s\nand runs of grains\n%s", traintest.Learnt(own), traintest.Learnt(sliced))
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
		return traintest.Cut(t, src, 8)
	}
	owners := []int{0, 0, 1, 1, 2, 2, 3, 3}
	epoch := func(features int, s strategy.Settings) *trained.Epoch {
		r := traintest.Small("gcn")
		r.Model.Hidden, r.Epochs, r.Sharing = hidden, 1, s
		r.Sharing = r.Sharing.With("topology=replicated")
		_, reports := traintest.NewMesh(nodes, owners).MustRun(t, r, graphOf(features), traintest.Columnwise(train.Options{Threads: 1}))
		return &reports[0][0]
	}
	// The same dealing for both, so that |V_0| and |V_1| are the same.
	centric, p3 := strategy.Settings{Strategy: "centric"}, strategy.Given("p3", "p3.roots=slices")
	const looked = 8
	sources := float64(epoch(looked, centric).Rows.Total())
	targets := float64(payload(epoch(looked, p3), peer.Activation)) / (2 * (nodes - 1) * hidden * element)
	threshold := 2 * nodes * targets / sources
	for _, of := range []float64{0.5, 2} {
		features := int(of*threshold*hidden + 0.5)
		a, b := epoch(features, centric), epoch(features, p3)
		for what, e := range map[string]*trained.Epoch{"centric": a, "p3": b} {
			if e.Strategy != what || e.Rows.Total() > 0 != (what == "centric") {
				t.Fatalf("%s tells %+v", what, e)
			}
		}
		rows, sums := payload(a, peer.Feature)+payload(a, peer.Activation), payload(b, peer.Feature)+payload(b, peer.Activation)
		if sums < rows != (of > 1) {
			t.Errorf("F/H at %g of %.2f: centric sends %d bytes of features and activations, p3 %d", of, threshold, rows, sums)
		}
		if want := uint64(2 * (nodes - 1) * hidden * element * targets); sums != want {
			t.Errorf("%d features: p3 sends %d bytes of activations, and with other features %d", features, sums, want)
		}
	}
}
