package embedding_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
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
	r.Embeddings, r.EmbeddingsAt, r.Sharing = 1024, recipe.AtOwners, strategy.Given("leap")
	owners := []int{0, 1, 3, 2, 0}
	var notes atomic.Int32
	all := traintest.NewMesh(4, owners).Start(t, r, shards, train.Options{Threads: 1, Announce: func(f train.Forecast) {
		if slices.ContainsFunc(f.Notes, func(note string) bool {
			return strings.HasSuffix(note, "a node has up to 5.5 MiB, of 9.4 MiB in all")
		}) {
			notes.Add(1)
		}
	}})
	if notes.Load() != 4 {
		t.Errorf("%d nodes say how much of the rows they have", notes.Load())
	}
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

// Any node of a mesh may be lost within a step, and with it the rows that it had: each of the others has
// those of one more node, and they go on from there, at most a step back, to the same bits.
func TestANodeIsLostThatHadRows(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("sage")
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	r.Sharing.Deterministic = true
	random := rand.New(rand.NewPCG(3, 5))
	for i := range 12 {
		lost := i % 4
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
		o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
		m := traintest.NewMesh(4, []int{0, 1, 2, 3, 1})
		all := m.Start(t, r, shards, o)
		for node, l := range all {
			traintest.KeepIn(l.Run, folders[node])
		}
		ctx := traintest.CancelInEpochs(t, m, 200+random.Int64N(500))
		if err := m.Each(func(node int) error { return all[node].Run.Train(ctx) }); !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		steps, done := all[lost].Run.Batches.Steps, 0
		for _, l := range all {
			done = max(done, (l.At.Epoch-1)*steps+l.At.Step)
		}
		rest := slices.Delete(folders, lost, lost+1) // all that it knew is gone
		o.Resume = true
		o.Announce = func(f train.Forecast) {
			if at := f.Resumed*steps + f.Step; at < done-1 || at > done+1 {
				t.Errorf("the nodes had done %d steps, and without node %d they go on after %d", done, lost, at)
			}
		}
		_, reports, err := traintest.NewMesh(3, []int{0, 1, 2, 0, 1}).Run(t.Context(), r, shards, o, func(node int) string { return rest[node] })
		if err != nil {
			t.Fatal(err)
		}
		undisturbed(t, fmt.Sprint("without node ", lost), reports, want)
	}
}

// Of the nodes that are left some may have made the last update, and the only one that has some rows may
// not: then all go back by it.
func TestNodesGoBackByAnUpdate(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("sage")
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	r.Sharing.Deterministic = true
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
	m := traintest.NewMesh(4, []int{0, 1, 2, 3, 1})
	all := m.Start(t, r, shards, o)
	for node, l := range all {
		traintest.KeepIn(l.Run, folders[node])
	}
	const behind, lost, epoch, step = 1, 2, 2, 3
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Net.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
		if q.Epoch != epoch {
			return nil
		}
		reduces := q.Service == peer.Offers && q.Kind == peer.Gradient && uint8(q.Part>>24) == exchange.LaneReduce
		switch {
		case q.Step == step && reduces && from == behind && to == lost:
			return traintest.ErrEnough
		case q.Step == step+1 && from == 0:
			cancel(traintest.ErrEnough)
		}
		return nil
	}
	if err := m.Each(func(node int) error { return all[node].Run.Train(ctx) }); !errors.Is(err, traintest.ErrEnough) {
		t.Fatal(err)
	}
	if ahead, not := updates(t, folders[0]), updates(t, folders[behind]); ahead != not+1 {
		t.Fatalf("nodes 0 and %d have made %d and %d updates", behind, ahead, not)
	}
	rest := slices.Delete(folders, lost, lost+1)
	o.Resume = true
	o.Announce = func(f train.Forecast) {
		if f.Resumed != epoch-1 || f.Step != step {
			t.Errorf("they go on after step %d of epoch %d", f.Step, f.Resumed+1)
		}
	}
	_, reports, err := traintest.NewMesh(3, []int{0, 1, 2, 0, 1}).Run(t.Context(), r, shards, o, func(node int) string { return rest[node] })
	if err != nil {
		t.Fatal(err)
	}
	for node, got := range reports {
		if traintest.Learnt(got) != traintest.Learnt(want[epoch-1:]) {
			t.Errorf("node %d:\n%sand undisturbed:\n%s", node, traintest.Learnt(got), traintest.Learnt(want[epoch-1:]))
		}
	}
}

