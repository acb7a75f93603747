package train

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Options are how a run is done. What is learnt does not depend on them.
type Options struct {
	Threads int    // 0: all
	Memory  uint64 // bound in bytes; 0: none
	// Dataset identifies the graph: a digest of its shards'. A checkpoint of another
	// one is refused.
	Dataset string
	// ClassNames has a name for each class, which checkpoints keep; nil: they have none.
	ClassNames []string
	// Dir is the folder of the checkpoints; "" keeps none.
	Dir string
	// Interval is how often a checkpoint is written, at the end of a step; 0: as
	// often as that takes a hundredth of the time.
	Interval time.Duration
	// Resume resumes from the last checkpoint in Dir, if there is one.
	Resume bool
	// Announce, Report, Progress, Lost, Kept and Damaged report on the run as it goes. They are
	// called from its goroutine and must not block. Each may be nil.
	Announce func(Forecast)
	Report   func(trained.Epoch)
	Progress func(Progress) // at most ten times a second
	// Lost receives each model of a sweep that has diverged, with a sentence on why:
	// when it happens, and again when a run goes on without it.
	Lost func(model int, why string)
	// Kept receives the error if a checkpoint can't be written, though the run goes on,
	// and nil when one is.
	Kept func(err error)
	// Damaged receives what is wrong with the last checkpoint, if it is damaged, and whether
	// the run goes on from the one before it.
	Damaged func(err error, before bool)
	Log     *slog.Logger

	// Peers are the other nodes that share the run, Work is the work they agreed on,
	// and Strategies are those there are. Without Peers this node does it all, and
	// holds all shards.
	Peers      peer.Peers
	Work       peer.Work
	Strategies Strategies
	// Schedule is where the nodes agree on how they share epochs; nil: they decide it by
	// themselves, from what they know of each other.
	Schedule schedule.Plan
	// Weights returns the weights that a recipe starts from, in the order of the model's params. It
	// is called where nothing has been trained yet, and the run compares their digest. nil: recipes
	// start from weights that are drawn.
	Weights func(ctx context.Context, from recipe.From) ([]float32, error)
	// Known is how many epochs other nodes know of this run: if there are any, a node
	// of a mesh does not start from scratch.
	Known int
	// Replicas, if not nil, keeps what was fetched of other nodes' shards for the next
	// run, edges in files. Its owner closes it when the run has ended.
	Replicas *replica.Cache
	// Verify reports whether the shards are whole; nil: they are trusted.
	Verify Verify

	// Desk is where a program beside this node attaches, if one computes the steps.
	Desk *desk.Desk
	// Device opens the device for this run alone, which closes it; nil: so many of this
	// machine's cores. An error of the device ends the run as Broken.
	Device func(threads int) (tensor.Device, error)
	// memory, in tests, stands in for this machine's memory (see budget.Here).
	Measure func() budget.Memory
}

// Verify is how a run learns whether its shards are whole; else it ends as Damaged, or ErrUnverified.
type (
	Verify  = session.Verify
	Damaged = session.Damaged
)

// ErrUnverified is session.ErrUnverified.
var ErrUnverified = session.ErrUnverified

// A Forecast is what a run will take, announced before its first step.
type Forecast struct {
	Device  string   `json:"device"`
	Shards  uint64   `json:"shards"`             // bytes of shard files, mapped
	Arenas  uint64   `json:"arenas"`             // bytes of its own memory
	There   uint64   `json:"on_device,omitzero"` // bytes of memory of a device that has its own
	Weights int      `json:"weights"`
	Epochs  int      `json:"epochs"`
	Resumed int      `json:"resumed"` // epochs that were done before, when resumed
	Step    int      `json:"step"`    // steps done of the next one
	Notes   []string `json:"notes,omitempty"`
	// FellBack are those of the notes on what was given up so that the run fits.
	FellBack []string        `json:"fell_back,omitempty"`
	History  []trained.Epoch `json:"-"` // of the epochs done before; the last, if they are very many
}

// Progress is how far an epoch has come.
type Progress struct {
	Epoch, Step, Steps int
	Evaluating         bool
}

// A Result is how a run ended; of a sweep, how its best model did.
type Result struct {
	Models []Result      `json:"models,omitempty"` // of a sweep: of each
	Best   trained.Epoch `json:"best"`             // of the best validation; the last, if there is none
	Last   trained.Epoch `json:"last"`
	Early  bool          `json:"early"` // patience ran out
	// Diverged is why a model of a sweep diverged, if it did: the others went on.
	Diverged string `json:"diverged,omitempty"`
}

