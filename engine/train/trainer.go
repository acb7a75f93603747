package train

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A Trainer is one run: the common state of its learners. All of it and of them is
// called from one goroutine, except what the loader's workers do to slots.
type Trainer struct {
	Recipe  recipe.Recipe
	Options Options
	Log     *slog.Logger
	Notes   []string

	Data    *dataset.Graph
	Session *session.Session
	Sharing *sharing
	Infer   *evaluate.Evaluator
	hardware

	Learners []*Learner
	Turn     []*Learner // those that do the step, or end the epoch, that is under way
	Method   Method
	feed

	Checkpoints *checkpoint.Folder
	pace
	stopping
}

// hardware is the device of a run, and its memory there.
type hardware struct {
	Device  tensor.Device
	Foreign tensor.Foreign // the device, if its memory is not the host's; else nil
	asks    tensor.Teller  // the same, if it can answer many questions at once; else nil
	// products may be rounded while training, but not for reports and evaluation. nil:
	// the device never rounds.
	products rounding

	Kept     tensor.Arena   // of what lives as long as the run
	Work     tensor.Arena   // of one pass
	Uploader *slot.Uploader // of workers, on a device whose memory is not the host's; else nil
}

// feed prepares the steps of a run.
type feed struct {
	Batches  *slot.Batches
	Prefetch int      // slots of batches; 0: as Ahead returns
	fell     []string // what was given up so that the run fits
	Phases   slot.Phases
}

// pace is the timing of a run.
type pace struct {
	progressed time.Time // time of the last progress report
	begun      time.Time // when the epoch's training went on, or was counted, last
	whole      bool      // the epoch under way is trained by this run from its first step on
	adopted    bool      // the run goes on from a checkpoint
}

// stopping is how a run ends before it is done.
type stopping struct {
	Together bool                    // all nodes have settled, so that all write a checkpoint
	Asked    atomic.Pointer[error]   // the request to end the run; nil: none
	quit     context.CancelCauseFunc // ends a run that goes on despite that; see patience
	intact   session.Trust
	vouched  *session.Vouched // the connection to the other nodes; nil: the run shares or verifies nothing
}

