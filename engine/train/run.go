package train

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Options say how a run is done. What is learnt does not depend on them.
type Options struct {
	Threads int    // 0: all
	Memory  uint64 // bytes that may be used; 0: no bound
	// Dataset identifies the graph: a digest of its shards'. A checkpoint of
	// another one is refused.
	Dataset string
	// Dir is where its checkpoints lie; "" keeps none.
	Dir string
	// Interval is how often a checkpoint is written, at the end of a step; 0: every
	// 10 seconds.
	Interval time.Duration
	// Resume goes on from the last checkpoint in Dir, if there is one.
	Resume bool
	// Announce, Report, Progress, Lost and Kept tell of the run as it goes, from its
	// goroutine: they must not wait. Each may be nil.
	Announce func(Forecast)
	Report   func(Epoch)
	Progress func(Progress) // at most ten times a second
	// Lost hears of each model of a sweep that has diverged, in a sentence: as soon as it
	// has, and again when a run goes on without it.
	Lost func(model int, why string)
	// Kept is told why a checkpoint can't be written, though the run goes on, and nil when
	// one is.
	Kept func(err error)
	Log  *slog.Logger

	// Peers are the other nodes that share the run, Work is what they all were told of
	// it, Strategies are those there are. Without Peers this node does it all, and holds
	// all shards.
	Peers      strategy.Peers
	Work       strategy.Work
	Strategies []strategy.Strategy
	// Known is how many epochs others know of this run: one of a mesh that knows some
	// does not begin anew.
	Known int
	// Replicas, if not nil, keeps what was brought of other nodes' shards for the next
	// run.
	Replicas *replica.Cache

	// Device opens what computes, for this run alone, which closes it; nil: so many of
	// this machine's cores. What it says is wrong ends the run as Broken.
	Device func(threads int) (tensor.Device, error)
	// memory, in tests, stands in for what this machine has (see headroom).
	memory func() memory
}

// A Forecast is what a run will take, told before its first step.
type Forecast struct {
	Device  string   `json:"device"`
	Shards  uint64   `json:"shards"`             // bytes of shard files, mapped
	Arenas  uint64   `json:"arenas"`             // bytes of memory of its own
	There   uint64   `json:"on_device,omitzero"` // bytes of memory of a device that has its own
	Weights int      `json:"weights"`
	Epochs  int      `json:"epochs"`
	Resumed int      `json:"resumed"` // epochs that were done before, when resumed
	Step    int      `json:"step"`    // and steps of the next one
	Notes   []string `json:"notes,omitempty"`
	History []Epoch  `json:"-"` // of the epochs that were done before; the last, if they are very many
}

// Progress is how far an epoch has come.
type Progress struct {
	Epoch, Step, Steps int
	Evaluating         bool
}

// A Result is how a run ended: of a sweep, how its best model did.
type Result struct {
	Models []Result `json:"models,omitempty"` // of a sweep: of each
	Best   Epoch    `json:"best"`             // the epoch of the best validation; the last, if there is none
	Last   Epoch    `json:"last"`
	Early  bool     `json:"early"` // it stopped for want of patience
	// Diverged says how a model of a sweep ended that did, if it did: the others went on.
	Diverged string `json:"diverged,omitempty"`
}

// Run trains until the recipe is done or ctx ends, which leaves a checkpoint. A run
// that was done before it was resumed only says how it ended. The shards are all of
// the graph's, in order; those that this node does not hold are nil.
func Run(ctx context.Context, r Recipe, shards []*graph.Shard, o Options) (Result, error) {
	t, err := newTrainer(ctx, r, shards, o)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	err = t.run(ctx)
	if t.shared == nil {
		return t.result(), err
	}
	// The others come to the same end, or find out by themselves that a node is gone.
	if err == nil || Together(err) {
		t.leave(ctx)
	}
	return t.result(), err
}

// Together says whether all nodes that share a run come to this end, each by itself: it
// is no single node's.
func Together(err error) bool {
	_, diverged := errors.AsType[*Diverged](err)
	_, together := errors.AsType[*agreed](err)
	return diverged || together
}

// result is that of the best model, with those of all if there are several.
func (t *trainer) result() Result {
	best := bestOf(len(t.learners), func(i int) *state { return &t.learners[i].at }, t.recipe.Metric)
	r := t.learners[best].result()
	if len(t.recipe.Sweep) > 0 {
		for _, l := range t.learners {
			r.Models = append(r.Models, l.result())
		}
	}
	return r
}

func (t *learner) result() Result {
	r := Result{Best: t.at.Last, Last: t.at.Last, Early: t.at.Early}
	if t.at.Best != nil {
		r.Best = *t.at.Best
	}
	if t.at.Diverged != nil {
		r.Diverged = t.at.Diverged.Error()
	}
	return r
}

func (t *trainer) run(ctx context.Context) error {
	var err error
	switch {
	case t.shared != nil:
		err = t.meet(ctx)
	case t.options.Resume:
		err = t.resumeOwn()
	}
	if err != nil {
		return err
	}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	return t.train(ctx)
}
