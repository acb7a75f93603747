package embedding_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tables"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// left returns the folders of four nodes whose run was interrupted within its third epoch, with its recipe,
// its graph and the epochs of a run that nothing happened to.
func left(t *testing.T) (folders []string, r recipe.Recipe, shards []*graph.Shard, want []trained.Epoch) {
	t.Helper()
	shards, r = enginetest.Bare(t, 600), learning("sage")
	_, want = traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	r.Sharing.Deterministic = true
	for range 4 {
		folders = append(folders, t.TempDir())
	}
	m := traintest.NewMesh(4, []int{0, 1, 2, 3, 1})
	err := m.Interrupt(t, r, shards, train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}, folders, func(q peer.Query) bool { return q.Epoch == 3 && q.Step == 2 })
	if err != nil {
		t.Fatal(err)
	}
	return folders, r, shards, want
}

// copied copies the files of a folder to another, but those that are not whole yet. The last checkpoint comes
// first: a node may write one meanwhile, and what it had then lies beside it.
func copied(t *testing.T, from, to string) {
	t.Helper()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Error(err)
	}
	slices.SortFunc(files, func(a, b os.DirEntry) int { return -strings.Compare(a.Name(), b.Name()) })
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".tmp" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), b, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// file returns what a file of a folder has; nil: there is no such file.
func file(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return b
}

// goesOn checks that a mesh goes on from its folders to the weights of an undisturbed run.
func goesOn(t *testing.T, what string, r recipe.Recipe, shards []*graph.Shard, o train.Options, folders []string, want []trained.Epoch) {
	t.Helper()
	o.Resume = true
	_, reports, err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Run(t.Context(), r, shards, o, func(node int) string { return folders[node] })
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	undisturbed(t, what, reports, want)
}

// undisturbed checks that nodes have learnt what a run does that nothing happened to.
func undisturbed(t *testing.T, what string, reports [][]trained.Epoch, want []trained.Epoch) {
	t.Helper()
	for node, got := range reports {
		if from := got[0].Epoch; traintest.Learnt(got) != traintest.Learnt(want[from-1:]) {
			t.Errorf("%s, node %d:\n%sand undisturbed:\n%s", what, node, traintest.Learnt(got), traintest.Learnt(want[from-1:]))
		}
	}
}

// Nodes that are killed, or whose numbers are not finite, keep no more than the last checkpoint that all have
// written. The others keep that, too, when they end, beside what they have done since.
func TestNodesThatKeepNothingWhenARunEnds(t *testing.T) {
	folders, r, shards, want := left(t)
	for _, node := range []int{1, 2} { // the shards of node 1 are on both
		path := func(name string) string { return filepath.Join(folders[node], name) }
		err := os.Rename(path("before.safetensors"), path(train.CheckpointFile))
		if err = errors.Join(err, os.Remove(path("back.safetensors"))); err != nil {
			t.Fatal(err)
		}
	}
	was := updates(t, folders[1])
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Known: 2}
	var at sync.Map
	o.Announce = func(f train.Forecast) { at.Store(f.Resumed, f.Step) }
	goesOn(t, "from the end of the first epoch", r, shards, o, folders, want)
	if _, in := at.Load(1); !in || was == 0 {
		t.Error("they go on from elsewhere")
	}
}

