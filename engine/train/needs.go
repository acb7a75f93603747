package train

import (
	"context"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
)

// Needs is the memory that a run takes.
type Needs = fit.Needs

// Settle adds the rest, once all batches are seen.
func (t *Trainer) Settle(n *Needs) {
	n.Foreign = t.Foreign != nil
	n.Ahead(t.Batches.Depth, t.Batches.Hands, t.Batches.Same)
	n.Add(budget.Weights, t.WeightBytes())
	for _, l := range t.Learners {
		n.Add(budget.Weights, l.sumBytes())
	}
	n.Add(budget.Graph, t.Data.Copied+t.Infer.LinkBytes())
	n.Add(budget.Graph, 4*uint64(len(t.Data.Training))+t.Data.Features.Bytes()+t.Data.Topology.DegreeBytes(t.sampling().Form))
	if !t.Session.Alone() {
		n.Add(budget.Graph, t.Session.Replica.Bytes+t.Sharing.Cached)
		n.Set(budget.Mapped, t.Session.Replica.Filed)
	}
	t.Method.Needs(n)
	t.Infer.Expect(n.Of(budget.Pass), n.Foreign, t.Options.Dir)
	n.Inference.Least = t.Infer.Least()
	if t.once() {
		n.GivesBack(t.Batches.Depth)
	}
	t.bound(n)
}

// bound sets what inference may take of the rest.
func (t *Trainer) bound(n *Needs) {
	n.Bound(t.Options.Memory, t.once(), t.Session.Alone())
	t.Choose(n)
	t.room(n)
	n.Inference.Takes = max(n.Inference.Least, t.Infer.Takes(n.Inference.May))
}

// once reports whether models are evaluated only once, at the end.
func (t *Trainer) once() bool { return t.Recipe.EvalEvery >= t.Recipe.Epochs }

// WeightBytes returns the memory of the models' weights during training: with
// gradients, moments, the best ones, a copy to read and one that a checkpoint is
// written from.
func (t *Trainer) WeightBytes() (bytes uint64) {
	for _, l := range t.Learners {
		bytes += 4*uint64((7+t.Method.Rows())*l.Model.Size()) + task.Bytes(l.Model.Added()) + t.Sharing.learnt.Bytes(t.Session, &l.Recipe, &t.Data.About)
		if t.Sharing.learnt.Apart { // the mark of before the last update, with the best
			bytes += 4 * uint64((2+len(l.Recipe.Optimizer.Moments()))*l.Model.Size())
		}
	}
	return bytes
}

// sumBytes returns the memory of adding up gradients: a row, those of other nodes and,
// by grains, those of a path through the tree. Models that travel take two buffers at
// each stop.
func (t *Learner) sumBytes() uint64 {
	rows := uint64(3)
	if t.Recipe.Sharing.Deterministic {
		rows += 3 * uint64(bits.Len(uint(len(t.Run.Data.Shards))))
	}
	if !t.Run.Session.Alone() {
		rows += 2 * uint64(t.Run.Sharing.Dealer.Tuning().Slots)
	}
	rows = t.Run.Method.SumRows(t, rows)
	return 4 * rows * uint64(t.Model.Size())
}

// The messages in which nodes exchange what memory they need: one before they copy edges, where
// pairs are learnt, one before they take any for weights (see tables.Placement.Room), one before they take
// any for steps.
// Others precede strategies that are tried, see auto.RoomFor. Offers go by in the order of their
// tags: the first two come before the one by which nodes meet, in its step, and the last after
// those by which they choose a strategy.
var (
	roomForEdges = exchange.Tag{Lane: exchange.LaneMessages, Index: 2}
	roomForSteps = exchange.Tag{Lane: exchange.LaneMessages, Step: 1 << 20}
)

// Measured returns this machine's memory, or the stand-in of a test.
func (o *Options) Measured() budget.Memory {
	if o.Measure != nil {
		return o.Measure()
	}
	return budget.Here()
}

// Afford returns an error if a run needs more memory than there is. All nodes that
// share it return the same, before any of them has taken some.
func (t *Trainer) Afford(ctx context.Context, tag exchange.Tag, needs uint64) error {
	mine := budget.NewNode(needs, t.Options.Memory, t.Options.Measured())
	if tag == roomForSteps && needs > mine.Has {
		if err := t.instead(ctx, &mine); err != nil {
			return err
		}
	}
	notes, err := fit.Agree(ctx, t.Session, tag, mine, t.Smaller())
	if err == nil && tag == roomForSteps {
		t.Notes = append(t.Notes, notes...)
	}
	return err
}

