package train

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/hopmesh/hopmesh/engine/balance"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Looks is how many batches are looked at to see how large they get.
const Looks = 4

// Threads returns how many threads compute.
func (t *Trainer) Threads() int {
	if t.Options.Threads > 0 {
		return t.Options.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// Ahead returns how many batches are prepared before the one in use, and how many
// goroutines prepare them.
func (t *Trainer) Ahead() (slots, workers int) {
	return fit.Slots(t.Threads(), t.Method.Inflight(), t.Session.Alone())
}

// balance finds the weights of losses that balance targets, if the recipe asks for them.
func (t *Trainer) balance(ctx context.Context) (err error) {
	if !t.Recipe.Balanced {
		return nil
	}
	if t.Data.About.Balance, err = balance.Weights(ctx, t.Session, t.Data); err != nil {
		return err
	}
	for _, l := range t.Learners {
		l.Task = task.New(l.Recipe.TaskSpec(&t.Data.About))
	}
	return nil
}

// Prepare forecasts the memory of steps and evaluation, takes it, and announces the
// run.
func (t *Trainer) Prepare(ctx context.Context) (err error) {
	if err := t.balance(ctx); err != nil {
		return err
	}
	t.Phases = slot.NewPhases(ctx)
	t.Infer = evaluate.New(t.Data, evaluationNodes(t.Session), t.Recipe.TaskSpec(&t.Data.About))
	for _, l := range t.Learners {
		if t.Method.Evaluates() {
			l.view = t.Infer.Add(l.Model, l.Weights)
		}
	}
	if t.once() {
		t.Infer.Once()
	}
	if err := t.chosen(ctx); err != nil {
		return err
	}
	if err := t.Method.Open(ctx); err != nil {
		return err
	}
	slots, workers := t.Ahead()
	if t.Prefetch > 0 {
		slots, workers = t.Prefetch+t.Method.Inflight()-1, min(workers, t.Prefetch)
	}
	t.Batches = NewBatches(t, slots, workers)
	need, err := t.Forecast(ctx)
	if err != nil {
		return err
	}
	again, err := t.Method.Fit(ctx, &need)
	if err == nil && again {
		need, err = t.Forecast(ctx)
	}
	if err == nil {
		err = t.bringEdges(ctx, &need)
	}
	if err == nil {
		err = t.fallBack(ctx, &need)
	}
	if err == nil {
		err = t.keepRows(ctx, &need)
	}
	if err != nil {
		return err
	}
	if err := t.Afford(ctx, roomForSteps, need.OnHost()); err != nil {
		return err
	}
	if err := t.Fault(0, 0); err != nil {
		return err
	}
	if err := t.Method.Start(ctx); err != nil {
		return err
	}
	if err := t.Batches.Open(); err != nil {
		return err
	}
	if t.Batches.Same {
		if err := t.Batches.Fill(ctx, t.from()); err != nil {
			return err
		}
	}
	if t.Foreign == nil {
		err = t.Reserve(&need)
	} else if err = t.AffordDevice(&need); err == nil {
		err = t.openUploader(&need)
	}
	if err != nil {
		return err
	}
	if t.Work, err = t.Device.NewArena(int(max(need.Of(budget.Pass), t.Infer.Arena(need.Inference.May)))); err != nil {
		return err
	}
	if t.Method.Evaluates() {
		err = t.Infer.Open(t.Device, t.Work, evaluate.Options{
			Memory: need.Inference.May, Dir: t.Options.Dir, Threads: t.Options.Threads, Tick: func() { t.Progress(true) },
		})
		if err != nil {
			return err
		}
	}
	for _, l := range t.Learners {
		l.Pass = l.Model.NewPass(t.Device, t.Work)
		l.Pass.Weights, l.Pass.Gradients, l.Pass.Train = l.Weights, l.Gradients, true
		l.Pass.Done = ctx.Done()
	}
	if err := t.Fault(0, 0); err != nil {
		return err
	}
	t.announce(&need)
	return nil
}

// Reserve makes memory for the dense rows of steps.
func (t *Trainer) Reserve(n *Needs) error {
	if n.Late {
		return t.Batches.Share(int(n.Rows), int(n.Far))
	}
	return t.Batches.Reserve(int(n.Rows))
}

// from returns the epoch that the run begins with, or the last if all are done.
func (t *Trainer) from() int { return min(t.Place().Epoch, t.Recipe.Epochs) }

// Forecast finds what memory steps need, of some that it looks at.
func (t *Trainer) Forecast(ctx context.Context) (need Needs, err error) {
	err = t.Batches.Outline(ctx, NewLooker(t), t.from(), Looks, func(o *slot.Outline) { t.Method.See(&need, o) })
	if err == nil {
		err = t.Fault(0, 0) // a device that has failed reports no memory left
	}
	if err == nil {
		t.Settle(&need)
	}
	return need, err
}

func (t *Trainer) announce(n *Needs) {
	at := t.Place()
	if said := t.Infer.Spills(n.Inference.May); said != "" {
		t.fell = append(t.fell, said)
	}
	if !t.Session.Alone() && t.Session.Replica.Full != "" {
		t.fell = append(t.fell, t.Session.Replica.Full)
	}
	f := Forecast{
		Device: t.Device.Name(), Shards: t.Data.Mapped, Arenas: n.Total(),
		Epochs: t.Recipe.Epochs, Resumed: at.Epoch - 1, Step: at.Step, Notes: slices.Concat(t.Notes, t.fell), FellBack: t.fell,
	}
	if t.Foreign != nil {
		f.Arenas, f.There = n.Base(), n.OnDevice()+n.Inference.Takes
	}
	for _, l := range t.Learners {
		f.Weights += l.Model.Size()
		f.History = append(f.History, l.History...)
	}
	slices.SortStableFunc(f.History, func(a, b trained.Epoch) int { return cmp.Compare(a.Epoch, b.Epoch) })
	split := t.Data.About.Splits[t.Recipe.Split]
	if split.Val == 0 && t.Data.Links != nil {
		f.Notes = append(f.Notes, "no edges are for validation: the weights of the last epoch are kept, since none can be called the best")
	} else if split.Val == 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("split %d has no validation vertices: the weights of the last epoch are kept, since none can be called the best", t.Recipe.Split))
	}
	if !t.Session.Alone() {
		f.Notes = append(f.Notes, t.Sharing.notes(t.Session, t.described().Isolated)...)
		f.Notes = append(f.Notes, t.Sharing.learnt.Notes(t.Session, &t.Recipe, &t.Data.About)...)
		sent := t.Session.Start.Read()
		t.Log.Info("this node knows what it must of the others' shards", "replicated", t.Session.Replica.Replicated,
			"bytes", t.Session.Replica.Bytes, "file_bytes", t.Session.Replica.Filed, "brought", sent.Bytes[peer.Topology]+sent.Bytes[peer.Shard])
	}
	for _, note := range f.Notes {
		t.Log.Info("the training begins with a note", "note", note)
	}
	if t.Options.Announce != nil {
		t.Options.Announce(f)
	}
	for _, l := range t.Learners {
		l.reportDropped() // before it was resumed
	}
}
