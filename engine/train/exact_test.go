package train_test

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The gradient of a step is that of one node, whoever computes what of it, wherever
// features and edges are, and however they are asked for.
func TestGradientsAreThoseOfOneNode(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "mlp"} {
		r := traintest.ExactRecipe(model)
		if model == "mlp" {
			r.Fanouts = nil
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				for _, topology := range []string{"replicated", "sharded"} {
					r.Sharing = sharing
					r.Sharing = r.Sharing.With("topology=" + topology)
					traintest.Within(t, fmt.Sprintf("%s on %d nodes by %s, %s", model, nodes, how, topology), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
				}
			}
		}
	}
}

func TestHowRowsAreAskedForChangesNoGradient(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r := traintest.ExactRecipe("sage")
	want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
	for _, pregather := range []string{"on", "off"} {
		for _, dedup := range []string{"on", "off"} {
			for _, topology := range []string{"replicated", "sharded"} {
				r.Sharing = strategy.Given("leap", "topology="+topology, "leap.mode=migrate", "leap.merge=off", "leap.pregather="+pregather, "leap.dedup="+dedup)
				traintest.Within(t, fmt.Sprintf("pregather %s, dedup %s, %s", pregather, dedup, topology), r, shards, traintest.Wide(train.Options{Threads: 1}), 3, want, 1e-10)
			}
		}
	}
}

// What a node holds beside its own it asks nobody for, and computes no more for it.
func TestCopiesSpareQuestionsAndChangeNoGradient(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r := traintest.ExactRecipe("gcn")
	want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
	for _, name := range []string{"centric", "leap"} {
		r.Sharing = strategy.Given(name, "topology=sharded")
		remote := map[bool]int{}
		for _, copies := range []bool{false, true} {
			m := traintest.NewMesh(3, traintest.Uneven(6, 3))
			m.Copies = copies
			all := m.Start(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
			traintest.Alike(t, name, m, all, want, 1e-10)
			for _, tr := range all {
				remote[copies] += tr.Run.Batches.Slots[0].Remote
			}
		}
		if remote[true] >= remote[false] {
			t.Errorf("%s: %d rows come with copies and %d without", name, remote[true], remote[false])
		}
	}
}

// Who asks other nodes for neighbours knows how many edges there are, which bounds the answers.
func TestAskersKnowHowManyEdgesThereAre(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r, edges := traintest.ExactRecipe("gcn"), 0
	for _, s := range shards {
		edges += len(s.Indices)
	}
	r.Sharing = strategy.Given("centric", "topology=sharded")
	for node, l := range traintest.NewMesh(3, traintest.Uneven(6, 3)).Start(t, r, shards, traintest.Wide(train.Options{Threads: 1})) {
		if far := train.NewLooker(l.Run).Far; far == nil || far.Edges != uint64(edges) {
			t.Errorf("node %d asks by %+v, of a graph of %d edges", node, far, edges)
		}
	}
}

// Batches with fewer roots than there are nodes leave some without any.
func TestBatchesSmallerThanTheMesh(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r := traintest.ExactRecipe("gcn")
	r.Batch = 3
	want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
	for how, sharing := range traintest.Sharings(5) {
		for _, deterministic := range []bool{false, true} {
			r.Sharing = sharing
			r.Sharing.Deterministic = deterministic
			traintest.Within(t, fmt.Sprintf("%s, deterministic %v", how, deterministic), r, shards, traintest.Wide(train.Options{Threads: 1}), 5, want, 1e-10)
		}
	}
}

func TestGradientsInSinglePrecision(t *testing.T) {
	dense, sparse := traintest.Communities(t, 1500), traintest.CoraShards(t)
	for _, c := range []struct {
		name, model, topology string
		shards                []*graph.Shard
	}{
		{"dense", "gat", "sharded", dense}, {"dense", "gcn", "replicated", dense}, {"sparse", "sage", "sharded", sparse},
	} {
		r := traintest.Unaccelerated(traintest.Small(c.model))
		r.Batch, r.Model.Hidden = 100, 4
		want := traintest.Started(t, r, c.shards, train.Options{Threads: 2})
		for how, sharing := range traintest.Sharings(3) {
			r.Sharing = sharing
			r.Sharing = r.Sharing.With("topology=" + c.topology)
			traintest.Within(t, fmt.Sprintf("%s, %s by %s", c.name, c.model, how), r, c.shards, train.Options{Strategies: strategies.All, Threads: 2}, 3, want, 1e-4)
		}
	}
}
