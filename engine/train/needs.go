package train

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// Needs is the memory that a run takes, with the sizes of the largest batch seen.
type Needs struct {
	budget.Needs
	Rows  uint64 // of dense features
	Slot  uint64 // the whole slot
	Holds slot.Holdings
}

// Settle adds the rest, once all batches are seen.
func (n *Needs) Settle(t *Trainer) {
	vertices := uint64(t.Data.Topology.Vertices())
	n.Foreign = t.Foreign != nil
	n.Set(budget.Copies, n.Slot)
	n.Set(budget.Slots, n.Slot*uint64(t.Batches.Depth))
	if !t.Batches.Same {
		n.Grow(margin, budget.Slots, budget.Pass, budget.Beside, budget.Step)
		n.Rows += uint64(float64(n.Rows) * margin)
	}
	n.Add(budget.Weights, t.WeightBytes())
	for _, l := range t.Learners {
		n.Add(budget.Weights, l.sumBytes())
	}
	n.Add(budget.Graph, vertices*uint64(8*t.Batches.Hands+4)+t.Data.Features.Bytes())
	if !t.Session.Alone() {
		n.Add(budget.Graph, t.Session.Replica.Bytes+t.Sharing.Cached)
	}
	t.Method.Needs(n)
	n.Inference.May = max(budget.LeastInference, n.Of(budget.Pass))
	t.Infer.Expect(n.Of(budget.Pass), n.Foreign, t.Options.Dir)
	n.Inference.Least = t.Infer.Least()
	if memory := t.Options.Memory; memory > 0 {
		n.Inference.May = budget.Left(memory, n.Base()+n.Of(budget.Pass))
	}
	n.Choose(t)
	n.room(t)
	n.Inference.Takes = max(n.Inference.Least, t.Infer.Takes(n.Inference.May))
}

