package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/shards"
)

// world is a node "a" with a dataset, and a leader that is a plan.
type world struct {
	t      testing.TB
	dir    string
	runner *Runner
	stop   func()             // waits until the runner has ended
	others map[string]*Runner // of other nodes, see crowd

	mu       sync.Mutex
	state    *plan.State
	index    uint64
	late     bool            // the node reads nothing new of the plan
	silent   bool            // the leader does not answer
	refuse   error           // what commits are refused with
	commits  int             // that came
	away     map[string]bool // nodes that don't serve
	renewals []Renewal       // that were asked for
	tellers  map[string]int  // how often each node told of a job
	train    Train
	device   Device // nil: the processor
	damage   shards.Damage
}

const datasetID = "00000000000000d1"

// newWorld cuts a graph of 60 vertices into four shards.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), state: new(plan.State), tellers: map[string]int{}}
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 60, Edges: 240, Features: 5, Classes: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	scratch := filepath.Join(w.dir, "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := build.Run(t.Context(), src, build.Options{Shards: 4, Partitioner: "random", DType: graph.F32, Dir: filepath.Join(w.dir, datasetID), Scratch: scratch})
	if err != nil {
		t.Fatal(err)
	}
	w.apply(plan.Genesis{MeshID: "m", First: plan.Member{ID: "a", Name: "alpha", PublicKey: "k"}, KeyDigest: "d"})
	w.apply(plan.ReserveDataset{ID: datasetID, Name: "g", Importer: "a"})
	c := plan.DefineDataset{ID: datasetID, Importer: "a", About: plan.About{Vertices: m.Vertices, Edges: m.Edges, DType: "f32", Partitioner: "random"}}
	wanted := make([][]int, 4)
	for i, s := range m.Shards {
		c.Shards = append(c.Shards, plan.ShardAbout{Vertices: s.Vertices, Edges: s.Edges, Halo: s.Halo, Bytes: s.Bytes, SHA256: s.SHA256})
		wanted[i] = []int{0}
	}
	w.apply(c)
	w.apply(plan.PlaceShards{ID: datasetID, Nodes: []string{"a"}, Wanted: wanted})
	return w
}

// run starts the runner.
func (w *world) run() {
	w.runner = Open(Config{
		Dir: filepath.Join(w.dir, "jobs"), Self: "a", Leader: w, Log: slog.New(slog.DiscardHandler), Device: w.device, Damage: w.damage,
		Shard: func(dataset string, shard int) string { return filepath.Join(w.dir, dataset, graph.ShardFile(shard)) },
		Train: func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			w.mu.Lock()
			f := w.train
			w.mu.Unlock()
			return f(ctx, r, s, o)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.runner.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-ended
	}
	w.set(func() { w.runner.Adopt(w.state) })
}

func (w *world) now() *plan.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *world) job(id string) plan.Job { return w.now().Jobs[id] }

// apply changes the plan, which must accept it, and lets the runner read it.
func (w *world) apply(c plan.Command) {
	w.t.Helper()
	if err := w.try(c); err != nil {
		w.t.Fatalf("%+v: %v", c, err)
	}
}

func (w *world) try(c plan.Command) error {
	data, err := plan.Encode(c)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	w.state, err = plan.Apply(w.state, w.index, data)
	// Under the lock, since a node reads the plans in their order.
	if w.runner != nil && !w.late {
		w.runner.Adopt(w.state)
	}
	for _, r := range w.others {
		r.Adopt(w.state)
	}
	return err
}

var errSilent = errors.New("nobody answers")

func (w *world) hear(ctx context.Context, c plan.Command) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	silent, refuse := w.silent, w.refuse
	switch c := c.(type) {
	case plan.CommitEpochs:
		w.commits++
		w.tellers[c.Node]++
	case plan.FinishJob:
		w.tellers[c.Node]++
		refuse = nil
	default:
		refuse = nil
	}
	w.mu.Unlock()
	switch {
	case silent:
		return errSilent
	case refuse != nil:
		return fmt.Errorf("%w: %w", ErrRefused, refuse)
	}
	if err := w.try(c); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// told counts the commits.
func (w *world) told() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits
}

func (w *world) Commit(ctx context.Context, c plan.CommitEpochs) error  { return w.hear(ctx, c) }
func (w *world) Schedule(ctx context.Context, c plan.ScheduleJob) error { return w.hear(ctx, c) }
func (w *world) Finish(ctx context.Context, c plan.FinishJob) error     { return w.hear(ctx, c) }

// Renew does as the leader does.
func (w *world) Renew(ctx context.Context, r Renewal) (bool, error) {
	w.mu.Lock()
	w.renewals = append(w.renewals, r)
	away := maps.Clone(w.away)
	s, silent := w.state, w.silent
	w.mu.Unlock()
	if silent {
		return false, errSilent
	}
	j := s.Jobs[r.ID]
	if j.State != plan.Running || j.Generation != r.Generation {
		return false, nil
	}
	c, can := plan.RenewJob(s, r.ID, func(id string) bool { return !away[id] })
	if !can {
		return false, nil
	}
	return true, w.hear(ctx, c)
}

func (w *world) Index(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent {
		return 0, errSilent
	}
	return w.index, nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// teach says how jobs are trained from now on.
func (w *world) teach(f Train) { w.set(func() { w.train = f }) }

// create puts a job into the queue and gives it to the node.
func (w *world) create(epochs int) string {
	w.t.Helper()
	return w.createSweep(epochs, 0)
}

// createSweep is create with a sweep of so many models.
func (w *world) createSweep(epochs, models int) string {
	w.t.Helper()
	recipe, err := json.Marshal(recipe.DefaultRecipe("gcn"))
	if err != nil {
		w.t.Fatal(err)
	}
	n := w.now().JobsMade + 1
	w.apply(plan.CreateJob{Key: fmt.Sprintf("%08x", n), Dataset: datasetID, Recipe: string(recipe), Strategy: "single", Epochs: epochs, Models: models})
	id := fmt.Sprintf("j%d", n)
	w.apply(plan.AssignJob{ID: id, Nodes: []string{"a"}})
	return id
}

// lesson is what a run is told of an epoch.
func lesson(n int) trained.Epoch {
	return trained.Epoch{Record: epoch.Record{
		Epoch: n, Loss: 1, Seconds: 0.1234567, Hash: fmt.Sprintf("%064x", n), Rows: epoch.Rows{Local: 3},
		Eval: &epoch.Eval{Val: new(0.5), Score: 0.5, Loss: 2},
	}}
}

// lessons reports so many epochs, each after a pause.
func lessons(n int, pause time.Duration) Train {
	return func(ctx context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
		for i := range n {
			if pause > 0 {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return train.Result{}, ctx.Err()
				}
			}
			o.Report(lesson(i + 1))
		}
		return train.Result{Best: lesson(1), Last: lesson(n)}, nil
	}
}
