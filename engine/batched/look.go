package batched

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Look implements Method.
func (b *Batched) Look(ctx context.Context, h *slot.Looker, o *slot.Outline, epoch int) error {
	if err := b.Outline(ctx, h, o, epoch); err != nil {
		return err
	}
	return b.Sources.Count(o)
}

// Outline deals the seed vertices of a step, and counts what they reach.
func (b *Batched) Outline(ctx context.Context, h *slot.Looker, o *slot.Outline, epoch int) error {
	if b.Run.Data.Links == nil {
		o.Dealt = b.Dealing.Of(o.Dealt, o.Roots, b.Dealing.Self)
	} else {
		b.BeginPairs(&o.Pairs, o.Roots, epoch)
		o.Dealt = b.Dealing.Of(o.Dealt, o.Pairs.Sources(), b.Dealing.Self)
		for i := range o.Dealt {
			o.Dealt[i].Roots, _ = o.Pairs.Ends(nil, nil, o.Dealt[i].Roots)
		}
	}
	o.Groups = resize(o.Groups, len(o.Dealt))
	o.Sets = resize(o.Sets, len(o.Dealt))
	for i := range o.Groups {
		if err := b.Shape(ctx, h, o, &o.Groups[i], &o.Dealt[i], epoch); err != nil {
			return err
		}
		if o.Sets[i] = append(o.Sets[i][:0], o.Dealt[i].Roots...); len(o.Groups[i].Blocks) > 0 {
			o.Sets[i] = append(o.Sets[i][:0], h.Counter.Vertices()...)
		}
	}
	return nil
}

// Shape finds the sizes of a group, of any node.
func (b *Batched) Shape(ctx context.Context, h *slot.Looker, o *slot.Outline, g *slot.Shape, of *deal.Group, epoch int) (err error) {
	if g.Group, g.Blocks = *of, g.Blocks[:0]; len(g.Roots) == 0 {
		return nil
	}
	if edges := b.Sources.Topology(g.Roots); edges != nil {
		h.Counter.Within(edges)
	}
	if h.Far != nil {
		h.Far.Tally = &o.Tally
	}
	if g.Blocks, err = h.Counter.Count(ctx, g.Blocks, uint64(epoch), uint64(o.Step), g.Roots); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, o.Step+1, err)
	}
	return nil
}

// resize returns a slice of n elements, the old ones with their memory.
func resize[E any](s []E, n int) []E { return slices.Grow(s, max(0, n-len(s)))[:n] }

// See implements Method.
func (b *Batched) See(n *train.Needs, o *slot.Outline) { b.SeeMore(n, o, More{}) }

// More is what a method takes of a step beside what Batched does.
type More = fit.More

// SeeMore is See for a method that takes more memory of a slot than Batched does.
func (b *Batched) SeeMore(n *train.Needs, o *slot.Outline, more More) {
	alone := b.Run.Session.Alone()
	step := fit.Step{
		Roots: len(o.Roots), Groups: o.Groups, Alone: alone, Valued: b.valued(), Late: b.late(), Vertices: b.Run.Data.Topology.Vertices(), Classes: b.Run.Data.About.Classes, Words: b.Run.Data.About.Words(), Copied: b.Run.Learners[0].Task.OnProcessor(), More: more,
		Input: func(group int) (slot, rows uint64) { return b.Layers.Input(o, group) },
		Passes: func(group int, see func(arena, beside int)) {
			for _, l := range b.Run.Learners { // their passes take turns
				see(b.Layers.Forecast(l, o, group))
			}
		},
	}
	if !alone {
		step.Far = b.Sources.Bytes(o)
	}
	if o.Far.Remote > 0 {
		step.Heap = uint64(float64(o.Far.Remote) * b.Run.Session.Source.RowBytes())
	}
	if links := b.Run.Data.Links; links != nil {
		step.More.Slot += links.StepBytes(len(o.Roots))
	}
	inputs := 0
	for i := range o.Groups {
		inputs += o.Groups[i].Inputs()
	}
	n.Raise(budget.Step, b.Run.Learners[0].Rows.StepBytes(inputs, len(b.Run.Session.Work.Nodes)))
	form := b.Run.Learners[0].Model.Form()
	for i := range o.Groups {
		for _, z := range o.Groups[i].Blocks {
			step.More.Slot += form.RelatedBytes(z, true)
		}
	}
	n.See(&step)
	n.Holds.See(o)
}

// valued reports whether entries of blocks have values.
func (b *Batched) valued() bool {
	t := b.Run
	return t.Learners[0].Model.Form().Valued() || t.Options.Strategies.Of(t.Sharing.Strategy).Isolated
}

// Count implements sources.
func (r rowsOfAll) Count(o *slot.Outline) error {
	if r.run.Session.Alone() {
		return nil
	}
	return r.run.Session.Source.Count(&o.Far, o.Sets, r.run.Sharing.Asking)
}

// Bytes implements sources.
func (r rowsOfAll) Bytes(o *slot.Outline) uint64 {
	places := 0
	for _, of := range o.Far.Places {
		places += len(of)
	}
	return fit.Far(o.Far.Remote, places, r.run.Session.Source.RowBytes())
}

// Input implements layers.
func (f FromRows) Input(o *slot.Outline, group int) (slot, rows uint64) {
	sources := o.Groups[group].Inputs()
	if f.run.Data.Features.Sparse() {
		return fit.Sparse(sources, f.entries(o, group)), 0
	}
	rows = fit.Dense(sources, f.run.Data.About.Features)
	return rows, rows
}

// entries returns the number of a group's sparse entries, estimated by the graph's
// average where rows are on other nodes.
func (f FromRows) entries(o *slot.Outline, group int) int {
	if f.run.Session.Alone() {
		return f.run.Data.Features.Entries(o.Sets[group])
	}
	return int(f.run.Data.Entries * float64(o.Groups[group].Inputs()))
}

// Forecast implements layers.
func (f FromRows) Forecast(l *train.Learner, o *slot.Outline, group int) (arena, beside int) {
	g := &o.Groups[group]
	in := nn.InputSize{Rows: g.Inputs(), Sparse: f.run.Data.Features.Sparse()}
	if in.Sparse {
		in.Entries = f.entries(o, group)
	}
	return l.Model.Forecast(in, g.Blocks)
}