// WeightBytes returns the memory of the models' weights during training: with
// gradients, moments, the best ones, a copy to read and one that a checkpoint is
// written from.
func (t *Trainer) WeightBytes() (bytes uint64) {
	for _, l := range t.Learners {
		bytes += 4 * uint64((7+t.Method.Rows())*l.Model.Size())
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

// The messages in which nodes exchange what memory they need: one before they take any
// for weights, one before they take any for steps. Another precedes a change of
// strategy, see auto.RoomFor. Offers go by in the order of their tags: the first comes
// before the one by which nodes meet, in its step, and the second after those by which
// they choose a strategy.
var (
	roomForWeights = exchange.Tag{Lane: exchange.LaneMessages, Index: 1}
	roomForSteps   = exchange.Tag{Lane: exchange.LaneMessages, Step: 1 << 20}
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
	s := t.Session
	nodes := budget.Nodes{Names: s.Work.Nodes, Self: s.Work.Self, Instead: instead}
	if s.Alone() {
		return mine.Enough(instead, t.Smaller())
	}
	nodes.Gather = func(ctx context.Context, message []byte) ([][]byte, error) {
		return s.GatherVersioned(ctx, tag, message)
	}
	agreement, err := budget.Agree(ctx, nodes, mine, t.Smaller())
	if _, short := errors.AsType[*budget.Short](err); short {
		return &session.Agreed{Err: err}
	}
	if err != nil {
		return err
	}
	s.OnMachine, s.InProcess = agreement.OnMachine, agreement.InProcess
	if tag == roomForSteps {
		t.Notes = append(t.Notes, agreement.Notes...)
	}
	return nil
}

// instead is advice on what Trainer.instead finds.
var instead = [2]budget.Advice{"take {batch}=%d, which needs %[2]s", "{topology}=sharded, which needs %[2]s"}

// instead looks for a batch with which a run would fit, and whether it would without the
// edges of other nodes' shards.
func (t *Trainer) instead(ctx context.Context, n *budget.Node) error {
	const halves = 6
	if without := n.Needs - t.lent(); without < n.Needs && without <= n.Has {
		n.Instead[1].Needs = without
	}
	if t.Options.Strategies.Of(t.Recipe.Sharing.Strategy).Advice != nil {
		return nil // it has no mini-batches
	}
	batches, size := t.Batches, t.Recipe.Batch
	defer func() { t.Batches, t.Recipe.Batch = batches, size }()
	if size == 0 || size > len(t.Data.Training) {
		t.Recipe.Batch = len(t.Data.Training)
	}
	whole := t.Recipe.Batch
	for i := range halves + 1 {
		// The smallest comes first: if that does not fit, none does.
		half := i
		if i == 0 {
			half = halves
		}
		if t.Recipe.Batch = whole >> half; t.Recipe.Batch == 0 {
			continue
		}
		t.Batches = NewBatches(t, t.Method.Inflight(), 1)
		need, err := t.Forecast(ctx)
		if err != nil {
			return err
		}
		switch fits := need.OnHost() <= n.Has; {
		case fits:
			n.Instead[0] = budget.Instead{Value: uint64(t.Recipe.Batch), Needs: need.OnHost()}
			if i > 0 {
				return nil
			}
		case i == 0:
			return nil
		}
	}
	return nil
}

// lent returns the memory of the edges of other nodes' shards.
func (t *Trainer) lent() (bytes uint64) {
	for i, s := range t.Session.Replica.Shards {
		if t.Session.Layout.Owners[i] != t.Session.Work.Self && !t.Data.Features.Has(s.First) {
			bytes += uint64(8*len(s.Indptr) + 4*(len(s.Indices)+len(s.Weights)))
		}
	}
	return min(bytes, t.Session.Replica.Bytes)
}

// fallBack gives up what makes a run fast, where it needs more memory than this node has:
// first batches that are prepared ahead, then cached rows of other nodes. Nodes may do so
// apart, since none of it changes what is learned.
func (t *Trainer) fallBack(ctx context.Context, need *Needs) (err error) {
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	changed, deep, cached := false, t.Batches.Depth, 0
	t.fell, err = budget.FallBack(has, func() (uint64, error) {
		if changed {
			if *need, err = t.Forecast(ctx); err != nil {
				return 0, err
			}
		}
		changed = true
		return need.OnHost(), nil
	}, budget.Way{
		Possible: func() bool { return need.Slot > 0 && t.Batches.Depth > t.Method.Inflight() },
		Take: func(bytes uint64) (string, error) {
			b := t.Batches
			each := need.Of(budget.Slots) / uint64(b.Depth)
			b.Depth = max(t.Method.Inflight(), b.Depth-int(min((bytes+each-1)/each, 1<<20)))
			b.Hands = max(1, min(b.Hands, b.Depth-1))
			return fmt.Sprintf("a node has %s of memory for this job, so %d batches are in memory at once there, not %d: an epoch takes longer", budget.Format(has), b.Depth, deep), nil
		},
	}, budget.Way{
		Possible: func() bool { return t.Foreign == nil && t.Sharing.Cached > 0 },
		Take: func(bytes uint64) (string, error) {
			rows, all := t.Session.Source.Kept().Rows(), t.Sharing.Cached
			cached = max(cached, rows)
			keep := int(float64(rows) * float64(all-min(all, bytes)) / float64(all) * (1 - margin))
			if keep < cached/8 {
				keep = 0 // what is not cached takes memory in batches
			}
			t.Sharing.Cached, err = t.Session.Source.Cache(ctx, keep, t.Session.Replica.Shards, &t.Session.Start)
			return fmt.Sprintf("a node has %s of memory for this job, so %d rows of other nodes are cached there, not %d: more bytes are sent", budget.Format(has), keep, cached), err
		},
	})
	return err
}

// Smaller returns the advice for a run that lacks memory: of a sweep, to train fewer
// models first; what is full can't be a smaller number.
func (t *Trainer) Smaller() []budget.Advice {
	r := &t.Recipe
	if d := t.Options.Strategies.Of(r.Sharing.Strategy); d.Advice != nil {
		return d.Advice(r)
	}
	var advice []budget.Advice
	if len(r.Sweep) > 1 {
		advice = append(advice, budget.Advice(fmt.Sprintf("give fewer values to {sweep}, which makes %d models", len(r.Sweep))))
	}
	some := slices.ContainsFunc(r.Fanouts, func(n int) bool { return n > 0 })
	switch {
	case r.Batch > 0 && some:
		return append(advice, "take a smaller {batch}, {fanout} or {hidden}")
	case r.Batch > 0:
		return append(advice, "take a smaller {batch} or {hidden}")
	case some:
		return append(advice, "take a smaller {fanout} or {hidden}", "give a number for {batch}")
	}
	return append(advice, "take a smaller {hidden}", "give numbers for {batch} and {fanout}")
}
