package embedding_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Rows that are with their owners come to the bits of one node that has all, on any number of nodes.
func TestRowsWithTheirOwners(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	for name, change := range map[string]func(*recipe.Recipe){
		"batches": func(r *recipe.Recipe) { r.Model.InputDropout = 0.2 },
		"full":    func(r *recipe.Recipe) { r.Batch, r.Fanouts, r.Optimizer.Kind = 0, nil, "sgd" },
		"links": func(r *recipe.Recipe) {
			r.Learn(task.Named("link"))
			r.Links.Width = 8
		},
	} {
		r := learning("sage")
		r.Epochs = 3
		change(&r)
		_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		r.EmbeddingsAt = recipe.AtOwners
		for nodes := 2; nodes <= 5; nodes++ {
			for how, sharing := range traintest.Sharings(nodes) {
				if nodes == 4 && name != "batches" || nodes == 3 && how == "centric" {
					continue
				}
				r.Sharing = sharing
				r.Sharing.Deterministic = true
				_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, train.Options{Threads: 1})
				remote := uint64(0)
				for node, got := range reports {
					remote += got[0].Rows.Remote
					if traintest.Learnt(got) != traintest.Learnt(one) {
						t.Errorf("%s, node %d of %d by %s:\n%sand one node:\n%s", name, node, nodes, how, traintest.Learnt(got), traintest.Learnt(one))
					}
				}
				if (remote == 0) != (nodes == 2) { // two nodes have all rows
					t.Errorf("%s, %d nodes: %d rows came from others", name, nodes, remote)
				}
			}
		}
	}
}

// A node has the rows of its own shards, and of those of the node before it, and no others.
func TestWhoHasWhichRows(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.EmbeddingsAt, r.Sharing = recipe.AtOwners, strategy.Given("leap")
	owners := []int{0, 1, 3, 2, 0}
	all := traintest.NewMesh(4, owners).Start(t, r, shards, train.Options{Threads: 1})
	for node, l := range all {
		want := 0
		for shard, owner := range owners {
			if owner == node || (owner+1)%4 == node {
				want += shards[shard].Vertices * r.Embeddings
			}
		}
		if got := len(l.Rows.Numbers()); got != want {
			t.Errorf("node %d has %d numbers in place of %d", node, got, want)
		}
	}
}

// Where nothing is said, each node has all rows if all nodes have room for them.
func TestWhereRowsAreFollowsFromMemory(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Embeddings, r.Epochs, r.Sharing = 4096, 1, strategy.Given("leap")
	for short := -1; short < 3; short++ {
		m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1})
		apart := make([]bool, 3)
		err := m.Together(t, func(ctx context.Context, node int) error {
			held, o := m.Of(node, shards, train.Options{Threads: 1})
			o.Measure = func() budget.Memory { return budget.Memory{Free: 1 << 30, Machine: 1 << 30} }
			if node == short { // a table takes 40 MB, and two thirds of it 27
				o.Memory = budget.Program + 72<<20
			}
			tr, err := train.NewTrainer(ctx, r, held, o)
			if err == nil {
				apart[node] = tr.Learners[0].Rows.Apart()
				tr.Close()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for node, is := range apart {
			if is != (short >= 0) {
				t.Errorf("node %d is short of memory, and node %d has rows apart: %v", short, node, is)
			}
		}
	}
}

// Where rows are is refused where it can't be, in a sentence.
func TestWhereRowsCanNotBe(t *testing.T) {
	shards := enginetest.Bare(t, 100)
	for want, change := range map[string]func(*recipe.Recipe){
		`{train.embeddings_at} is "there": it is auto, all or owners`:                func(r *recipe.Recipe) { r.EmbeddingsAt = "there" },
		"{train.embeddings_at} says where learnt rows are, and this job learns none": func(r *recipe.Recipe) { r.Embeddings = 0 },
	} {
		r := learning("gcn")
		r.EmbeddingsAt = recipe.AtOwners
		change(&r)
		if _, err := train.NewTrainer(t.Context(), r, shards, train.Options{Threads: 1}); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
