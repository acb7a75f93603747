package grappa_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// tellers are the models that tell relations apart.
var tellers = []string{"rgcn", "hetero:gcn", "hetero:sage", "hetero:gat", "hetero:gin", "hgt"}

// typed is a graph of papers and people, in six shards, whose relations lead both ways.
func typed(t *testing.T) []*graph.Shard {
	t.Helper()
	return enginetest.Cut(t, enginetest.Typed("wrote", "edited", enginetest.Back+"wrote", enginetest.Back+"edited"), 6, "")
}

// telling tells a recipe of the relations of that graph: edges back lead to people.
func telling(r recipe.Recipe) recipe.Recipe {
	ends := "0,0,1,1"
	if r.Model.Model == "rgcn" {
		ends = ""
	}
	r.Model.Tell(4, ends)
	if r.Model.Model == "hgt" {
		r.Model.TellStarts("1,1,0,0")
	}
	if strings.HasSuffix(r.Model.Model, "gat") || r.Model.Model == "hgt" {
		r.Model.Heads = 2
	}
	return r
}

// TestRelationsInGroups: one group has the gradient of one machine, and so have several whose halo is
// as deep as the model; what others see is the same on any number of nodes. So are fan-outs of each
// relation.
func TestRelationsInGroups(t *testing.T) {
	shards := typed(t)
	o := isolation(traintest.Wide(train.Options{Threads: 1}))
	for _, model := range tellers {
		for _, each := range []bool{false, true} {
			r := telling(traintest.ExactRecipe(model))
			if each {
				if err := r.FanEach([][]int{{2, 1}, {1, 2}, {5, 3}, {2, 4}}); err != nil {
					t.Fatal(err)
				}
			}
			one := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
			for _, g := range [][]string{{"groups=1"}, {"groups=1", "loader=strict"}, {"groups=3", "depth=2"}, {"groups=3"}, {"groups=6", "loader=strict", "swept=2", "correction=node"}} {
				r.Sharing = apart(g...)
				want := one
				if all := g[0] == "groups=1" || g[len(g)-1] == "depth=2"; !all {
					want = traintest.Started(t, r, shards, o)
				}
				for _, nodes := range []int{1, 2, 3, 5} {
					traintest.Within(t, fmt.Sprintf("%s, by relation %v, on %d nodes, %v", model, each, nodes, g), r, shards, o, nodes, want, 1e-10)
				}
			}
		}
	}
}

// TestEdgesInGroups is the same of models that read features of edges, which all nodes have.
func TestEdgesInGroups(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Described(true), 6, "")
	o := isolation(traintest.Wide(train.Options{Threads: 1}))
	for _, model := range []string{"gat", "gin", "mpnn"} {
		r := traintest.ExactRecipe(model)
		r.Model.EdgeFeatures = enginetest.DescribedColumns
		asOneMachine(t, "edges", r, shards, o)
	}
}

// TestRowsOfVerticesInGroups: where rows of vertices are learnt each node has all, and groups read those
// that they see. One group learns the bits of one machine, and what others learn does not depend on
// how many nodes run them.
func TestRowsOfVerticesInGroups(t *testing.T) {
	shards := enginetest.Bare(t, 300)
	r := traintest.Small("sage")
	r.Features, r.Embeddings, r.Epochs, r.Sharing.Deterministic = "none", 5, 3, true
	learnt := func(nodes int) string {
		_, all := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
		return traintest.Hashes(all[0])
	}
	_, alone := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	for _, g := range [][]string{{"groups=1"}, {"groups=3", "depth=2", "period=1"}, {"groups=3", "period=1"}, {"groups=4", "loader=strict", "swept=1", "period=1", "correction=node"}} {
		r.Sharing = apart(g...)
		r.Sharing.Deterministic = true
		one := learnt(1)
		if all := g[0] == "groups=1" || len(g) > 1 && g[1] == "depth=2"; all != (one == traintest.Hashes(alone)) {
			t.Errorf("%v: one node learns\n%s\nand one machine\n%s", g, one, traintest.Hashes(alone))
		}
		for _, nodes := range []int{2, 3} {
			if got := learnt(nodes); got != one {
				t.Errorf("%v: %d nodes learn\n%s\nand one\n%s", g, nodes, got, one)
			}
		}
	}
}

// TestTargetsInGroups is TestRelationsInGroups of targets with columns.
func TestTargetsInGroups(t *testing.T) {
	o := isolation(traintest.Wide(train.Options{Threads: 1}))
	for _, kind := range []string{"multilabel", "regression"} {
		shards := enginetest.TinyTargets(t, task.Named(kind).Targets, 90, 6)
		for _, model := range []string{"gcn", "sage"} {
			r := traintest.ExactRecipe(model)
			r.Learn(task.Named(kind))
			asOneMachine(t, kind, r, shards, o)
		}
	}
}

// TestExactRowsOfVerticesInGroups is TestRelationsInGroups of rows that are learnt. They have single
// precision, so they are added up in an order that does not depend on nodes.
func TestExactRowsOfVerticesInGroups(t *testing.T) {
	shards := enginetest.Bare(t, 90)
	o := isolation(traintest.Wide(train.Options{Threads: 1}))
	for _, model := range []string{"gcn", "sage"} {
		r := traintest.ExactRecipe(model)
		r.Features, r.Embeddings, r.Sharing.Deterministic = "none", 5, true
		asOneMachine(t, "rows", r, shards, o)
	}
}

// asOneMachine fails the test unless one group has the gradient of one machine, and so have several
// whose halo is as deep as the model, and what others see is the same on any number of nodes.
func asOneMachine(t *testing.T, name string, r recipe.Recipe, shards []*graph.Shard, o train.Options) {
	t.Helper()
	deterministic := r.Sharing.Deterministic
	one := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
	for _, g := range [][]string{{"groups=1"}, {"groups=1", "loader=strict"}, {"groups=3", "depth=2"}, {"groups=3"}, {fmt.Sprint("groups=", len(shards)), "loader=strict", "swept=2", "correction=self-normalised"}} {
		r.Sharing = apart(g...)
		r.Sharing.Deterministic = deterministic
		want := one
		if all := g[0] == "groups=1" || g[len(g)-1] == "depth=2"; !all {
			want = traintest.Started(t, r, shards, o)
		}
		for _, nodes := range []int{1, 2, 3, 5} {
			traintest.Within(t, fmt.Sprintf("%s, %s on %d nodes, %v", name, r.Model.Model, nodes, g), r, shards, o, nodes, want, 1e-10)
		}
	}
}
