package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// columnwise is Options with p3 among the strategies.
func columnwise(o Options) Options {
	o.Strategies = append(slices.Clone(strategies), p3.Strategy{})
	return o
}

// frontWays are the exact ways of p3.
func frontWays() (all []strategy.P3Settings) {
	for _, roots := range []string{"", "slices"} {
		for _, push := range []string{"", "blocks"} {
			all = append(all, strategy.P3Settings{Roots: roots, Push: push})
		}
	}
	return all
}

func TestColumnsMakeTheGradientsOfOneNode(t *testing.T) {
	shards := tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gin", "mlp"} {
		r := exactRecipe(model)
		r.Model.Residual = model == "sage"
		if model == "mlp" {
			r.Fanouts = nil
		}
		want := started(t, r, shards, wide(Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for topology, deterministic := range map[string]bool{"replicated": false, "sharded": true} {
				for _, ways := range frontWays() {
					r.Sharing = strategy.Settings{Strategy: strategy.P3, Topology: topology, Deterministic: deterministic, P3: ways}
					within(t, fmt.Sprintf("%s on %d nodes, %s, deterministic %v, %+v", model, nodes, topology, deterministic, ways), r, shards, columnwise(wide(Options{Threads: 1})), nodes, want, 1e-10)
				}
			}
		}
	}
}

// Where one batch serves all epochs, what drops of the features is another each time.
func TestColumnsOfFullBatches(t *testing.T) {
	shards := tiny(t, 90, 6)
	r := exactRecipe("gcn")
	r.Batch, r.Fanouts = 0, nil
	want := started(t, r, shards, wide(Options{Threads: 1}))
	r.Sharing.Strategy = strategy.P3
	all := newMesh(3, uneven(len(shards), 3))
	trainers := all.start(t, r, shards, columnwise(wide(Options{Threads: 1})))
	for epoch := 1; epoch < 4; epoch++ {
		step := func(tr *learner) error {
			tr.at.Epoch = epoch
			_, _, err := tr.step(t.Context(), tr.batches.slots[0], 0.01)
			return err
		}
		if err := step(want); err != nil {
			t.Fatal(err)
		}
		if err := all.each(func(node int) error { return step(trainers[node]) }); err != nil {
			t.Fatal(err)
		}
		for node, tr := range trainers {
			if d := distance(tr.gradient(), want.gradient()); !(d < 1e-10) {
				t.Errorf("epoch %d, node %d: the gradient is %.3g off", epoch, node, d)
			}
		}
	}
}

func TestColumnsMakeTheSameBitsOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := communities(t, 1500), coraShards(t)
	for _, full := range []bool{false, true} {
		for name, shards := range map[string][]*graph.Shard{"dense": dense, "sparse": sparse} {
			r := small("sage")
			r.Epochs, r.Model.InputDropout = 2, 0.2
			r.Sharing = strategy.Settings{Strategy: strategy.P3, Deterministic: true}
			if full {
				r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
			}
			want := ""
			for _, nodes := range []int{1, 2, 5} {
				_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, columnwise(Options{Threads: map[int]int{1: 2, 2: 8, 5: 1}[nodes]}))
				for node, got := range told {
					if want == "" {
						want = learnt(got)
					}
					if learnt(got) != want {
						t.Errorf("%s, full %v, node %d of %d:\n%s\nand one node\n%s", name, full, node, nodes, learnt(got), want)
					}
				}
			}
		}
	}
}

// No feature travels while steps are made, and all nodes tell the same of that.
func TestWhatColumnsSend(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Sharing.Strategy = strategy.P3
	_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, columnwise(Options{Threads: 2}))
	for node := range told {
		for i, e := range told[node] {
			b := e.Sent.Bytes
			if e.Strategy != strategy.P3 || e.Rows != 0 || e.Behind != 0 || b[strategy.Feature] != 0 || b[strategy.Activation] == 0 || b[strategy.Gradient] == 0 {
				t.Errorf("node %d tells %+v", node, e)
			}
			// Each node takes the two others' rows of the gradient of the first weight.
			const framing, weight = strategy.QueryFraming + strategy.AnswerFraming, 4 * 20 * 12
			if want := uint64(e.Steps * (3*2*framing + 2*weight)); b[strategy.Model] != want {
				t.Errorf("%d bytes of the model in place of %d", b[strategy.Model], want)
			}
			if p := e.Phases; p.Reduce <= 0 || p.Compute <= 0 || e.Hash != told[0][i].Hash {
				t.Errorf("node %d tells %+v", node, e)
			}
		}
	}
}

// A node that is lost takes nothing with it: others have its rows of the weights, and
// their moments.
func TestColumnsOutliveTheirNode(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Sharing = strategy.Settings{Strategy: strategy.P3, Deterministic: true}
	_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, columnwise(Options{Threads: 1}))
	want := told[0][len(told[0])-1].Hash

	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("a node is lost")
	m := newMesh(3, uneven(len(shards), 3))
	m.net.Trouble = func(_ context.Context, _, _ int, q strategy.Query) error {
		if q.Service == strategy.Offers && q.Epoch == 2 && q.Step == 2 {
			cancel(lost)
		}
		return nil
	}
	_, _, err := m.run(ctx, r, shards, columnwise(Options{Threads: 1}), func(node int) string { return folders[node] })
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folders[1]); err != nil {
		t.Fatal(err)
	}
	_, told, err = newMesh(2, uneven(len(shards), 2)).run(t.Context(), r, shards, columnwise(Options{Threads: 1, Resume: true}), func(node int) string { return folders[2*node] })
	if err != nil {
		t.Fatal(err)
	}
	for node := range told {
		if got := told[node][len(told[node])-1].Hash; got != want {
			t.Errorf("node %d ends with %s in place of %s", node, got, want)
		}
	}
}

func TestModelsThatColumnsCanNotTrain(t *testing.T) {
	shards := communities(t, 1500)
	const want = "the first layer of a gat weighs edges by what it computes of whole rows of features: choose another strategy, such as leap"
	r := small("gat")
	r.Sharing.Strategy = strategy.P3
	if _, err := Run(t.Context(), r, shards, Options{Threads: 1}); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	_, _, err := newMesh(2, uneven(len(shards), 2)).run(t.Context(), r, shards, columnwise(Options{Threads: 1}), nil)
	if err == nil || strings.Count(err.Error(), want) != 2 {
		t.Error(err)
	}
}

// A number that is not finite anywhere ends the run on all nodes, in the same step.
func TestColumnsDivergeTogether(t *testing.T) {
	shards := spoilt(communities(t, 1500), 1)
	for _, deterministic := range []bool{false, true} {
		r := small("gcn")
		r.Sharing = strategy.Settings{Strategy: strategy.P3, Deterministic: deterministic}
		m := newMesh(3, uneven(len(shards), 3))
		errs := make([]error, 3)
		err := m.each(func(node int) error {
			held, own := m.of(node, shards, columnwise(Options{Threads: 1}))
			_, errs[node] = Run(t.Context(), r, held, own)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for node, err := range errs {
			if e, ok := errors.AsType[*Diverged](err); !ok || e.Epoch != 1 || e.Features != (e.Node == "") || (node == 0) != e.Features {
				t.Errorf("deterministic %v: node %d ends with %v", deterministic, node, err)
			}
		}
	}
}
