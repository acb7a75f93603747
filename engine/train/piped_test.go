package train

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

var pipelines = []strategy.Strategy{pipe.Pipe, pipe.Graph}

// fullGraph is a recipe of the whole graph in each step.
func fullGraph(model string, layers int) Recipe {
	r := small(model)
	r.Model.Layers, r.Batch, r.Fanouts, r.Epochs = layers, 0, nil, 7
	return r
}

func piping(way string, p strategy.PipeSettings) strategy.Settings {
	return strategy.Settings{Strategy: way, Pipe: p}
}

// The gradient of a step on the whole graph is that of one node, by graph, and by pipe with
// one chunk.
func TestPipelinesHaveTheGradientOfOneNode(t *testing.T) {
	shards := tiny(t, 60, 6)
	for _, model := range []string{"sage", "gcnii", "resgcn"} {
		r := exactRecipe(model)
		r.Batch, r.Fanouts, r.Model.Layers = 0, nil, 3
		one := started(t, r, shards, wide(Options{Threads: 1}))
		for _, sharing := range []strategy.Settings{
			piping(strategy.Graph, strategy.PipeSettings{}), piping(strategy.Graph, strategy.PipeSettings{Ways: 4}), piping(strategy.Pipe, strategy.PipeSettings{Chunks: 1}),
			piping(strategy.Pipe, strategy.PipeSettings{Ways: 2, Chunks: 2, Keep: true}),
		} {
			for _, nodes := range []int{1, 3} {
				shared := r
				shared.Sharing = sharing
				shared.Sharing.Deterministic = sharing.Pipe != strategy.PipeSettings{} // else nodes decide how many ways there are
				m := newMesh(nodes, uneven(len(shards), nodes))
				all := m.start(t, shared, shards, wide(Options{Threads: 1, Strategies: pipelines}))
				one.device.Write(one.weights, initial(t, one.model, r.Seed))
				if _, err := one.one(t.Context(), 3, 0); err != nil {
					t.Fatal(err)
				}
				if err := m.each(func(node int) error { _, err := all[node].one(t.Context(), 3, 0); return err }); err != nil {
					t.Fatal(err)
				}
				whole := make([]float64, one.model.Size())
				for node, tr := range all {
					from, to := tr.piped.worker.Own()
					if d := distance(tr.gradient()[from:to], one.gradient()[from:to]); from < to && !(d < 1e-10) {
						t.Errorf("%s by %+v: the gradient of node %d of %d is %.3g off", model, sharing, node, nodes, d)
					}
					copy(whole[from:to], tr.gradient()[from:to])
				}
				if d := distance(whole, one.gradient()); !(d < 1e-10) {
					t.Errorf("%s by %+v: the gradient of %d nodes is %.3g off", model, sharing, nodes, d)
				}
			}
		}
	}
}

// Where ways and chunks are given, the weights are the same bits on any number of nodes.
func TestPipelinesAreTheSameOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := communities(t, 500), coraShards(t)
	for name, c := range map[string]struct {
		r      Recipe
		shards []*graph.Shard
	}{
		"dense": {fullGraph("gcnii", 4), dense}, "sparse": {fullGraph("sage", 2), sparse},
	} {
		for _, sharing := range []strategy.Settings{
			piping(strategy.Pipe, strategy.PipeSettings{Period: 3}),
			piping(strategy.Pipe, strategy.PipeSettings{Ways: 2, Chunks: 4, Period: 2}),
			piping(strategy.Graph, strategy.PipeSettings{Ways: 2, Halo: strategy.RowsPrevious}),
			piping(strategy.Graph, strategy.PipeSettings{Ways: 3, Halo: strategy.RowsSampled, Share: 40}),
		} {
			r := c.r
			r.Sharing, r.Epochs = sharing, 3
			r.Sharing.Deterministic = true
			want := ""
			for _, nodes := range []int{1, 2, 5} {
				results, told := newMesh(nodes, uneven(len(c.shards), nodes)).mustRun(t, r, c.shards, Options{Threads: 1, Strategies: pipelines})
				if want == "" {
					want = learnt(told[0])
				}
				for node := range told {
					if got := learnt(told[node]); got != want {
						t.Errorf("%s, %+v on %d nodes, node %d:\n%s\nand one node\n%s", name, sharing.Pipe, nodes, node, got, want)
					}
				}
				if e := results[0].Last; nodes > 1 && (e.Strategy != sharing.Strategy || e.Sent.Bytes[strategy.Activation] == 0 && sharing.Pipe.Ways != 2 || e.Edges == 0) {
					t.Errorf("%s on %d nodes: the last epoch is %+v", name, nodes, e)
				}
				for _, e := range told[nodes-1] {
					if p := e.Phases; nodes > 1 && p.Reduce <= 0 || p.Compute <= 0 || p.Compute+p.Reduce > e.Seconds {
						t.Errorf("%s on %d nodes, epoch %d of %gs has the phases %+v", name, nodes, e.Epoch, e.Seconds, p)
					}
				}
			}
		}
	}
}

