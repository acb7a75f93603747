package pipe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The gradient of a step on the whole graph is that of one node, by graph, and by pipe with
// one chunk.
func TestPipelinesHaveTheGradientOfOneNode(t *testing.T) {
	shards := traintest.Tiny(t, 60, 6)
	for _, model := range []string{"sage", "gcnii", "resgcn"} {
		r := traintest.ExactRecipe(model)
		r.Batch, r.Fanouts, r.Model.Layers = 0, nil, 3
		one := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, sharing := range []strategy.Settings{
			strategy.Given(pipe.GraphName),
			strategy.Given(pipe.GraphName, "pipe.ways=4"),
			strategy.Given(pipe.Name, "pipe.chunks=1"),
			strategy.Given(pipe.Name, "pipe.ways=2", "pipe.chunks=2", "pipe.recompute=off"),
		} {
			for _, nodes := range []int{1, 3} {
				shared := r
				shared.Sharing = sharing
				shared.Sharing.Deterministic = sharing.Values != nil // else nodes decide how many ways there are
				m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
				all := m.Start(t, shared, shards, traintest.Wide(train.Options{Threads: 1, Strategies: traintest.Pipelines}))
				one.Run.Device.Write(one.Weights, traintest.Initial(t, one.Model, r.Seed))
				if _, err := traintest.StepOnce(t.Context(), one, 3, 0); err != nil {
					t.Fatal(err)
				}
				if err := m.Each(func(node int) error { _, err := traintest.StepOnce(t.Context(), all[node], 3, 0); return err }); err != nil {
					t.Fatal(err)
				}
				whole := make([]float64, one.Model.Size())
				for node, tr := range all {
					from, to := traintest.PipedOf(tr).Worker.Own()
					if d := traintest.Distance(traintest.GradientOf(tr)[from:to], traintest.GradientOf(one)[from:to]); from < to && !(d < 1e-10) {
						t.Errorf("%s by %+v: the gradient of node %d of %d is %.3g off", model, sharing, node, nodes, d)
					}
					copy(whole[from:to], traintest.GradientOf(tr)[from:to])
				}
				if d := traintest.Distance(whole, traintest.GradientOf(one)); !(d < 1e-10) {
					t.Errorf("%s by %+v: the gradient of %d nodes is %.3g off", model, sharing, nodes, d)
				}
			}
		}
	}
}

// Where ways and chunks are given, the weights are the same bits on any number of nodes.
func TestPipelinesAreTheSameOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := traintest.Communities(t, 500), traintest.CoraShards(t)
	for name, c := range map[string]struct {
		r      recipe.Recipe
		shards []*graph.Shard
	}{
		"dense": {traintest.FullGraph("gcnii", 4), dense}, "sparse": {traintest.FullGraph("sage", 2), sparse},
	} {
		for _, sharing := range []strategy.Settings{
			strategy.Given(pipe.Name, "pipe.period=3"),
			strategy.Given(pipe.Name, "pipe.ways=2", "pipe.chunks=4", "pipe.period=2"),
			strategy.Given(pipe.GraphName, "pipe.ways=2", "pipe.halo=previous-epoch"),
			strategy.Given(pipe.GraphName, "pipe.ways=3", "pipe.halo=sampled", "pipe.share=40"),
		} {
			r := c.r
			r.Sharing, r.Epochs = sharing, 3
			r.Sharing.Deterministic = true
			want := ""
			for _, nodes := range []int{1, 2, 5} {
				results, reports := traintest.NewMesh(nodes, traintest.Uneven(len(c.shards), nodes)).MustRun(t, r, c.shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
				if want == "" {
					want = traintest.Learnt(reports[0])
				}
				for node := range reports {
					if got := traintest.Learnt(reports[node]); got != want {
						t.Errorf("%s, %v on %d nodes, node %d:\n%s\nand one node\n%s", name, sharing.Values, nodes, node, got, want)
					}
				}
				if e := results[0].Last; nodes > 1 && (e.Strategy != sharing.Strategy || e.Sent.Bytes[peer.Activation] == 0 && pipe.Of(&sharing).Ways != 2 || e.Edges == 0) {
					t.Errorf("%s on %d nodes: the last epoch is %+v", name, nodes, e)
				}
				for _, e := range reports[nodes-1] {
					if p := e.Phases; nodes > 1 && p.Reduce <= 0 || p.Compute <= 0 || p.Compute+p.Reduce > e.Seconds {
						t.Errorf("%s on %d nodes, epoch %d of %gs has the phases %+v", name, nodes, e.Epoch, e.Seconds, p)
					}
				}
			}
		}
	}
}