// instead finds what would make a run fit.
func (t *Trainer) instead(ctx context.Context, n *budget.Node) error {
	fit.Topology(n, fit.Lent(t.Session.Replica, t.Data.Features.Has))
	d := t.described()
	if d.Advice != nil {
		return nil // it has no mini-batches
	}
	batches, r := t.Batches, t.Recipe
	defer func() { t.Batches, t.Recipe = batches, r }()
	size := r.Batch
	if size == 0 || size > len(t.Data.Training) {
		size = len(t.Data.Training)
	}
	changes := []fit.Change{fit.Batch(size, func(batch int) { t.Recipe.Batch = batch })}
	if t.allEdges() && r.Each == nil { // else others draw, by the job's fan-outs
		changes = append(changes, fit.Fanout(r.Fanouts, func(fanouts []int) { t.Recipe.Fanouts = fanouts }))
	}
	if l := t.Learners[0]; len(t.Learners) == 1 && !d.Processor { // else the method depends on the model
		changes = append(changes, fit.Hidden(r.Model.Hidden, func(hidden int) (err error) {
			of := r
			of.Model.Hidden = hidden
			l.Model, err = of.NewModel(t.Data.About.Features, t.Data.About.Classes)
			return err
		}))
	}
	return fit.Search(n, func() (uint64, error) {
		t.Batches = NewBatches(t, t.Method.Inflight(), 1)
		need, err := t.Forecast(ctx)
		return need.OnHost(), err
	}, changes...)
}

// maySendFor reports whether this node may send for edges instead of keeping them: where
// nobody has said otherwise, and blocks are sampled batch by batch.
func (t *Trainer) maySendFor() bool {
	d, topology := t.described(), t.Recipe.Sharing.Topology()
	return t.Foreign == nil && t.Recipe.Links == nil && t.Recipe.Model.EdgeFeatures == 0 && d.Deal != nil && d.Advice == nil && !d.Isolated && (topology == "" || topology == strategy.Auto)
}

// mayWait reports whether edges may be brought once it is known what memory steps need: then
// others are asked for the rows of a few batches, to count them.
func (t *Trainer) mayWait() bool {
	d := t.described()
	return t.Sharing.Strategy != "" && t.Options.Device == nil && t.maySendFor() && len(t.Recipe.Fanouts) > 0 && !slices.Contains(t.Recipe.Fanouts, 0) &&
		(d.Cache == nil || d.Cache(&t.Recipe.Sharing) <= 0)
}

// bringEdges brings the edges that were left for later, if there is room for them with as few
// batches as a run can have.
func (t *Trainer) bringEdges(ctx context.Context, need *Needs) (err error) {
	x := t.Session
	if x.Replica.Later == 0 {
		return nil
	}
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	ahead := need.Slot * uint64(t.Batches.Depth-min(t.Batches.Depth, t.Method.Inflight()))
	if least := need.OnHost() - min(need.OnHost(), ahead); least+x.Replica.Later > has {
		if least <= has {
			t.fell = append(t.fell, fit.Without(has, x.Replica.Later))
		}
		return nil
	}
	if err := x.BringEdges(ctx, t.Data, t.Sharing.brought); err != nil {
		return err
	}
	*need, err = t.Forecast(ctx)
	return err
}

// fallBack gives up what makes a run fast, where it needs more memory than this node has.
// Nodes may do so apart, since none of it changes what is learned.
func (t *Trainer) fallBack(ctx context.Context, need *Needs) error {
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	changed := false
	ways := []budget.Way{fit.Ahead(has, t.Batches, t.Method.Inflight(), need)}
	if s := t.Session; t.Foreign == nil && t.Sharing.Cached > 0 {
		if kept := s.Source.Kept(); kept != nil { // nil where all shards are here
			ways = append(ways, fit.Cached(has, &t.Sharing.Cached, kept.Rows(), func(rows int) (uint64, error) {
				return s.Source.Cache(ctx, rows, s.Replica.Shards, &s.Start)
			}))
		}
	}
	if lent := fit.Lent(t.Session.Replica, t.Data.Features.Has); lent > 0 && t.maySendFor() {
		ways = append(ways, fit.Edges(has, lent, need, func() error {
			return t.Session.Shed(t.Data, t.Options.Replicas)
		}))
	}
	said, err := budget.FallBack(has, func() (uint64, error) {
		var err error
		if changed {
			*need, err = t.Forecast(ctx)
		}
		changed = true
		return need.OnHost(), err
	}, ways...)
	t.fell = append(t.fell, said...)
	return err
}

// Smaller returns the advice for a run that lacks memory.
func (t *Trainer) Smaller() []budget.Advice {
	if d := t.Options.Strategies.Of(t.Recipe.Sharing.Strategy); d.Advice != nil {
		return d.Advice(&t.Recipe)
	}
	return fit.Smaller(&t.Recipe)
}