// Run trains until the recipe is done or ctx ends, which leaves a checkpoint. A run
// that was done before it was resumed only returns its result. The shards are all of
// the graph's, in order; those that this node does not hold are nil.
func Run(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o Options) (Result, error) {
	t, err := NewTrainer(ctx, r, shards, o)
	if err != nil {
		if wrong := o.Replicas.Forget(); wrong != nil {
			err = errors.Join(err, wrong)
		}
		return Result{}, err
	}
	trusted := true
	defer func() {
		t.Close()
		// Workers read the edges until then.
		if wrong := o.forget(trusted); wrong != nil {
			t.Log.Warn("could not give up edges of other nodes' shards", "err", wrong)
		}
	}()
	err = t.Run(ctx)
	trusted = t.intact.Trusted()
	// The others return the same error, or find out by themselves that a node is gone.
	if err == nil || Together(err) {
		t.Session.Leave(ctx, t.Log)
	}
	return t.result(), err
}

// forget drops the shards of other nodes, unless they can be trusted.
func (o *Options) forget(trusted bool) error {
	if trusted {
		return nil
	}
	return o.Replicas.Forget()
}

// Together reports whether all nodes that share a run end with this error, each by
// itself: it is no single node's.
func Together(err error) bool {
	_, diverged := errors.AsType[*trained.Diverged](err)
	_, together := errors.AsType[*session.Agreed](err)
	return diverged || together
}

// result returns the result of the best model, with those of all if there are several.
func (t *Trainer) result() Result {
	best := trained.BestOf(len(t.Learners), func(i int) *trained.State { return &t.Learners[i].At })
	r := t.Learners[best].result()
	if len(t.Recipe.Sweep) > 0 {
		for _, l := range t.Learners {
			r.Models = append(r.Models, l.result())
		}
	}
	return r
}

func (t *Learner) result() Result {
	r := Result{Best: t.At.Last, Last: t.At.Last, Early: t.At.Early}
	if t.At.Best != nil {
		r.Best = *t.At.Best
	}
	if t.At.Diverged != nil {
		r.Diverged = t.At.Diverged.Error()
	}
	return r
}

// Run meets the other nodes, or resumes, and trains.
func (t *Trainer) Run(ctx context.Context) error {
	if t.vouched != nil {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		var ending atomic.Bool
		t.vouched.Fails(func(err error) {
			if !ending.CompareAndSwap(false, true) {
				<-ctx.Done() // somebody else tells the other nodes
				return
			}
			if !errors.Is(err, ErrUnverified) {
				t.Session.Doubt(ctx)
			}
			end(session.Unsound(err))
		})
	}
	var err error
	switch {
	case !t.Session.Alone():
		err = t.Meet(ctx)
	case t.Options.Resume:
		err = t.resumeOwn(ctx)
	}
	if err == nil {
		err = t.Sharing.learnt.here(t)
	}
	if err == nil {
		err = t.startFrom(ctx)
	}
	if err != nil {
		return err
	}
	if err := t.Prepare(ctx); err != nil {
		return err
	}
	return t.Train(ctx)
}

// ErrAsked is the cause of a context (see errors.Is) that ends a run because somebody
// asked for it, with no node missing.
var ErrAsked = errors.New("somebody asked for it")

// askedPatience is how long such a run goes on, if nodes have to combine their weights
// before these can be saved.
const askedPatience = 5 * time.Second

// patience returns a context for training: the run's own or, where stages settle, one
// that ends when they have, if somebody asked for the end. The caller must call end.
func (t *Trainer) patience(ctx context.Context) (patient context.Context, end func()) {
	if !t.settles() {
		return ctx, func() {}
	}
	patient, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t.quit = cancel
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, ErrAsked) {
			cancel(cause)
			return
		}
		t.Asked.Store(&cause)
		late := time.NewTimer(askedPatience)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(cause)
		case <-patient.Done():
		}
	})
	return patient, func() { stop(); cancel(nil) }
}

// settles reports whether stages must settle before a checkpoint, which they may after
// any epoch.
func (t *Trainer) settles() bool {
	return t.Method.Gathers()
}

// leaveIfAsked ends a run that was asked to, once its progress is saved.
func (t *Trainer) leaveIfAsked(ctx context.Context) error {
	cause := t.Asked.Load()
	if cause == nil || !t.resumable() {
		return nil
	}
	t.quit(*cause)
	return t.Stopped(ctx)
}
