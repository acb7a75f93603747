package golden

// All that the test needs of the engine's interfaces is in this file.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// recorded reports whether this processor computes the bits that the table was recorded with.
func recorded() bool { return family.Current() == family.AVX2 || family.Current() == family.AVX512 }

// graphs makes a small graph in five shards for each task, by its name.
func graphs(t *testing.T) map[string][]*graph.Shard {
	t.Helper()
	all := map[string][]*graph.Shard{}
	for _, kind := range task.Kinds {
		all[kind.Name] = communities(t, kind.Targets)
	}
	all[""] = all["class"]
	all["along"] = enginetest.Cut(t, enginetest.Described(true), 5, "")
	all["bare"] = enginetest.Bare(t, 300)
	all["triples"] = enginetest.Triples(t, 5)
	all["typed"] = enginetest.Cut(t, enginetest.Typed(relations...), 5, "")
	return all
}

// target is that of a vertex in a column, if it has a class.
func target(class int32, vertex, column int) float64 {
	if class < 0 || (vertex+column)%7 == 0 {
		return math.NaN()
	}
	return float64((int(class)+column)%3) - 0.5 + float64(vertex%5)/20
}

// communities makes a small graph with such targets in five shards.
func communities(t *testing.T, targets graph.Targets) []*graph.Shard {
	t.Helper()
	made, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 300, Edges: 1800, Features: 11, Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	src := made
	if targets != graph.OneClass {
		src = enginetest.WithTargets(src, targets, 3, func(v, c int) float64 { return target(made.Labels()[v], v, c) })
	}
	dir := filepath.Join(t.TempDir(), "shards")
	m, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: 5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var all []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		all = append(all, s)
	}
	return all
}

// recipeOf returns what a variant trains with a model.
func recipeOf(v variant, m model) (recipe.Recipe, error) {
	r := recipe.DefaultRecipe(m.model)
	r.Epochs, r.Seed, r.Rate = 3, 7, 0.02
	if !v.full {
		r.Batch = 50
		if m.model != "mlp" {
			r.Fanouts = []int{4, 3, 2}[:m.layers]
		}
	}
	r.Model.Layers, r.Model.Hidden, r.Model.Dropout = m.layers, 10, 0.2
	if v.bare {
		r.Embeddings = 11
		if v.typed {
			r.Bare = []int{0}
		}
	}
	if v.typed {
		r.Model.Tell(len(relations), ends)
		r.Model.TellStarts(starts)
	}
	switch m.model {
	case "gat", "hetero:gat":
		r.Model.Hidden, r.Model.Heads = 5, 2
	case "hgt":
		r.Model.Heads = 2
	}
	r.Learn(task.Named(v.task))
	if v.triples {
		r.Model.Tell(2*enginetest.TripleRelations, "")
		if err := r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false); err != nil {
			return r, err
		}
		r.RankPairs()
	}
	r.Sharing.Strategy, r.Sharing.Deterministic = v.strategy, true
	for _, s := range slices.Concat(m.set, v.set) {
		key, value, _ := strings.Cut(s, "=")
		if err := r.Set(key, value, strategies.All.Declared()); err != nil {
			return r, err
		}
	}
	if v.typed {
		if err := r.LearnRelation(enginetest.Typed(relations...).Meta().Types); err != nil {
			return r, err
		}
	}
	if v.along {
		r.Model.TellEdges(enginetest.DescribedColumns)
	}
	r.Model.Resolve()
	base := r
	for _, rate := range v.sweep {
		of := base
		of.Rate = rate
		r.Rate = v.sweep[0]
		r.Sweep = append(r.Sweep, recipe.Variant{Params: map[string]string{"lr": fmt.Sprint(rate)}, Recipe: of})
	}
	return r, nil
}

// accepts reports whether a variant trains a model at all.
func accepts(v variant, m model, shards []*graph.Shard) (bool, error) {
	r, err := recipeOf(v, m)
	return r.Check(dataset.Describe(shards), strategies.All) == nil, err
}

// owners returns who owns which of five shards: node 0 has most of them, or of five nodes
// one has none.
func owners(nodes int) []int {
	return map[int][]int{1: {0, 0, 0, 0, 0}, 2: {0, 1, 0, 1, 0}, 5: {0, 4, 1, 4, 3}}[nodes]
}

// run trains on so many nodes of this process and returns what each of them has to say of
// it.
func run(ctx context.Context, v variant, m model, shards []*graph.Shard, nodes int) ([]outcome, error) {
	r, err := recipeOf(v, m)
	if err != nil {
		return nil, err
	}
	work := peer.Work{Owners: owners(nodes)}
	if nodes == 2 {
		work.Holders = [][]int{nil, nil, {1}, nil, nil} // which leap.balance makes use of
	}
	for node := range nodes {
		work.Nodes = append(work.Nodes, fmt.Sprintf("n%d", node))
	}
	ctx, cancel := context.WithCancel(ctx) // when one has failed the others wait for it
	defer cancel()
	net := loopback.New(nodes)
	all, errs := make([]outcome, nodes), make([]error, nodes)
	var running sync.WaitGroup
	for node := range nodes {
		held, own := make([]*graph.Shard, len(shards)), work
		for i, s := range shards {
			if own.Owners[i] == node || own.Holders != nil && slices.Contains(own.Holders[i], node) {
				held[i] = s
			}
		}
		own.Self = node
		var epochs []trained.Epoch
		o := train.Options{
			Threads: map[int]int{1: 2, 2: 3, 5: 1}[nodes], Peers: net.Node(node), Work: own, Strategies: strategies.All,
			Report: func(e trained.Epoch) { epochs = append(epochs, e) },
		}
		running.Go(func() {
			if _, err := train.Run(ctx, r, held, o); err != nil {
				errs[node] = fmt.Errorf("node %d: %w", node, err)
				cancel()
			}
			all[node] = summary(epochs)
		})
	}
	running.Wait()
	return all, errors.Join(errs...)
}

// summary returns what is compared of a run: all models of a sweep, one after the other.
func summary(epochs []trained.Epoch) (o outcome) {
	slices.SortStableFunc(epochs, func(a, b trained.Epoch) int { return cmp.Compare(a.Model, b.Model) })
	scores := sha256.New()
	for _, e := range epochs {
		o.weights = append(o.weights, short(e.Hash))
		fmt.Fprintln(scores, e.Model, e.Epoch, e.Loss, e.Rate)
		for _, s := range []evaluate.Scores{e.Scores.Train, e.Scores.Val, e.Scores.Test} {
			fmt.Fprintln(scores, s.Count, s.Loss, s.Accuracy, s.MacroF1, s.AUC)
		}
		if m := e.Scores.Metrics; m != nil {
			fmt.Fprintln(scores, m.Train, m.Val, m.Test)
		}
	}
	o.scores = short(hex.EncodeToString(scores.Sum(nil)))
	return o
}
