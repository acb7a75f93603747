package p3_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// frontWays are the exact ways of p3.
func frontWays() (all [][]string) {
	for _, roots := range []string{"", "slices"} {
		for _, push := range []string{"", "blocks"} {
			all = append(all, []string{"p3.roots=" + roots, "p3.push=" + push})
		}
	}
	return all
}

func TestColumnsMakeTheGradientsOfOneNode(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gin", "mlp"} {
		r := traintest.ExactRecipe(model)
		r.Model.Residual = model == "sage"
		if model == "mlp" {
			r.Fanouts = nil
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for topology, deterministic := range map[string]bool{"replicated": false, "sharded": true} {
				for _, ways := range frontWays() {
					r.Sharing = strategy.Given("p3", append(ways, "topology="+topology)...)
					r.Sharing.Deterministic = deterministic
					traintest.Within(t, fmt.Sprintf("%s on %d nodes, %s, deterministic %v, %+v", model, nodes, topology, deterministic, ways), r, shards, traintest.Columnwise(traintest.Wide(train.Options{Threads: 1})), nodes, want, 1e-10)
				}
			}
		}
	}
}

// Targets with columns are learnt by the gradients of one node, too.
func TestColumnsMakeTheGradientsOfTargets(t *testing.T) {
	for _, kind := range []string{"multilabel", "regression"} {
		shards := enginetest.TinyTargets(t, task.Named(kind).Targets, 90, 6)
		for _, model := range []string{"gcn", "sage", "gat"} {
			r := traintest.ExactRecipe(model)
			r.Learn(task.Named(kind))
			want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
			for _, nodes := range []int{1, 2, 3, 5} {
				for topology, deterministic := range map[string]bool{"replicated": false, "sharded": true} {
					for _, ways := range frontWays() {
						r.Sharing = strategy.Given("p3", append(ways, "topology="+topology)...)
						r.Sharing.Deterministic = deterministic
						traintest.Within(t, fmt.Sprintf("%s of %s on %d nodes, %s, deterministic %v, %+v", kind, model, nodes, topology, deterministic, ways), r, shards, traintest.Columnwise(traintest.Wide(train.Options{Threads: 1})), nodes, want, 1e-10)
					}
				}
			}
		}
	}
}

// Where one batch serves all epochs, what drops of the features is another each time.
func TestColumnsOfFullBatches(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r := traintest.ExactRecipe("gcn")
	r.Batch, r.Fanouts = 0, nil
	want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
	r.Sharing.Strategy = "p3"
	all := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	trainers := all.Start(t, r, shards, traintest.Columnwise(traintest.Wide(train.Options{Threads: 1})))
	for epoch := 1; epoch < 4; epoch++ {
		step := func(tr *train.Learner) error {
			tr.At.Epoch = epoch
			_, _, err := tr.Run.Method.Step(t.Context(), tr, tr.Run.Batches.Slots[0], nil, 0.01)
			return err
		}
		if err := step(want); err != nil {
			t.Fatal(err)
		}
		if err := all.Each(func(node int) error { return step(trainers[node]) }); err != nil {
			t.Fatal(err)
		}
		for node, tr := range trainers {
			if d := traintest.Distance(traintest.GradientOf(tr), traintest.GradientOf(want)); !(d < 1e-10) {
				t.Errorf("epoch %d, node %d: the gradient is %.3g off", epoch, node, d)
			}
		}
	}
}

func TestColumnsMakeTheSameBitsOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := traintest.Communities(t, 1500), traintest.CoraShards(t)
	for _, full := range []bool{false, true} {
		for name, shards := range map[string][]*graph.Shard{"dense": dense, "sparse": sparse} {
			r := traintest.Small("sage")
			r.Epochs, r.Model.InputDropout = 2, 0.2
			r.Sharing = strategy.Settings{Strategy: "p3", Deterministic: true}
			if full {
				r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
			}
			want := ""
			for _, nodes := range []int{1, 2, 5} {
				_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: map[int]int{1: 2, 2: 8, 5: 1}[nodes]}))
				for node, got := range reports {
					if want == "" {
						want = traintest.Learnt(got)
					}
					if traintest.Learnt(got) != want {
						t.Errorf("%s, full %v, node %d of %d:\n%s\nand one node\n%s", name, full, node, nodes, traintest.Learnt(got), want)
					}
				}
			}
		}
	}
}

