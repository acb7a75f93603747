package pipe

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/input"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/timing"
	"github.com/hopmesh/hopmesh/engine/train"
)

// planPiped chooses how many stages and ways a pipeline has and who computes which
// layers, and sets that in the task. All nodes call it at the same point of their run
// and choose the same. With --deterministic nothing is measured.
func planPiped(ctx context.Context, t *train.Learner, task *Task, layout peer.Layout) error {
	settings := Of(&t.Recipe.Sharing)
	f := &Facts{
		Model: task.Model, Layout: layout, Settings: settings, Number: t.Run.Device.Type().Bytes(), Network: costs.Usual,
		Held: !shelf.Files(task.Blocks.Dir),
	}
	if err := f.count(ctx, t); err != nil {
		return err
	}
	if t.Run.Data.Features.Sparse() {
		f.Entries = t.Run.Data.Entries
	}
	f.Costs = costs.Nominal(task.Model.Stages(), f.Census)
	s, room := t.Run.Session, roomForPiped(t)
	times := !s.Alone() && !settings.Deterministic
	if times {
		var err error
		if f.Memory, err = costs.Rooms(ctx, s.Exchange, s.Work.Nodes, room, &s.Start); err != nil {
			return err
		}
	}
	all, err := f.Candidates(ctx, t.At.Ways)
	if err != nil {
		return err
	}
	units := arrange.Units(task.Model.Stages())
	e, err := t.Run.Agreed(ctx, func() (schedule.Entry, error) {
		all, err = f.rank(ctx, t, task, all, times, room)
		if err != nil {
			return schedule.Entry{}, err
		}
		return schedule.Entry{Strategy: t.Recipe.Sharing.Strategy, Part: all.Part(), Why: all.Why()}, nil
	})
	if err != nil {
		return err
	}
	if err := all.Follow(e.Part, units); err != nil {
		return err
	}
	if !s.Alone() {
		t.Run.Sharing.Why = e.Why
	}
	needs, err := f.least(&all[0], t.Run.Session.Work.Self)
	if err != nil {
		return err
	}
	// Blocks are made before all that is needed is known. Whoever lacks the memory for most of
	// it makes none.
	if err := t.Run.Afford(ctx, roomForPlan, beside(t)+needs); err != nil {
		return err
	}
	if settings.Ways == strategy.Asked {
		t.At.Ways = all[0].Ways // fixed for the job: what is learnt depends on them
	}
	return task.Place(&all[0], f)
}

