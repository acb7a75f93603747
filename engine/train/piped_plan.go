package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// planPiped finds out how many stages and ways a pipeline has, and who computes which
// layers, and sets that in the task: all nodes call it at the same place of their run, and
// come to the same. With --deterministic nothing is measured.
func (t *learner) planPiped(ctx context.Context, task *pipe.Task, layout strategy.Layout) error {
	settings := &t.recipe.Sharing
	f := &pipe.Facts{
		Model: t.model, Census: pipe.NewCensus(layout.Firsts, t.data.topology, t.model.Form()), Layout: layout, Settings: settings,
		Number: t.device.Type().Bytes(), Network: pipe.Usual, Judged: t.recipe.EvalEvery,
	}
	if t.data.features.Sparse() {
		f.Entries = t.data.entries
	}
	f.Costs = pipe.Nominal(t.model.Stages(), f.Census, t.model.Size())
	if t.shared != nil && !settings.Deterministic {
		if err := t.timePiped(ctx, f, *task); err != nil {
			return err
		}
	}
	plan, err := f.Choose(ctx, t.at.Ways)
	if err != nil {
		return err
	}
	if s := t.shared; s != nil {
		if err := plan.Agree(ctx, s.exchange, s.work.Nodes, f, &s.start); err != nil {
			return err
		}
		s.why = plan.Why()
		if f.Costs.Timed {
			t.piped.predicted = &plan.Tried[0]
		}
		best := &plan.Tried[0]
		t.log.Info("the nodes have planned how they share the layers", "stages", plan.Stages, "ways", plan.Ways, "cuts", plan.Cuts, "timed", f.Costs.Timed,
			"seconds", best.Seconds, "compute", best.Compute, "halo", best.Halo, "boundary", best.Boundary, "bubble", best.Bubble, "sum", best.Sum, "history", best.History, "memory", best.Memory)
		if s.why != "" {
			const few = 3
			t.notes = append(t.notes, plan.Table(few)...)
		}
	}
	if settings.Pipe.Ways == strategy.Asked {
		t.at.Ways = plan.Ways // as long as the job goes on: what is learnt depends on them
	}
	return task.Place(plan, f)
}

// timePiped measures what a plan depends on: the network, and this node's layers on its own
// shards. All hear of all.
func (t *learner) timePiped(ctx context.Context, f *pipe.Facts, task pipe.Task) (err error) {
	s := t.shared
	if f.Network.Bandwidth, f.Network.RoundTrip, err = auto.Network(ctx, s.exchange, s.work, &s.start); err != nil {
		return err
	}
	var own []int
	for shard := range f.Layout.Owners {
		if s.owns(shard) {
			own = append(own, shard)
		}
	}
	trial := &trial{reads: &reads{data: t.data, device: t.device, places: make([]input, 1)}, keep: !f.Settings.Pipe.Again}
	defer trial.reads.close()
	if err := trial.reads.open(); err != nil {
		return err
	}
	for _, shard := range own {
		if of := t.data.shards[shard]; of.Vertices > 0 {
			trial.near = of.First
			break
		}
	}
	task.Features = trial
	timing, err := pipe.Rehearse(ctx, task, f.Layout.Firsts, own)
	if err != nil {
		return err
	}
	timing.Rest.Memory = t.roomForPiped()
	if err := f.Hear(ctx, s.exchange, s.work.Nodes, timing, &s.start); err != nil {
		return fmt.Errorf("plan a pipeline: %w", err)
	}
	return nil
}

// roomForPiped is the memory that is left for a pipeline, about: whether it is enough is
// looked at when all is known that the job needs.
func (t *learner) roomForPiped() uint64 {
	has, needs := t.hostMemory(), atHome+t.weightBytes()+t.data.features.Bytes()
	if s := t.shared; s != nil {
		needs += s.replica.Bytes
	}
	return max(1, has-min(has, needs))
}

// hostMemory is what a run may take of the machine, with what it has taken: nodes that are
// on one machine share what is free.
func (t *trainer) hostMemory() uint64 {
	if t.options.Memory > 0 {
		return t.options.Memory
	}
	m := t.options.measured()
	if s := t.shared; s != nil {
		return m.Free/uint64(s.onMachine) + m.Resident/uint64(s.inProcess)
	}
	return m.Free + m.Resident
}

// recompute has pipelines make again what forward made where there is no room to keep it,
// by all that the run needs, and says whether some do so now.
func (t *trainer) recompute(needs uint64) (some bool) {
	if needs <= t.hostMemory() {
		return false
	}
	for _, l := range t.learners {
		if p := l.piped; p != nil && pipe.MayRecompute(&l.recipe.Sharing) && !p.worker.Recompute {
			p.worker.Recompute, some = true, true
			p.reads.plan(p.worker)
		}
	}
	return some
}

// A trial is features by which a pipeline is timed: what is not here is what a vertex has
// that is.
type trial struct {
	reads *reads
	near  uint32
	keep  bool // inputs are made once
	ids   []uint32
}

var _ pipe.Features = (*trial)(nil)

// Input implements pipe.Features.
func (t *trial) Input(at, grain int, vertices []uint32) (nn.Input, error) {
	t.ids = append(t.ids[:0], vertices...)
	for i, v := range t.ids {
		if !t.reads.data.features.Has(v) {
			t.ids[i] = t.near
		}
	}
	if !t.keep || t.reads.places[at].grain != grain+1 {
		t.reads.places[at].grain = 0
	}
	in, err := t.reads.Input(at, grain+1, t.ids) // 0 is nobody
	in.Vertices = vertices
	return in, err
}