// What is learnt does not depend on how often it is judged: neither histories nor
// gradients that epochs leave for each other are touched.
func TestJudgingLeavesPipelinesAlone(t *testing.T) {
	shards := tiny(t, 120, 4)
	for _, p := range []strategy.PipeSettings{{Period: 2}, {Period: 2, Histories: strategy.HistoriesLeft, KeepGradients: true}} {
		r := fullGraph("gcnii", 3)
		r.Sharing = piping(strategy.Pipe, p)
		r.Sharing.Deterministic = true // so that nothing is measured
		want := ""
		for _, every := range []int{1, 3} {
			r.EvalEvery = every
			_, told := newMesh(2, uneven(len(shards), 2)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
			if want == "" {
				want = hashes(told[0])
			}
			if got := hashes(told[0]); got != want {
				t.Errorf("%+v, judged every %d epochs:\n%s\nand every epoch\n%s", p, every, got, want)
			}
		}
	}
}

// However often they are interrupted, and on however many nodes they go on, they come to
// what they would have come to.
func TestPipelinesGoOn(t *testing.T) {
	shards := communities(t, 400)
	random := rand.New(rand.NewPCG(5, 4))
	for _, sharing := range []strategy.Settings{
		piping(strategy.Pipe, strategy.PipeSettings{Period: 3}),
		piping(strategy.Pipe, strategy.PipeSettings{Ways: 2, Period: 4}),
		piping(strategy.Graph, strategy.PipeSettings{Ways: 2}),
		piping(strategy.Graph, strategy.PipeSettings{Ways: 3, Halo: strategy.RowsSkip, Age: 2}),
		piping(strategy.Graph, strategy.PipeSettings{Ways: 3, Halo: strategy.RowsPrevious}),
		piping(strategy.Pipe, strategy.PipeSettings{Period: 2, Histories: strategy.HistoriesZeros}),
		piping(strategy.Pipe, strategy.PipeSettings{Ways: 2, Histories: strategy.HistoriesLeft, KeepGradients: true}),
	} {
		r := fullGraph("gcnii", 3)
		r.Sharing = sharing
		r.Sharing.Deterministic = true
		_, alone := newMesh(2, uneven(len(shards), 2)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
		folders := map[int]string{}
		for node := range 4 {
			folders[node] = t.TempDir()
		}
		told := map[int]Epoch{}
		runs, done := 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 4}[runs%3]
			m := newMesh(nodes, uneven(len(shards), nodes))
			ctx := t.Context()
			if runs < 6 {
				ctx = cancelInEpochs(t, m, int64(nodes*nodes)*(8+random.Int64N(30)))
			}
			known := 0
			for epoch := range told {
				known = max(known, epoch)
			}
			_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond, Strategies: pipelines}, func(node int) string {
				return folders[node]
			})
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			for _, of := range epochs {
				for _, e := range of {
					told[e.Epoch] = e
				}
			}
			done = err == nil
		}
		var all []Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, told[n])
		}
		if runs < 2 || learnt(all) != learnt(alone[0]) {
			t.Errorf("%+v: after %d runs\n%s\nand undisturbed\n%s", sharing.Pipe, runs, learnt(all), learnt(alone[0]))
		}
	}
}

// What pipelines can't train gets a sentence, and so does what means nothing to them.
func TestWhatPipelinesRefuse(t *testing.T) {
	about := About{Vertices: 100, Edges: 300, Features: 4, Classes: 3, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}}}
	for want, change := range map[string]func(*Recipe){
		"--batch 32: the strategy pipe trains on the whole graph":      func(r *Recipe) { r.Batch = 32 },
		"--fanout: the strategy pipe trains with all neighbours":       func(r *Recipe) { r.Fanouts = []int{3, 3, 3} },
		"--set model.jump=cat has the head see the rows of all layers": func(r *Recipe) { r.Model.Jump, r.Model.Head = "cat", "linear" },
		"an mlp has no layers along edges":                             func(r *Recipe) { r.Model.Model = "mlp" },
		"pipe.stages=4: the model has 3 layers":                        func(r *Recipe) { r.Sharing.Pipe.Stages = 4 },
		"pipe.stages=3, pipe.chunks=2: with fewer chunks than stages":  func(r *Recipe) { r.Sharing.Pipe.Stages, r.Sharing.Pipe.Chunks = 3, 2 },
		"--set train.products=bf16: pipelines are computed in f32":     func(r *Recipe) { r.BF16 = true },
		"pipe.halo=skip: histories are made of rows of now":            func(r *Recipe) { r.Sharing.Pipe.Halo = strategy.RowsSkip },
		"": func(*Recipe) {},
	} {
		r := fullGraph("gcn", 3)
		r.Sharing.Strategy = strategy.Pipe
		change(&r)
		if err := r.Check(about); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	shards := tiny(t, 60, 3)
	r := fullGraph("gcn", 3)
	r.Sharing = piping(strategy.Pipe, strategy.PipeSettings{Chunks: 9})
	for _, nodes := range []int{1, 2} {
		_, _, err := newMesh(nodes, uneven(len(shards), nodes)).run(t.Context(), r, shards, Options{Threads: 1, Strategies: pipelines}, nil)
		if err == nil || !strings.Contains(fmt.Sprint(err), "9 chunks") {
			t.Errorf("on %d nodes: %v", nodes, err)
		}
	}
}
