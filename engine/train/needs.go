package train

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/recipe"
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
	n.Add(budget.Graph, vertices*uint64(8*(t.Batches.Hands+1)+4)+t.Data.Features.Bytes())
	if !t.Session.Alone() {
		n.Add(budget.Graph, t.Session.Replica.Bytes+t.Sharing.Cached)
	}
	t.Method.Needs(n)
	if t.Recipe.Metric == recipe.ROCAUC {
		n.Add(budget.Graph, vertices*uint64(4*(t.Data.About.Classes+2))) // logits, to be ranked
	}
	n.Inference.May = max(budget.LeastInference, n.Of(budget.Pass))
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
	if t.Session.Alone() {
		return budget.Enough(needs, t.Options.Memory, t.Smaller())
	}
	s := t.Session
	nodes := budget.Nodes{Names: s.Work.Nodes, Self: s.Work.Self, Gather: func(ctx context.Context, message []byte) ([][]byte, error) {
		return s.GatherVersioned(ctx, tag, message)
	}}
	agreement, err := budget.Agree(ctx, nodes, budget.NewNode(needs, t.Options.Memory, t.Options.Measured()), t.Smaller())
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