// updates returns how many updates led to the last checkpoint in a folder.
func updates(t *testing.T, dir string) uint64 {
	t.Helper()
	c, err := trained.OpenCheckpoint(filepath.Join(dir, train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Models[0].Updates
}

// Where the rows of a shard are on no node, the job says in a sentence which node it needs.
func TestRowsThatNobodyHas(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
	m := traintest.NewMesh(4, []int{0, 1, 2, 3, 1})
	if err := m.Interrupt(t, r, shards, o, folders, func(q peer.Query) bool { return q.Epoch == 2 && q.Step == 1 }); err != nil {
		t.Fatal(err)
	}
	if _, err := trained.ReadWeighed(filepath.Join(folders[0], train.CheckpointFile), trained.BestModel); !errors.Is(err, trained.ErrInParts) {
		t.Errorf("a part of a model is read: %v", err)
	}
	o.Resume = true
	_, _, err := traintest.NewMesh(2, []int{0, 1, 1, 0, 1}).Run(t.Context(), r, shards, o, func(node int) string { return folders[node] })
	for _, say := range []string{"the learnt rows of some vertices are on no node that is here (shard ", " of epoch 2): start node n2 or node n3, and then {train.resume}"} {
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Error(err)
		}
	}
	three := traintest.NewMesh(3, []int{0, 1, 2, 0, 1})
	three.Names = []string{"n0", "n1", "n3"} // n3 has the rows of n2
	_, reports, err := three.Run(t.Context(), r, shards, o, func(node int) string { return folders[[]int{0, 1, 3}[node]] })
	if err != nil || reports[0][0].Epoch != 2 {
		t.Errorf("%v, %+v", err, reports)
	}
}

// The first nodes of a job have its whole model when it is done, the same as one node has; the others have
// none. It is trained on as any other.
func TestADoneJobHasAModel(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r, alone := learning("gcn"), t.TempDir()
	traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dataset: "d", Dir: alone})
	predicted, _ := traintest.Predicted(t, alone, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel})
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	r.Sharing.Deterministic = true
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	folder := func(node int) string { return folders[node] }
	o := train.Options{Threads: 1, Dataset: "d", Resume: true, Strategies: strategies.All}
	for again := range 2 {
		if _, _, err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Run(t.Context(), r, shards, o, folder); err != nil {
			t.Fatal(err)
		}
		for node, dir := range folders {
			path := filepath.Join(dir, train.CheckpointFile)
			if _, err := os.Stat(path); node >= train.Keepers {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("node %d has a checkpoint: %v", node, err)
				}
				continue
			}
			if got, _ := traintest.Predicted(t, dir, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel}); !slices.Equal(got, predicted) {
				t.Errorf("done %d times, node %d predicts something else than one node", again+1, node)
			}
		}
	}
	_, want := traintest.MustRun(t, with(r, func(r *recipe.Recipe) {
		r.Epochs, r.Sharing, r.EmbeddingsAt = 7, strategy.Settings{Deterministic: true}, ""
	}), shards, train.Options{Threads: 1})
	r.Epochs = 7
	_, reports, err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Run(t.Context(), r, shards, o, folder)
	if err != nil {
		t.Fatal(err)
	}
	for node, got := range reports {
		if traintest.Learnt(got) != traintest.Learnt(want[5:]) {
			t.Errorf("node %d:\n%sand at once:\n%s", node, traintest.Learnt(got), traintest.Learnt(want[5:]))
		}
	}
}

// with returns a changed recipe.
func with(r recipe.Recipe, change func(*recipe.Recipe)) recipe.Recipe {
	change(&r)
	return r
}