// NewTrainer makes a run: the nodes begin their session, and weights have their memory.
// Of a run that fails here nothing is left.
func NewTrainer(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o Options) (*Trainer, error) {
	t := &Trainer{Recipe: r, Options: o, Log: o.Log}
	if t.Log == nil {
		t.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	if err = t.join(ctx, shards); err != nil {
		return nil, err
	}
	if err := t.Read(); err != nil {
		t.Session.Leave(ctx, t.Log) // all end with this error
		return nil, err
	}
	if err := t.link(ctx); err != nil {
		if Together(err) {
			t.Session.Leave(ctx, t.Log)
		}
		return nil, err
	}
	if err := t.newLearners(); err != nil {
		return nil, err
	}
	t.Checkpoints = t.NewFolder()
	if t.Method, err = t.newMethod(); err != nil {
		return nil, err
	}
	if err := t.Sharing.learnt.Decide(ctx, t.Session, &t.Recipe, t.described().Isolated, t.WeightBytes, budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has); err != nil {
		if Together(err) {
			t.Session.Leave(ctx, t.Log)
		}
		return nil, err
	}
	if err := t.Afford(ctx, t.Sharing.learnt.Room(), t.WeightBytes()+budget.Program); err != nil {
		if Together(err) {
			t.Session.Leave(ctx, t.Log)
		}
		return nil, err
	}
	if err := t.openDevice(); err != nil {
		return nil, err
	}
	if t.Foreign == nil && slices.ContainsFunc(t.Learners, func(l *Learner) bool { return l.Recipe.BF16 }) && !family.BF16() {
		t.Notes = append(t.Notes, "this CPU has no products of BF16 numbers: they are computed in f32")
	}
	if err := t.allocate(ctx); err != nil {
		t.Close()
		return nil, err
	}
	if t.Session.Alone() {
		return t, nil
	}
	if err := t.ready(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Read makes the data of what this node holds and has fetched.
func (t *Trainer) Read() (err error) {
	if err := t.Recipe.Check(t.Session.About(), t.Options.Strategies); err != nil {
		return err
	}
	if t.Data, err = t.Session.Graph(t.Recipe.Split, t.Recipe.Features); err == nil {
		t.Data.About.Features += t.Recipe.Embeddings
	}
	return err
}

// link has pairs of vertices learnt, if the recipe says so, once all nodes have room for them.
func (t *Trainer) link(ctx context.Context) error {
	spec := t.Recipe.Links
	if spec == nil {
		return nil
	}
	mine := budget.NewNode(t.Data.About.LinkBytes(spec)+budget.Program, t.Options.Memory, t.Options.Measured())
	if _, err := fit.Agree(ctx, t.Session, roomForEdges, mine, nil); err != nil { // no smaller batch helps
		return err
	}
	if err := t.Data.Link(ctx, spec, t.Recipe.Seed); err != nil {
		return err
	}
	of := t.Data.About.Splits[0]
	for _, r := range t.Recipe.Models() {
		if err := r.CheckPairs(int(of.Train), int(of.Val)); err != nil {
			return &session.Agreed{Err: err}
		}
	}
	return nil
}

// rounding is a device that can round the numbers of products.
type rounding interface{ SetBF16(on bool) }

// round turns the rounding of products on or off.
func (t *Trainer) round(on bool) {
	if t.products != nil {
		t.products.SetBF16(on)
	}
}

// allocate takes the memory that lives as long as the run.
func (t *Trainer) allocate(ctx context.Context) (err error) {
	const rows, ends = 4, 1 << 10 // weights, gradients and two moments, each from a whole line on
	bytes := 0
	for _, l := range t.Learners {
		bytes += (rows+t.Method.Rows())*l.Model.Size()*t.Device.Type().Bytes() + ends
	}
	if t.Kept, err = t.Device.NewArena(bytes); err != nil {
		return err
	}
	for _, l := range t.Learners {
		if err := l.allocate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sampling returns how batches are sampled, for all models alike.
func (t *Trainer) sampling() sample.Options {
	model := t.Learners[0].Model
	o := sample.Options{Fanouts: t.Recipe.Fanouts, Each: t.Recipe.Each, Form: model.Form(), Seed: t.Recipe.Seed, Steady: t.described().Elsewhere}
	if len(o.Fanouts) == 0 {
		o.Fanouts = make([]int, model.Hops())
	}
	return o
}

// Close releases what the run holds.
func (t *Trainer) Close() {
	t.Batches.Close()
	t.Method.Close()
	if t.Infer != nil {
		t.Infer.Close()
	}
	for _, a := range []tensor.Arena{t.Kept, t.Work} {
		if a != nil {
			a.Close()
		}
	}
	t.Uploader.Close()
	if t.Session != nil {
		t.Session.Source.Drop()
	}
	if t.Device != nil {
		t.Device.Close()
	}
}

// Train does what is left of the recipe. Whatever ends it, a checkpoint of the last
// step is left, unless numbers are no longer finite.
func (t *Trainer) Train(ctx context.Context) error {
	ctx, end := t.patience(ctx)
	defer end()
	first := time.Duration(0)
	if t.settles() && t.Options.Interval == 0 {
		t.Checkpoints.Rarely() // nodes exchange all weights for each, and marks cover a loss
		first = time.Second
	}
	t.Checkpoints.Begin(first)
	if t.Sharing.learnt.Apart {
		t.Checkpoints.Hold()
	}
	defer t.Checkpoints.Close()
	for !t.Done() {
		if err := t.Epoch(ctx); err != nil {
			_, diverged := errors.AsType[*trained.Diverged](err)
			_, unsaved := errors.AsType[*checkpoint.Unsaved](err)
			_, broken := errors.AsType[*slot.Broken](err)
			_, damaged := errors.AsType[*Damaged](err)
			if diverged || unsaved || broken || damaged {
				return t.blame(ctx, err)
			}
			if t.Sweeps() && t.dropUnsound(ctx) != nil {
				return err // none is left to keep: the run reports it when it goes on
			}
			return errors.Join(err, t.SaveBack())
		}
	}
	if err := t.allDiverged(); err != nil {
		return err
	}
	return t.saveLast(ctx)
}
