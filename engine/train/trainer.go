package train

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// A trainer is one run: what its learners have in common. Its goroutine calls all of it
// and of them but what its loader's hands do to slots.
type trainer struct {
	recipe  Recipe
	options Options
	log     *slog.Logger
	data    *data
	device  tensor.Device
	foreign tensor.Foreign // the device, if its memory is not the host's; else nil
	teller  tensor.Teller  // the same, if it can be asked about much at once; else nil
	// products may be rounded while training; what is told and judged is not. nil: the
	// device never does.
	products rounding

	kept   tensor.Arena // of what lives as long as the run
	work   tensor.Arena // of one pass
	ferry  *ferry       // of hands, on a device whose memory is not the host's; else nil
	infer  *inference
	judges judges

	learners []*learner
	turn     []*learner // those that do the step, or end the epoch, that is under way

	shared   *shared   // nil: this node does it all
	front    *front    // nil: passes begin with features
	isolated *isolated // nil: groups see all that they read

	dealing  *dealing
	batches  *batches
	prefetch int // slots of batches; 0: as ahead says
	phases   phases

	notes []string
	saved saved // the last checkpoint
	told  time.Time
	begun time.Time // when the epoch's training went on, or was counted, last
	whole bool      // the epoch under way is trained by this run from its first step on

	together bool                    // all nodes have settled, so that all write a checkpoint
	asked    atomic.Pointer[error]   // by which somebody asked that the run ends; nil: nobody has
	quit     context.CancelCauseFunc // ends a run that goes on although somebody has; see patient
}

func newTrainer(ctx context.Context, r Recipe, shards []*graph.Shard, o Options) (*trainer, error) {
	t := &trainer{recipe: r, options: o, log: o.Log}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if t.shared, err = join(ctx, &r, shards, &o); err != nil {
		return nil, err
	}
	if err := t.read(shards); err != nil {
		if t.shared != nil {
			t.leave(ctx) // all come to this
		}
		return nil, err
	}
	if err := t.newLearners(); err != nil {
		return nil, err
	}
	if err := t.afford(ctx, roomForWeights, t.weightBytes()+atHome); err != nil {
		if Together(err) {
			t.leave(ctx)
		}
		return nil, err
	}
	if err := t.openDevice(); err != nil {
		return nil, err
	}
	if t.foreign == nil && slices.ContainsFunc(t.learners, func(l *learner) bool { return l.recipe.BF16 }) && !family.BF16() {
		t.notes = append(t.notes, "this CPU has no products of BF16 numbers: they are computed in f32")
	}
	if err := t.allocate(ctx); err != nil {
		t.close()
		return nil, err
	}
	if t.shared == nil {
		return t, nil
	}
	for _, l := range t.learners {
		l.tour.shared = t.shared
		if l.local, err = l.newLocal(); err != nil {
			t.close()
			return nil, err
		}
	}
	if err := t.shared.ready(ctx, t); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// read makes the data of what this node holds and has brought.
func (t *trainer) read(held []*graph.Shard) (err error) {
	if t.shared == nil {
		if err := t.recipe.Check(Describe(held)); err != nil {
			return err
		}
		t.data, err = newData(held, t.recipe.Split, t.recipe.Features)
		return err
	}
	if err := t.recipe.Check(describe(t.shared.replica.Shards, t.shared.replica.Summaries)); err != nil {
		return err
	}
	t.data, err = newPart(held, t.shared.replica, t.recipe.Split, t.recipe.Features)
	return err
}

// rounding is a device that can round the numbers of products.
type rounding interface{ SetBF16(on bool) }

// round has products rounded, or no longer.
func (t *trainer) round(on bool) {
	if t.products != nil {
		t.products.SetBF16(on)
	}
}

// allocate makes what lives as long as the run.
func (t *trainer) allocate(ctx context.Context) (err error) {
	const rows, ends = 4, 1 << 10 // weights, gradients and two moments, each from a whole line on
	bytes := 0
	for _, l := range t.learners {
		bytes += (rows+l.olderRows())*l.model.Size()*t.device.Type().Bytes() + ends
	}
	if t.kept, err = t.device.NewArena(bytes); err != nil {
		return err
	}
	for _, l := range t.learners {
		if err := l.allocate(ctx); err != nil {
			return err
		}
	}
	t.judges = newJudges(t.data.about.Classes, t.recipe.Metric == ROCAUC)
	return nil
}

// sampling says how batches are drawn, for all models alike.
func (t *trainer) sampling() sample.Options {
	model := t.learners[0].model
	o := sample.Options{Fanouts: t.recipe.Fanouts, Form: model.Form(), Seed: t.recipe.Seed}
	if len(o.Fanouts) == 0 {
		o.Fanouts = make([]int, model.Hops())
	}
	return o
}

func (t *trainer) close() {
	t.batches.close()
	t.isolated.close()
	if t.front != nil {
		t.front.Close()
	}
	if t.infer != nil {
		t.infer.close()
	}
	for _, l := range t.learners {
		l.piped.close()
	}
	for _, a := range []tensor.Arena{t.kept, t.work} {
		if a != nil {
			a.Close()
		}
	}
	t.ferry.close()
	if t.device != nil {
		t.device.Close()
	}
}

// train does what is left of the recipe. Whatever ends it, a checkpoint of the last
// step is left, unless numbers are no longer finite.
func (t *trainer) train(ctx context.Context) error {
	ctx, end := t.patient(ctx)
	defer end()
	t.saved.at = time.Now()
	if t.settles() && t.options.Interval == 0 {
		// Who is interrupted has nothing but the last, so the first comes soon.
		const soon = time.Second
		t.saved.at = t.saved.at.Add(soon - saveEvery)
	}
	defer t.dropBefore()
	for !t.done() {
		if err := t.epoch(ctx); err != nil {
			_, diverged := errors.AsType[*Diverged](err)
			_, unsaved := errors.AsType[*Unsaved](err)
			_, broken := errors.AsType[*Broken](err)
			if diverged || unsaved || broken {
				return err
			}
			if t.sweeps() && t.loseUnsound(ctx) != nil {
				return err // none is left to keep: the run says so when it goes on
			}
			return errors.Join(err, t.save())
		}
	}
	if err := t.allDiverged(); err != nil {
		return err
	}
	return t.saveLast(ctx)
}