// No feature travels while steps are made, and all nodes tell the same of that.
func TestWhatColumnsSend(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Sharing.Strategy = "p3"
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: 2}))
	for node := range reports {
		for i, e := range reports[node] {
			b := e.Sent.Bytes
			if e.Strategy != "p3" || e.Rows.Total() != 0 || e.Behind != 0 || b[peer.Feature] != 0 || b[peer.Activation] == 0 || b[peer.Gradient] == 0 {
				t.Errorf("node %d tells %+v", node, e)
			}
			// Each node takes the two others' rows of the gradient of the first weight.
			const framing, weight = peer.QueryFraming + peer.AnswerFraming, 4 * 20 * 12
			if want := uint64(e.Steps * (3*2*framing + 2*weight)); b[peer.Model] != want {
				t.Errorf("%d bytes of the model in place of %d", b[peer.Model], want)
			}
			if p := e.Phases; p.Reduce <= 0 || p.Compute <= 0 || e.Hash != reports[0][i].Hash {
				t.Errorf("node %d tells %+v", node, e)
			}
		}
	}
}

// A node that is lost takes nothing with it: others have its rows of the weights, and
// their moments.
func TestColumnsOutliveTheirNode(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Sharing = strategy.Settings{Strategy: "p3", Deterministic: true}
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: 1}))
	want := reports[0][len(reports[0])-1].Hash

	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("a node is lost")
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Service == peer.Offers && q.Epoch == 2 && q.Step == 2 {
			cancel(lost)
		}
		return nil
	}
	_, _, err := m.Run(ctx, r, shards, traintest.Columnwise(train.Options{Threads: 1}), func(node int) string { return folders[node] })
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folders[1]); err != nil {
		t.Fatal(err)
	}
	_, reports, err = traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Run(t.Context(), r, shards, traintest.Columnwise(train.Options{Threads: 1, Resume: true}), func(node int) string { return folders[2*node] })
	if err != nil {
		t.Fatal(err)
	}
	for node := range reports {
		if got := reports[node][len(reports[node])-1].Hash; got != want {
			t.Errorf("node %d ends with %s in place of %s", node, got, want)
		}
	}
}

func TestModelsThatColumnsCanNotTrain(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	const want = "the first layer of a gcnii is not linear in the features before it follows edges: choose another strategy, such as leap"
	r := traintest.Small("gcnii")
	r.Fanouts = nil
	r.Sharing.Strategy = "p3"
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1}); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	_, _, err := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Run(t.Context(), r, shards, traintest.Columnwise(train.Options{Threads: 1}), nil)
	if err == nil || strings.Count(err.Error(), want) != 2 {
		t.Error(err)
	}
}

// A number that is not finite anywhere ends the run on all nodes, in the same step.
func TestColumnsDivergeTogether(t *testing.T) {
	shards := traintest.Spoilt(traintest.Communities(t, 1500), 1)
	for _, deterministic := range []bool{false, true} {
		r := traintest.Small("gcn")
		r.Sharing = strategy.Settings{Strategy: "p3", Deterministic: deterministic}
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		errs := make([]error, 3)
		err := m.Each(func(node int) error {
			held, own := m.Of(node, shards, traintest.Columnwise(train.Options{Threads: 1}))
			_, errs[node] = train.Run(t.Context(), r, held, own)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for node, err := range errs {
			if e, ok := errors.AsType[*trained.Diverged](err); !ok || e.Epoch != 1 || e.Features != (e.Node == "") || (node == 0) != e.Features {
				t.Errorf("deterministic %v: node %d ends with %v", deterministic, node, err)
			}
		}
	}
}