// All nodes are killed while the first checkpoint is written, of which some have nothing then. They begin
// anew, unless others know of an epoch.
func TestKilledWhileTheFirstCheckpointIsWritten(t *testing.T) {
	folders, r, shards, want := left(t)
	for node, dir := range folders {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if node > 0 || f.Name() != train.CheckpointFile {
				if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Known: 1, Resume: true}
	_, _, err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Run(t.Context(), r, shards, o, func(node int) string { return folders[node] })
	if err == nil || !strings.Contains(err.Error(), "or remove the job and start another") {
		t.Errorf("an epoch is known: %v", err)
	}
	o.Known = 0
	o.Announce = func(f train.Forecast) {
		if f.Resumed > 0 || f.Step > 0 || !slices.Contains(f.Notes, tables.BegunAnew) {
			t.Errorf("it goes on after step %d of epoch %d: %q", f.Step, f.Resumed+1, f.Notes)
		}
	}
	goesOn(t, "begun anew", r, shards, o, folders, want)
}

// The power fails while nodes write the first checkpoint after rows have moved to them. What rows were taken
// from lies there still.
func TestKilledAfterRowsHaveMoved(t *testing.T) {
	folders, r, shards, want := left(t)
	var after []string
	for range folders {
		after = append(after, t.TempDir())
	}
	moved := make([]string, 4)
	for node := range folders {
		moved[node] = t.TempDir()
		copied(t, folders[node], moved[node])
	}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Known: 2, Resume: true}
	var once sync.Once
	m := traintest.NewMesh(4, []int{2, 3, 0, 1, 3})
	err := m.Interrupt(t, r, shards, o, moved, func(q peer.Query) bool {
		if q.Epoch == 0 || q.Service != peer.Offers || q.Kind != peer.Gradient {
			return false
		}
		once.Do(func() {
			for node := range moved {
				copied(t, moved[node], after[node])
			}
		})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	wrote := 0
	for node := range after {
		var were [][]byte // at most one update apart: all nodes go on from the earlier
		for _, name := range []string{train.CheckpointFile, "back.safetensors"} {
			were = append(were, file(t, folders[node], name))
		}
		is := func(name string) bool {
			b := file(t, after[node], name)
			return slices.ContainsFunc(were, func(was []byte) bool { return bytes.Equal(b, was) })
		}
		if is(train.CheckpointFile) {
			continue // it has not written another yet
		}
		wrote++
		if !is("before.safetensors") {
			t.Errorf("what was taken from node %d is gone", node)
		}
	}
	if wrote == 0 {
		t.Error("no node had written a checkpoint of what it has now")
	}
	for some := 1; some < 15; some += 3 { // of the nodes have written it
		all := make([]string, 4)
		for node := range all {
			all[node] = t.TempDir()
			from := folders[node]
			if some>>node&1 == 1 {
				from = after[node]
			}
			copied(t, from, all[node])
		}
		goesOn(t, "moved", r, shards, o, all, want)
	}
}

// All nodes write checkpoints after the same step. One that has none has them all write one at the end of the
// epoch.
func TestNodesWriteTogether(t *testing.T) {
	shards, r := enginetest.Bare(t, 100), learning("gcn")
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	all := traintest.NewMesh(3, []int{0, 1, 2, 0, 1}).Start(t, r, shards, train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All})
	for node, l := range all {
		traintest.KeepIn(l.Run, t.TempDir())
		if node > 0 {
			l.Run.Checkpoints.Adopt(l.Run.Place())
		}
		l.Run.Checkpoints.Begin(time.Minute)
		for step := range l.Run.Batches.Steps {
			l.At.Step = step
			want := uint64(0)
			if node == 0 && step == l.Run.Batches.Steps-1 {
				want = tables.Due
			}
			if got := l.Run.Says(); got != want {
				t.Errorf("node %d asks for %d in step %d", node, got, step)
			}
		}
		if l.Run.Wants() {
			t.Errorf("node %d writes alone", node)
		}
		if l.Run.Together = true; !l.Run.Wants() {
			t.Errorf("node %d does not write with the others", node)
		}
	}
}

// Two nodes, which alone have the rows of a shard, can't write any more after a checkpoint that all have, and
// the others write on. Then the power fails, or the run is stopped.
func TestNodesWaitForThoseThatCanNotWrite(t *testing.T) {
	shards, r := enginetest.Bare(t, 600), learning("sage")
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing, r.EmbeddingsAt = strategy.Given("leap"), recipe.AtOwners
	r.Sharing.Deterministic = true
	var folders, after []string
	for range 4 {
		folders, after = append(folders, t.TempDir()), append(after, t.TempDir())
	}
	full := func(node int) string { return filepath.Join(folders[node], train.CheckpointFile+".tmp") }
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Interval: time.Nanosecond}
	var fills, fails sync.Once
	err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Interrupt(t, r, shards, o, folders, func(q peer.Query) bool {
		if q.Kind != peer.Gradient || q.Step != 2 {
			return false
		}
		if q.Epoch == 2 {
			fills.Do(func() {
				for _, node := range []int{1, 2} {
					_ = os.Remove(full(node))
					if err := os.MkdirAll(filepath.Join(full(node), "taken"), 0o700); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if q.Epoch == 3 {
			fails.Do(func() {
				for node := range folders {
					copied(t, folders[node], after[node])
				}
			})
		}
		return q.Epoch == 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := updates(t, after[1]), updates(t, after[0]); first+2 > last {
		t.Errorf("node 1 wrote after %d updates, and node 0 after %d", first, last)
	}
	for _, node := range []int{1, 2} {
		if err := os.RemoveAll(full(node)); err != nil {
			t.Fatal(err)
		}
	}
	o.Interval, o.Known = 0, 2
	goesOn(t, "after a loss of power", r, shards, o, after, want)
	goesOn(t, "after a stop", r, shards, o, folders, want)
}

// A run whose nodes had all rows stops before the end of its last epoch, and goes on with rows apart. No step is
// left, and yet its nodes have a whole model.
func TestRowsArePlacedWhenAllStepsAreDone(t *testing.T) {
	shards, r := enginetest.Bare(t, 600), learning("gcn")
	r.Embeddings, r.Epochs, r.Batch, r.Fanouts, r.Sharing = 1024, 1, 10, []int{2, 2}, strategy.Given("leap")
	var folders []string
	for range 5 {
		folders = append(folders, t.TempDir())
	}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
	o.Measure = func() budget.Memory { return budget.Memory{Free: 1 << 30, Machine: 1 << 30} }
	owners := []int{0, 1, 2, 3, 4}
	err := traintest.NewMesh(5, owners).Interrupt(t, r, shards, o, folders, func(q peer.Query) bool {
		return q.Epoch == 1 && q.Step > 0 && q.Service == peer.Offers && uint8(q.Part>>24) == exchange.LaneMessages
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Resume, o.Memory = true, budget.Program+18<<20
	if _, _, err := traintest.NewMesh(5, owners).Run(t.Context(), r, shards, o, func(node int) string { return folders[node] }); err != nil {
		t.Fatal(err)
	}
	for node := range train.Keepers {
		w, err := trained.ReadWeighed(filepath.Join(folders[node], train.CheckpointFile), trained.BestModel)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// A run that has ended before it was done has the model of its best epoch, which parts on its nodes have together.
func TestPartsMakeAModel(t *testing.T) {
	folders, r, shards, want := left(t)
	best := want[0]
	if want[1].Better(best.Record) {
		best = want[1]
	}
	alone := t.TempDir()
	traintest.MustRun(t, with(r, func(r *recipe.Recipe) {
		r.Epochs, r.Sharing, r.EmbeddingsAt = best.Epoch, strategy.Settings{Deterministic: true}, ""
	}), shards, train.Options{Threads: 1, Dataset: "d", Dir: alone})
	predicted, _ := traintest.Predicted(t, alone, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel})
	var parts []string
	for _, dir := range folders {
		parts = append(parts, filepath.Join(dir, train.CheckpointFile))
	}
	dir := t.TempDir()
	to := filepath.Join(dir, train.CheckpointFile)
	for _, some := range [][]string{parts[:2], {parts[0], parts[2]}, parts[1:3], {filepath.Join(dir, "none")}, nil} {
		err := trained.Assemble(to, some)
		if lacks := len(some) < 2 || some[0] != parts[0] || some[1] != parts[2]; lacks != errors.Is(err, trained.ErrInParts) || !lacks && err != nil {
			t.Errorf("of %d: %v", len(some), err)
		}
	}
	for range 2 {
		if err := trained.Assemble(to, parts); err != nil {
			t.Fatal(err)
		}
		if got, _ := traintest.Predicted(t, dir, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel}); !slices.Equal(got, predicted) {
			t.Error("the model predicts something else than that of one node")
		}
		parts = append(parts, to) // which is one, too
	}
	c, err := trained.OpenCheckpoint(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := c.File.Metadata()
	other["dataset"] = "another"
	if err := checkpoint.WriteFile(parts[0], []checkpoint.Section{}, other, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := trained.Assemble(to, parts[:4]); err == nil {
		t.Error("a file without its weights is taken")
	}
}
