package train

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

const (
	// looks is how many batches are sampled ahead to see how large they get, and
	// margin what a later one may have more, as a share.
	looks  = 4
	margin = 0.1
	// leastInference is what evaluation may take where nothing bounds it, and
	// training takes less.
	leastInference = 1 << 30
	// atHome is what the program takes for itself, beside what is counted.
	atHome = 48 << 20
)

// threads is how many compute.
func (t *trainer) threads() int {
	if t.options.Threads > 0 {
		return t.options.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// ahead is how many batches are prepared before the one in use, and workers how many
// goroutines prepare them. A run on one thread samples and computes in turn, unless it
// waits for other nodes meanwhile.
func (t *trainer) ahead() (slots, workers int) {
	threads := t.threads()
	if threads == 1 && t.shared == nil {
		return 1 + t.learners[0].older.slots(), 1
	}
	workers = max(1, threads/4)
	return 2 + workers + t.learners[0].older.slots(), workers
}

// prepare makes ready what steps and evaluation need, having forecast how much
// memory that is, and announces the run.
func (t *trainer) prepare(ctx context.Context) (err error) {
	t.phases = newPhases(ctx)
	slots, workers := t.ahead()
	if t.prefetch > 0 {
		slots, workers = t.prefetch+t.learners[0].older.slots(), min(workers, t.prefetch)
	}
	if err := t.chosen(ctx); err != nil {
		return err
	}
	if err := t.openFront(ctx); err != nil {
		return err
	}
	if err := t.openIsolated(ctx); err != nil {
		return err
	}
	for _, l := range t.learners {
		if err := l.openPiped(ctx); err != nil {
			return err
		}
		l.sums = l.newSums()
	}
	t.dealing = newDealing(t)
	t.batches, err = newBatches(t.data, t.dealing, &t.phases, &t.recipe, t.sampling(), slots, workers, t.newHand)
	if err != nil {
		return err
	}
	need, err := t.foresee(ctx)
	if err == nil && t.recompute(need.onHost(t)) {
		need, err = t.foresee(ctx)
	}
	if err == nil {
		need, err = t.furnish(ctx, need)
	}
	if err != nil {
		return err
	}
	if err := t.afford(ctx, roomForSteps, need.onHost(t)); err != nil {
		return err
	}
	if err := t.fault(0, 0); err != nil {
		return err
	}
	if t.foreign == nil {
		err = t.batches.reserve(int(need.rows))
	} else if err = t.affordDevice(&need); err == nil {
		err = t.openFerry(&need)
	}
	if err != nil {
		return err
	}
	for _, l := range t.learners {
		if err := l.piped.start(l); err != nil {
			return err
		}
	}
	if t.work, err = t.device.NewArena(int(need.pass)); err != nil {
		return err
	}
	if t.infer, err = newInference(t.data, t.device, t.work, need.inference, t.options); err != nil {
		return err
	}
	t.infer.tick = func() { t.tell(true) }
	for _, l := range t.learners {
		l.pass = l.model.NewPass(t.device, t.work)
		l.pass.Weights, l.pass.Gradients, l.pass.Train = l.weights, l.gradients, true
		l.pass.Done = ctx.Done()
		l.view = t.infer.add(l.model, l.weights)
	}
	if err := t.fault(0, 0); err != nil {
		return err
	}
	t.announce(&need)
	return nil
}

// foresee draws some batches to see what memory steps need.
func (t *trainer) foresee(ctx context.Context) (need needs, err error) {
	if t.front != nil {
		t.front.From(0, 0) // these steps are of no epoch
	}
	err = t.batches.ahead(ctx, min(t.place().epoch, t.recipe.Epochs), looks, func(s *slot) { need.see(t, s) })
	if err == nil {
		err = t.fault(0, 0) // a device that has failed says that it has no memory left
	}
	if err == nil {
		need.settle(t)
	}
	return need, err
}

func (t *trainer) announce(n *needs) {
	at := t.place()
	f := Forecast{
		Device: t.device.Name(), Shards: t.data.mapped, Arenas: n.sum(),
		Epochs: t.recipe.Epochs, Resumed: at.epoch - 1, Step: at.step, Notes: t.notes,
	}
	if t.foreign != nil {
		f.Arenas, f.There = n.others(), n.onDevice()+n.takes
	}
	for _, l := range t.learners {
		f.Weights += l.model.Size()
		f.History = append(f.History, l.history...)
	}
	slices.SortStableFunc(f.History, func(a, b Epoch) int { return cmp.Compare(a.Epoch, b.Epoch) })
	split := t.data.about.Splits[t.recipe.Split]
	if split.Val == 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("split %d has no validation vertices: the weights of the last epoch are kept, since none can be called the best", t.recipe.Split))
	}
	if t.shared != nil {
		f.Notes = append(f.Notes, t.shared.notes()...)
		sent := t.shared.start.Read()
		t.log.Info("this node knows what it must of the others' shards", "replicated", t.shared.replica.Replicated,
			"bytes", t.shared.replica.Bytes, "brought", sent.Bytes[strategy.Topology]+sent.Bytes[strategy.Shard])
	}
	for _, note := range f.Notes {
		t.log.Info("the training begins with a note", "note", note)
	}
	if t.options.Announce != nil {
		t.options.Announce(f)
	}
	for _, l := range t.learners {
		l.tellLost() // before it was resumed
	}
}