// Rows move with the shards when nodes join, leave or get others, and when they come to fit each node or
// no longer do.
func TestRowsMove(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Embeddings, r.Epochs, r.Batch, r.Fanouts = 4096, 6, 20, []int{2, 2}
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing = strategy.Given("centric")
	r.Sharing.Deterministic = true
	folders := map[string]string{}
	for name := range strings.FieldsSeq("a b c d e f g h") {
		folders[name] = t.TempDir()
	}
	for epochs, c := range []struct {
		nodes  []string
		owners []int
		apart  bool
	}{
		{[]string{"a", "b", "c"}, []int{0, 1, 2, 0, 1}, true},
		{[]string{"a", "b", "c", "d", "e"}, []int{4, 3, 2, 1, 0}, true},
		{[]string{"d", "e", "b", "a"}, []int{0, 0, 0, 1, 1}, false},
		{[]string{"f", "a", "e"}, []int{1, 2, 0, 0, 1}, true},
		{[]string{"e", "f"}, []int{0, 1, 1, 0, 1}, false},
		{[]string{"g", "f", "h"}, []int{0, 1, 2, 0, 1}, true},
	} {
		r.Epochs = epochs + 1
		o := train.Options{Threads: 1, Dataset: "d", Resume: true}
		o.Measure = func() budget.Memory { return budget.Memory{Free: 1 << 30, Machine: 1 << 30} }
		if c.apart {
			o.Memory = budget.Program + 72<<20
		}
		m := traintest.NewMesh(len(c.nodes), c.owners)
		m.Names = c.nodes
		_, reports, err := m.Run(t.Context(), r, shards, o, func(node int) string { return folders[c.nodes[node]] })
		if err != nil {
			t.Fatalf("%v: %v", c.nodes, err)
		}
		for node, got := range reports {
			if remote := got[0].Rows.Remote; remote > 0 != c.apart {
				t.Errorf("%v: %d rows came from other nodes", c.nodes, remote)
			}
			if traintest.Learnt(got) != traintest.Learnt(want[epochs:epochs+1]) {
				t.Errorf("node %s of %v:\n%sand undisturbed:\n%s", c.nodes[node], c.nodes, traintest.Learnt(got), traintest.Learnt(want[epochs:epochs+1]))
			}
		}
	}
}

// A table larger than the memory of each of three nodes is trained by them together. One of them alone
// refuses it in a sentence.
func TestATableLargerThanANode(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 3600, Edges: 20_000, Classes: 4, Communities: 16, Inside: 0.9, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 6)
	r := learning("gcn")
	r.Embeddings, r.Epochs, r.Batch, r.Fanouts, r.EvalEvery = 4096, 1, 5, []int{1, 1}, 1<<20
	r.Sharing = strategy.Given("leap")
	table := embedding.Bytes(3600, 0, r.Embeddings, r.Optimizer)
	o := train.Options{Threads: 1, Memory: table - 1<<20, Dataset: "d", Strategies: strategies.All}
	o.Measure = func() budget.Memory { return budget.Memory{Free: 2 << 30, Machine: 2 << 30} }
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	o.Announce = func(f train.Forecast) {
		if f.Arenas > o.Memory {
			t.Errorf("a node has %d bytes in place of %d", f.Arenas, o.Memory)
		}
	}
	m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1, 2})
	if err := m.Interrupt(t, r, shards, o, folders, func(q peer.Query) bool { return q.Epoch == 1 && q.Step == 3 }); err != nil {
		t.Fatal(err)
	}
	if n := updates(t, folders[0]); n < 2 {
		t.Errorf("%d updates were made", n)
	}
	r.Sharing = strategy.Settings{}
	_, err = train.NewTrainer(t.Context(), r, shards, o)
	if err == nil || !strings.Contains(err.Error(), "the training needs ") || !strings.Contains(err.Error(), "allow more with {agent.memory}") {
		t.Errorf("one node: %v", err)
	}
}

// A node that is left alone goes on if it has all rows, as each of two nodes does; else it says what it
// lacks.
func TestOneNodeIsLeft(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("sage")
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	for nodes := 2; nodes <= 3; nodes++ {
		r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
		r.Sharing.Deterministic = true
		o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		ctx, cancel := context.WithCancelCause(t.Context())
		m := traintest.NewMesh(nodes, []int{0, 1, nodes - 1, 0, 1})
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Epoch == 3 && q.Step == 2 {
				cancel(traintest.ErrEnough)
			}
			return nil
		}
		if _, _, err := m.Run(ctx, r, shards, o, func(node int) string { return folders[node] }); !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		o.Resume, o.Dir = true, folders[0]
		var got []trained.Epoch
		o.Report = func(e trained.Epoch) { got = append(got, e) }
		_, err := train.Run(t.Context(), r, shards, o)
		if nodes == 3 {
			if err == nil || !strings.Contains(err.Error(), "it has the learnt rows of some vertices, and the others, such as those of shard 1, are on other nodes") {
				t.Errorf("without two of three nodes: %v", err)
			}
			continue
		}
		if err != nil || traintest.Learnt(got) != traintest.Learnt(want[2:]) {
			t.Errorf("%v:\n%sand undisturbed:\n%s", err, traintest.Learnt(got), traintest.Learnt(want[2:]))
		}
	}
}