// rank orders candidates by what all nodes measure and try.
func (f *Facts) rank(ctx context.Context, t *train.Learner, task *Task, all arrange.Candidates, times bool, room uint64) (arrange.Candidates, error) {
	s, units := t.Run.Session, arrange.Units(task.Model.Stages())
	if times {
		// Where nothing fits, the job will be refused: no layers are timed first.
		if err := all.Agree(ctx, arrange.ByFormula, s.Exchange, s.Work.Nodes, units, &s.Start); err != nil {
			return nil, err
		}
		if all[0].Fits {
			err := timePiped(ctx, t, f, *task, room)
			if err == nil {
				all, err = f.Candidates(ctx, t.At.Ways)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if s.Alone() {
		return all, nil
	}
	if err := all.Agree(ctx, arrange.ByTimes, s.Exchange, s.Work.Nodes, units, &s.Start); err != nil {
		return nil, err
	}
	if f.Costs.Timed {
		if err := tryPiped(ctx, t, f, *task, all); err != nil {
			return nil, err
		}
		t.Run.Method.(*Method).predicted = &all[0]
	}
	best := &all[0]
	t.Run.Log.Info("the nodes have chosen how they share the layers", "stages", best.Stages, "ways", best.Ways, "cuts", best.Cuts, "timed", f.Costs.Timed, "tried", best.Tried,
		"seconds", best.Seconds, "compute", best.Compute, "halo", best.Halo, "boundary", best.Boundary, "bubble", best.Bubble, "sum", best.Sum, "history", best.History, "memory", best.Memory)
	if all.Why() != "" {
		const few = 3
		t.Run.Notes = append(t.Run.Notes, all.Table(few)...)
	}
	return all, nil
}

// count has the graph counted, by all nodes together.
func (f *Facts) count(ctx context.Context, t *train.Learner) error {
	s, form := t.Run.Session, t.Model.Form()
	if s.Alone() {
		f.Census = census.New(f.Layout.Firsts, t.Run.Data.Topology, form)
		return nil
	}
	f.Census = census.Begin(f.Layout.Firsts, s.Replica.Edges())
	var shapes []*arrange.Shape
	for _, ways := range f.ways(t.At.Ways) {
		shape, err := f.shape(ways)
		if err != nil {
			return err
		}
		shapes = append(shapes, shape)
	}
	return f.Census.Share(ctx, s.Exchange, s.Work, t.Run.Data.Topology, form, shapes, &s.Start)
}

// timePiped measures the facts that rank candidates: the network, and this node's
// layers on its own shards. All nodes exchange their results.
func timePiped(ctx context.Context, t *train.Learner, f *Facts, task Task, room uint64) (err error) {
	s := t.Run.Session
	if f.Network.Bandwidth, f.Network.RoundTrip, err = auto.Network(ctx, s.Exchange, s.Work, &s.Start); err != nil {
		return err
	}
	var own []int
	for shard := range f.Layout.Owners {
		if s.Owns(shard) {
			own = append(own, shard)
		}
	}
	inputs := input.NewStandIns(t.Run.Data, t.Run.Device)
	inputs.PlanOne()
	defer inputs.Close()
	if err := inputs.Open(); err != nil {
		return err
	}
	task.Features = inputs
	shards, takes := timing.Choose(own, f.Census, f.Model, f.Entries, RoomToTime(room))
	m := t.Run.Method.(*Method)
	m.tried = max(m.tried, takes)
	took, err := timing.Layers(ctx, task.subject(), f.Census, shards)
	if err != nil {
		return err
	}
	if f.Costs, err = costs.Share(ctx, s.Exchange, s.Work.Nodes, took, f.Model.Stages(), f.Census, &s.Start); err != nil {
		return fmt.Errorf("plan a pipeline: %w", err)
	}
	return nil
}

// RoomToTime returns how much of the memory for a pipeline its layers may take to be timed.
// Half: a job that fits shall not be refused for that.
func RoomToTime(room uint64) uint64 { return room / 2 }

// tryPiped trains some epochs on all nodes by each of the best candidates, discards
// them, and moves the fastest candidate to the front.
func tryPiped(ctx context.Context, t *train.Learner, f *Facts, task Task, all arrange.Candidates) error {
	var took []float64
	var trials Trials
	for number := range all.ToTry() {
		c := &all[number]
		if err := task.Place(c, f); err != nil {
			return err
		}
		task.Recompute = c.Recomputes
		d, err := f.drafted(c, c.Recomputes)
		if err != nil {
			return err
		}
		m := t.Run.Method.(*Method)
		m.tried = max(m.tried, d.takes(t.Run.Session.Work.Self))
		inputs := input.NewStandIns(t.Run.Data, t.Run.Device)
		task.Features = inputs
		seconds, err := trials.Try(ctx, task, func(w *Worker) error {
			inputs.Plan(w.Reads())
			return inputs.Open()
		})
		inputs.Close()
		if err != nil {
			return fmt.Errorf("try %s: %w", c, err)
		}
		took = append(took, seconds)
	}
	all.Choose(took)
	return nil
}

// roomForPlan is the message in which nodes ask for the memory of the arrangement that they
// have chosen: after they have, and before they bring edges for it.
var roomForPlan = exchange.Tag{Step: meetAt - 1, Lane: exchange.LaneMessages}

// roomForPiped returns about the memory that is left for a pipeline. Whether it is
// enough is checked once all needs of the job are known.
func roomForPiped(t *train.Learner) uint64 {
	has := hostMemory(t.Run)
	return max(1, has-min(has, beside(t)))
}

// beside returns what a run takes beside a pipeline.
func beside(t *train.Learner) uint64 {
	return budget.Program + t.Run.WeightBytes() + t.Run.Data.Features.Bytes() + t.Run.Session.Replica.Bytes
}

// hostMemory returns what a run may take of the machine, including what it has taken.
// Nodes on one machine share what is free.
func hostMemory(t *train.Trainer) uint64 {
	if t.Options.Memory > 0 {
		return t.Options.Memory
	}
	m := t.Options.Measured()
	return m.Free/uint64(t.Session.OnMachine) + m.Resident/uint64(t.Session.InProcess)
}

// Fit implements Method: where memory is short, features are gathered again for each
// shard, forward and backward. Where there is still no room to keep activations, the
// worker recomputes them, too. Neither changes a bit, so each node decides for itself.
func (p *Method) Fit(_ context.Context, need *train.Needs) (again bool, err error) {
	has, needs := hostMemory(p.run), need.OnHost()
	if needs <= has {
		return false, nil
	}
	if saved := p.reads.Share(); saved > 0 {
		needs, again = needs-min(needs, saved), true
		p.run.Notes = append(p.run.Notes, fmt.Sprintf("to fit the memory, features are gathered again for each shard in each epoch, which saves %s", budget.Format(saved)))
	}
	if needs > has && p.settings.MayRecompute() && !p.Worker.Recompute {
		p.Worker.Recompute, again = true, true
		p.reads.Plan(p.Worker.Reads())
	}
	return again, nil
}