// Where memory is short, features are gathered again for each shard, which changes no bit.
func TestFeaturesAreGatheredAgainWhereMemoryIsShort(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for _, model := range []string{"gcn", "sage", "gcnii"} { // the last one's first stage has no edges
		r := traintest.FullGraph(model, 3)
		r.Epochs, r.Model.Hidden = 3, 2 // so that features are wider
		r.Model.InputDropout = 0        // passes would have copies
		r.Sharing = strategy.Given(pipe.GraphName, "pipe.ways=2")
		r.Sharing.Deterministic = true
		_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
		l := traintest.Started(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
		need, err := l.Run.Forecast(t.Context())
		if err != nil || len(l.Run.Notes) > 0 {
			t.Fatal(l.Run.Notes, err)
		}
		tight := train.Options{Threads: 1, Strategies: traintest.Pipelines, Memory: need.OnHost() - 1}
		short := traintest.Started(t, r, shards, tight)
		keeps, again := traintest.PipedOf(l).Bytes(), traintest.PipedOf(short).Bytes()
		if len(short.Run.Notes) != 1 || !strings.Contains(short.Run.Notes[0], "features are gathered again") || again >= keeps {
			t.Errorf("%s: %d bytes, and %d where features are kept: %q", model, again, keeps, short.Run.Notes)
		}
		t.Logf("%s takes %d bytes, and %d where features are kept", model, again, keeps)
		_, got := traintest.MustRun(t, r, shards, tight)
		if traintest.Learnt(got) != traintest.Learnt(all) {
			t.Errorf("%s: where memory is short\n%s\nand where it is not\n%s", model, traintest.Learnt(got), traintest.Learnt(all))
		}
	}
}

// What is learnt does not depend on how often it is judged: neither histories nor
// gradients that epochs leave for each other are touched.
func TestJudgingLeavesPipelinesAlone(t *testing.T) {
	shards := traintest.Tiny(t, 120, 4)
	for _, p := range [][]string{{"pipe.period=2"}, {"pipe.period=2", "pipe.histories=left", "pipe.gradients=kept"}} {
		r := traintest.FullGraph("gcnii", 3)
		r.Sharing = strategy.Given(pipe.Name, p...)
		r.Sharing.Deterministic = true // so that nothing is measured
		want := ""
		for _, every := range []int{1, 3} {
			r.EvalEvery = every
			_, reports := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
			if want == "" {
				want = traintest.Hashes(reports[0])
			}
			if got := traintest.Hashes(reports[0]); got != want {
				t.Errorf("%s, judged every %d epochs:\n%s\nand every epoch\n%s", p, every, got, want)
			}
		}
	}
}

// What pipelines can't train gets a sentence, and so does what means nothing to them.
func TestWhatPipelinesRefuse(t *testing.T) {
	about := dataset.About{Vertices: 100, Edges: 300, Features: 4, Classes: 3, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}}}
	for want, change := range map[string]func(*recipe.Recipe){
		"{batch} 32: the strategy pipe trains on the whole graph":     func(r *recipe.Recipe) { r.Batch = 32 },
		"{fanout}: the strategy pipe trains with all neighbours":      func(r *recipe.Recipe) { r.Fanouts = []int{3, 3, 3} },
		"model.jump=cat lets the head read the rows of all layers":    func(r *recipe.Recipe) { r.Model.Jump, r.Model.Head = "cat", "linear" },
		"an mlp has no layers along edges":                            func(r *recipe.Recipe) { r.Model.Model = "mlp" },
		"pipe.stages=4: the model has 3 layers":                       func(r *recipe.Recipe) { r.Sharing = strategy.Given(pipe.Name, "pipe.stages=4") },
		"pipe.stages=3, pipe.chunks=2: with fewer chunks than stages": func(r *recipe.Recipe) { r.Sharing = strategy.Given(pipe.Name, "pipe.stages=3", "pipe.chunks=2") },
		"{train.products}=bf16: pipelines are computed in f32":        func(r *recipe.Recipe) { r.BF16 = true },
		"pipe.halo=skip: histories are made of rows of now":           func(r *recipe.Recipe) { r.Sharing = strategy.Given(pipe.Name, "pipe.halo=skip") },
		"": func(*recipe.Recipe) {},
	} {
		r := traintest.FullGraph("gcn", 3)
		r.Sharing.Strategy = pipe.Name
		change(&r)
		if err := r.Check(about, strategies.All); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	shards := traintest.Tiny(t, 60, 3)
	r := traintest.FullGraph("gcn", 3)
	r.Sharing = strategy.Given(pipe.Name, "pipe.chunks=9")
	for _, nodes := range []int{1, 2} {
		_, _, err := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines}, nil)
		if err == nil || !strings.Contains(fmt.Sprint(err), "9 chunks") {
			t.Errorf("on %d nodes: %v", nodes, err)
		}
	}
}

// Nodes whose ways have shards of others bring these, with weights, labels and degrees, and
// keep no edges of them: they learn what one node learns.
func TestNodesBringTheEdgesOfTheirWays(t *testing.T) {
	shards := traintest.Tiny(t, 180, 7)
	for i, s := range shards {
		of := *s
		of.Weights = make([]float32, len(s.Indices))
		for e := range of.Weights {
			of.Weights[e] = float32(1+(e+int(s.Indices[e]))%5) / 4
		}
		shards[i] = &of
	}
	for _, model := range []string{"gcn", "gat", "sage"} {
		for _, sharing := range []strategy.Settings{
			strategy.Given(pipe.GraphName, "pipe.ways=3"),
			strategy.Given(pipe.Name, "pipe.ways=2", "pipe.stages=1", "pipe.chunks=4", "pipe.period=2"),
			strategy.Given(pipe.Name, "pipe.period=2"),
		} {
			r := traintest.FullGraph(model, 3)
			r.Sharing, r.Epochs = sharing, 3
			r.Sharing.Deterministic = true
			_, alone := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
			for _, copies := range []bool{false, true} {
				m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1, 2, 0})
				m.Copies = copies
				_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
				for node := range reports {
					if got, want := traintest.Learnt(reports[node]), traintest.Learnt(alone); got != want {
						t.Errorf("%s by %+v, node %d, copies %v:\n%s\nand one node\n%s", model, sharing, node, copies, got, want)
					}
				}
			}
			m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1, 2, 0})
			for node, l := range m.Start(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines}) {
				for i, s := range l.Run.Data.Shards {
					if here := m.Owners[i] == node; (s.Indptr != nil) != here || (s.Labels != nil) != here {
						t.Errorf("%s by %+v: node %d has edges of shard %d: %v", model, sharing, node, i, s.Indptr != nil)
					}
				}
				if sent := l.Run.Session.Start.Read(); sent.Bytes[peer.Shard] == 0 {
					t.Errorf("%s by %+v: node %d brings nothing", model, sharing, node)
				}
			}
		}
	}
}
