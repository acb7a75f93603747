package batched

import (
	"context"
	"fmt"
	"math"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tables"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Batched trains mini-batches. A dealer deals the seed vertices of a step, their blocks
// are sampled, the rows that the blocks read are gathered, and the gradients of all
// nodes are added up before the update. A strategy that only deals differently is a
// Batched with another dealer; others replace parts of it.
type Batched struct {
	train.Basic

	Run     *train.Trainer
	Dealing *dealing
	Sources sources // where the rows come from
	Layers  layers  // how a group is computed
	Weights weights // of the seed vertices' losses
	Updates updates // how models are updated
	// Labels appends the labels of seed vertices; nil: their owners are asked.
	Labels func(to []int32, roots []uint32) ([]int32, error)
	// Regions returns where pairs are learnt now; nil: all are.
	Regions func() *link.Regions
	// Ready prepares a group of a step just before it is computed, where Prepare has not,
	// and returns how long that took; nil: Prepare has prepared all.
	Ready func(ctx context.Context, s *slot.Slot, group int) (waited time.Duration, err error)
	// Onward means that nothing is computed back along the edges of blocks, which are not
	// transposed.
	Onward bool
	each   []*adding // of each learner
}

// adding is how a learner's gradients are added up.
type adding struct {
	sums sums // nil: a pass adds up all there is
	tour tour // of its model, where a dealer moves models
}

// Sums returns what adds up a learner's gradients, or nil.
func (b *Batched) Sums(l *train.Learner) sums { return b.each[l.Index].sums }

// SetSums sets what adds up a learner's gradients.
func (b *Batched) SetSums(l *train.Learner, s sums) { b.each[l.Index].sums = s }

// New returns a Batched that deals nothing until it is opened, reads rows of any vertices
// and updates all models together.
func New(t *train.Trainer) *Batched {
	b := &Batched{Run: t, Sources: rowsOfAll{t}, Layers: FromRows{t}, Weights: equal{}}
	b.Updates = together{b}
	return b
}

// sources provides the rows that blocks read.
type sources interface {
	// Topology returns the edges from which the blocks of a group's roots are sampled,
	// or nil for the graph's.
	Topology(roots []uint32) *sample.Topology
	// Find returns where the rows of each group are, once blocks are sampled.
	Find(ctx context.Context, s *slot.Slot, epoch int) (places [][]uint32, far *features.Far, err error)
	// Count counts the rows that Find would ask for.
	Count(o *slot.Outline) error
	// Bytes returns the memory that rows of other nodes take, with the places of all
	// rows.
	Bytes(o *slot.Outline) uint64
}

// layers computes a group from its input.
type layers interface {
	// Begin is called before the groups of a step and End after them; both may wait for
	// other nodes. Done is called before the update.
	Begin(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot) error
	End(ctx context.Context, l *train.Learner, s *slot.Slot) (waited time.Duration, err error)
	Done(ctx context.Context, l *train.Learner, s *slot.Slot) error
	Forward(l *train.Learner, s *slot.Slot, g *slot.Group) tensor.Matrix
	Backward(l *train.Learner, s *slot.Slot, g *slot.Group, dz tensor.Matrix)
	// Input returns the memory that a group's input takes in its slot, and how much of
	// it is dense rows. Forecast returns what its pass takes of an arena, and beside
	// it.
	Input(o *slot.Outline, group int) (slot, rows uint64)
	Forecast(l *train.Learner, o *slot.Outline, group int) (arena, beside int)
	// Finite reports whether the input of a step is finite. Stage names the first stage
	// whose output is not.
	Finite(l *train.Learner, s *slot.Slot) bool
	Stage(l *train.Learner, s *slot.Slot, g *slot.Group) string
}

// weights gives the losses of seed vertices different weights.
type weights interface {
	Weigh(s *slot.Slot, g *slot.Group)
	// Units returns the total weight of this node's seed vertices. Scale scales the sum
	// of gradients by the total of all nodes.
	Units(s *slot.Slot) uint64
	Scale(l *train.Learner, s *slot.Slot, units uint64)
}

// updates applies gradients to models.
type updates interface {
	Attach(l *train.Learner) error
	Sums(l *train.Learner) sums
	Step(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot, rate float64) (loss float64, waited time.Duration, err error)
	Common(l *train.Learner) bool
	Back(l *train.Learner)
	// Models returns by how many models the seed vertices of a batch are shared.
	Models(l *train.Learner) float64
	// Rows returns how many rows of weights are in memory during an update; weights is
	// that number where models are updated together.
	Rows(l *train.Learner, weights uint64) uint64
}

// Attach implements Method.
func (b *Batched) Attach(l *train.Learner) error {
	b.each = append(b.each, &adding{tour: tour{session: b.Run.Session}})
	return b.Updates.Attach(l)
}

// SumRows implements Method.
func (b *Batched) SumRows(l *train.Learner, rows uint64) uint64 {
	if b.Sums(l) == nil {
		return 0
	}
	return b.Updates.Rows(l, rows)
}

// Common implements Method.
func (b *Batched) Common(l *train.Learner) bool { return b.Updates.Common(l) }

// Back implements Method.
func (b *Batched) Back(l *train.Learner) { b.Updates.Back(l) }

// Open implements Method.
func (b *Batched) Open(context.Context) error {
	b.SetUp(b.Run.Sharing.Dealer)
	return nil
}

// Finite implements Method.
func (b *Batched) Finite(l *train.Learner, s *slot.Slot) bool { return b.Layers.Finite(l, s) }

// Stage implements Method.
func (b *Batched) Stage(l *train.Learner, s *slot.Slot, g *slot.Group) string {
	return b.Layers.Stage(l, s, g)
}

// SetDealer replaces the dealer between epochs.
func (b *Batched) SetDealer(d deal.Dealer) { b.Dealing.dealer = d }

// SetUp sets the dealer, and adds up whole gradients.
func (b *Batched) SetUp(dealer deal.Dealer) {
	b.Dealing = NewDealing(b.Run, dealer)
	for _, l := range b.Run.Learners {
		b.SetSums(l, b.Updates.Sums(l))
	}
}

// Step implements Method.
func (b *Batched) Step(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot, rate float64) (float64, time.Duration, error) {
	return b.Updates.Step(ctx, l, s, later, rate)
}

// Compute adds up the gradients and the losses of this node's groups, each computed
// with the model that arrived for it. wrong names what is not finite. Waiting for
// models counts as waiting.
func (b *Batched) Compute(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot) (loss float64, wrong string, waited time.Duration, err error) {
	t := b.Run
	t.Device.Zero(l.Gradients)
	l.Rows.Begin()
	wrong = l.Doubt()
	adds := b.each[l.Index]
	if adds.sums != nil {
		adds.sums.Begin(s.Spans, b.Dealing.Self)
	}
	if err := b.Layers.Begin(ctx, l, s, later); err != nil {
		return 0, "", 0, err
	}
	stop := 0
	if !t.Session.Alone() {
		adds.tour.Begin(ctx, l, s)
		defer adds.tour.End()
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if i > 0 && g.Slot != s.Groups[i-1].Slot {
			stop++
			start := time.Now()
			err := adds.tour.Arrive(l, stop)
			waited += time.Since(start)
			if err != nil {
				return loss, wrong, waited, fmt.Errorf("epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
			}
		}
		if ctx.Err() != nil {
			break
		}
		// An empty group, or one after an error, computes nothing, but other nodes
		// still wait for its sums and its model.
		if len(g.Roots) == 0 {
			continue
		}
		if wrong == "" && b.Ready != nil {
			wait, err := b.Ready(ctx, s, i)
			waited += wait
			if err != nil {
				return loss, wrong, waited, err
			}
		}
		if wrong == "" {
			var sum float64
			sum, wrong = b.Learn(l, s, g)
			loss += sum
		}
		if s.Spans != nil {
			adds.sums.Grain(g.Grain)
			t.Device.Zero(l.Gradients)
		}
	}
	if ctx.Err() != nil { // the pass may be cut short: its result is invalid
		return loss, wrong, waited, context.Cause(ctx)
	}
	if err := l.Fault(); err != nil {
		return loss, wrong, waited, err
	}
	more, err := b.Layers.End(ctx, l, s)
	return loss, wrong, waited + more, err
}

// Learn adds the gradient of one group, and returns the sum of the losses of its rows.
// If the pass is cancelled, the result is partial.
func (b *Batched) Learn(l *train.Learner, s *slot.Slot, g *slot.Group) (loss float64, wrong string) {
	t := b.Run
	t.Work.Reset()
	l.Pass.Key = l.Key(s)
	z := b.Layers.Forward(l, s, g)
	if z.None() {
		return 0, ""
	}
	dz := t.Work.Alloc(t.Device.Type(), z.Rows, z.Cols)
	finite := false
	t.Ask()
	loss = l.Task.Loss(t.Device, dz, z, g.Labels, b.Updates.Models(l)/float64(b.seeds(s)))
	if train.IsNumber(loss) {
		scaleBy(l, g, dz)
		b.Layers.Backward(l, s, g, dz)
		finite = t.Device.Finite(l.Gradients) && (l.Rows == nil || t.Device.Finite(l.Pass.InputGradient()))
	}
	if sum := loss; l.Task.OnProcessor() {
		_, finite = t.Answers(loss, finite)
		loss = sum
	} else {
		loss, finite = t.Answers(loss, finite)
	}
	switch {
	case !train.IsNumber(loss):
		return loss, "the loss"
	case !finite:
		return loss, "a gradient"
	}
	if s.Spans != nil {
		// Whole units make losses add up to the same in any order.
		const unit = 1 << 24
		loss = math.Round(loss*unit) / unit
	}
	return loss, ""
}

// reduce sums the gradient and the loss over all nodes. If something went wrong on a
// node, all return the same error.
func (b *Batched) reduce(ctx context.Context, l *train.Learner, s *slot.Slot, w weights, loss float64, wrong string) (float64, error) {
	r := exchange.Round{
		Tag:   exchange.Tag{Epoch: uint32(l.At.Epoch), Step: uint32(s.Step), Index: uint32(l.Index)},
		Note:  exchange.Note{Loss: loss},
		Tally: &s.Tally,
	}
	if wrong != "" {
		r.Note.Flags |= train.Unsound
	}
	units := w.Units(s)
	r.Note.Flags |= units<<1 | b.Run.Says()
	notes, err := b.Sums(l).Total(ctx, r)
	if err != nil {
		return loss, fmt.Errorf("add up the gradients of epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
	}
	for node, note := range notes {
		if note.Flags&train.Unsound == 0 {
			continue
		}
		if node == b.Run.Session.Work.Self {
			return loss, l.Diverged(s, wrong)
		}
		return loss, l.DivergedThere(s, node)
	}
	if !b.Run.Session.Alone() {
		loss, units = 0, 0
		said := uint64(0)
		for _, note := range notes {
			loss += note.Loss
			units += note.Flags &^ tables.Flags >> 1
			said |= note.Flags & tables.Flags
		}
		b.Run.Hears(said)
	}
	w.Scale(l, s, units)
	if !b.Run.Device.Finite(l.Gradients) {
		return loss, l.Diverged(s, "the sum of the gradients")
	}
	return loss, nil
}

// together implements updates: all models are updated together, by the sum of all
// gradients of a step.
type together struct{ b *Batched }

func (together) Attach(*train.Learner) error               { return nil }
func (together) Sums(l *train.Learner) sums                { return NewSums(l, allOf(l)) }
func (together) Common(*train.Learner) bool                { return true }
func (together) Back(*train.Learner)                       {}
func (together) Models(*train.Learner) float64             { return 1 }
func (together) Rows(_ *train.Learner, rows uint64) uint64 { return rows }

func (u together) Step(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot, rate float64) (loss float64, waited time.Duration, err error) {
	t := u.b.Run
	loss, wrong, waited, err := u.b.Compute(ctx, l, s, later)
	if err != nil {
		return loss, waited, err
	}
	if wrong != "" && t.Session.Alone() {
		return loss, waited, l.Diverged(s, wrong)
	}
	if l.Rows != nil && !t.Session.Alone() { // even if something is wrong, which reduce says
		start := time.Now()
		at := exchange.Tag{Epoch: uint32(l.At.Epoch), Step: uint32(s.Step)}
		err := l.Rows.Share(ctx, t.Session.Exchange, t.Session.Work, at, &s.Tally)
		waited += time.Since(start)
		if err != nil {
			return loss, waited, fmt.Errorf("epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
		}
	}
	if u.b.Sums(l) == nil {
		u.b.Weights.Scale(l, s, u.b.Weights.Units(s))
	} else {
		start := time.Now()
		pprof.SetGoroutineLabels(t.Phases.Reduce)
		loss, err = u.b.reduce(ctx, l, s, u.b.Weights, loss, wrong)
		pprof.SetGoroutineLabels(t.Phases.Compute)
		waited += time.Since(start)
		if err != nil {
			return loss, waited, err
		}
	}
	if err := u.b.Layers.Done(ctx, l, s); err != nil {
		return loss, waited, err
	}
	l.Update(rate)
	return loss, waited, nil
}

// equal implements weights: the losses of all seed vertices have the same weight.
type equal struct{}

func (equal) Weigh(*slot.Slot, *slot.Group)            {}
func (equal) Units(*slot.Slot) uint64                  { return 0 }
func (equal) Scale(*train.Learner, *slot.Slot, uint64) {}

// rowsOfAll implements sources: it reads the rows of any vertices, local or remote.
type rowsOfAll struct{ run *train.Trainer }

func (rowsOfAll) Topology([]uint32) *sample.Topology { return nil }

func (r rowsOfAll) Find(ctx context.Context, s *slot.Slot, epoch int) ([][]uint32, *features.Far, error) {
	x := r.run.Session
	if x.Alone() || r.run.Data.Features.Apart() { // those of others come when the step begins
		for _, set := range s.Sets {
			s.Gathered += len(set)
		}
		return s.Sets, nil, nil
	}
	if err := x.Source.Gather(ctx, &s.Far, s.Sets, uint32(epoch), uint32(s.Step), r.run.Dealt(s.Step).Asking, &s.Tally); err != nil {
		return nil, nil, err
	}
	s.Gathered, s.Remote, s.Kept = s.Far.Local+s.Far.Cached+s.Far.Remote, s.Far.Remote, s.Far.Cached
	return s.Far.Places, &s.Far.Far, nil
}

// FromRows implements layers: it computes a group from the rows of its outermost vertices.
type FromRows struct{ run *train.Trainer }

// NewFromRows returns the layers of a run that reads whole rows.
func NewFromRows(t *train.Trainer) FromRows { return FromRows{t} }

func (FromRows) Begin(context.Context, *train.Learner, *slot.Slot, []*slot.Slot) error { return nil }
func (FromRows) Done(context.Context, *train.Learner, *slot.Slot) error                { return nil }
func (FromRows) End(context.Context, *train.Learner, *slot.Slot) (time.Duration, error) {
	return 0, nil
}

func (FromRows) Forward(l *train.Learner, _ *slot.Slot, g *slot.Group) tensor.Matrix {
	return l.Pass.Forward(g.Batch.Blocks, g.Input)
}

func (FromRows) Backward(l *train.Learner, s *slot.Slot, g *slot.Group, dz tensor.Matrix) {
	l.Pass.Backward(dz)
	if l.Rows != nil {
		grain := 0 // where no order of grains is kept
		if s.Spans != nil {
			grain = g.Grain
		}
		l.Rows.Add(l.Run.Device, grain, g.Outermost(), l.Pass.InputGradient())
	}
}

func (FromRows) Finite(l *train.Learner, s *slot.Slot) bool {
	return !slices.ContainsFunc(s.Groups, func(g slot.Group) bool {
		return len(g.Roots) > 0 && g.Input.Sparse == nil && !l.Run.Device.Finite(g.Input.Dense)
	})
}

// Stage implements layers: it runs a group of the step again, without dropout.
func (FromRows) Stage(l *train.Learner, _ *slot.Slot, g *slot.Group) string {
	l.Run.Work.Reset()
	blocks := g.Batch.Blocks
	var x, carry tensor.Matrix
	for i, stage := range l.Model.Stages() {
		if stage.Hops == 0 {
			x, carry = l.Pass.Stage(i, nil, g.Input, x, carry)
		} else {
			x, carry = l.Pass.Stage(i, &blocks[0], g.Input, x, carry)
			blocks = blocks[1:]
		}
		if !l.Run.Device.Finite(x) {
			return stage.Name
		}
	}
	return ""
}

// scaleBy weighs the gradients of a group's losses.
func scaleBy(t *train.Learner, g *slot.Group, dz tensor.Matrix) {
	if g.Weights == nil {
		return
	}
	w := t.Run.Work.Alloc(t.Run.Device.Type(), len(g.Weights), 1)
	t.Run.Device.Write(w, g.Weights)
	t.Run.Device.ScaleRows(dz, dz, w)
}
