package batched

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
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
	o.Dealt = b.Dealing.Of(o.Dealt, o.Roots, b.Dealing.Self)
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
type More struct {
	Slot   uint64 // of the slot, with its rows
	Rows   uint64 // of the arena of rows
	Worker uint64 // while it is prepared
}

// SeeMore is See for a method that takes more memory of a slot than Batched does.
func (b *Batched) SeeMore(n *train.Needs, o *slot.Outline, more More) {
	bytes, rows := uint64(8*len(o.Roots))+more.Slot, more.Rows
	if !b.Run.Session.Alone() {
		bytes += b.Sources.Bytes(o)
	}
	valued := b.valued()
	most, filled, all := 0, 0, 0 // vertices of a group; groups; vertices of all
	for i := range o.Groups {
		g := &o.Groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		filled, all, most = filled+1, all+g.Inputs(), max(most, g.Inputs())
		own, dense := b.Layers.Input(o, i)
		own += g.Bytes(valued)
		for _, l := range b.Run.Learners { // their passes take turns
			arena, beside := b.Layers.Forecast(l, o, i)
			n.Raise(budget.Pass, uint64(arena+4*len(g.Roots)*(b.Run.Data.About.Classes+1)+4096))
			n.Raise(budget.Beside, uint64(beside))
		}
		bytes, rows = bytes+own, rows+dense
	}
	worker := more.Worker + sample.TableBytes(most, b.Run.Data.Topology.Vertices())
	if filled > 1 && !b.Run.Session.Alone() {
		worker += gather.TableBytes(all)
	}
	if o.Far.Remote > 0 {
		// Others ask for about as many rows as this node does. Answers are on the heap: one
		// that is sent, and one that is yet to be collected.
		worker += 2 * uint64(float64(o.Far.Remote)*b.Run.Session.Source.RowBytes())
	}
	n.Worker = max(n.Worker, worker)
	n.Holds.See(o)
	n.Slot, n.Rows = max(n.Slot, bytes), max(n.Rows, rows)
}

// valued reports whether entries of blocks have values.
func (b *Batched) valued() bool {
	t := b.Run
	return t.Learners[0].Model.Form().Weighting != sample.Ones || t.Options.Strategies.Of(t.Sharing.Strategy).Isolated
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
	const planned = 4 * 4 // vertex, owner, order, question
	bytes := uint64(float64(o.Far.Remote) * (r.run.Session.Source.RowBytes() + planned))
	for _, places := range o.Far.Places {
		bytes += 4 * uint64(len(places))
	}
	return bytes
}

// Input implements layers.
func (f FromRows) Input(o *slot.Outline, group int) (slot, rows uint64) {
	sources := uint64(o.Groups[group].Inputs())
	if f.run.Data.Features.Sparse() {
		return 8*sources + 20*uint64(f.entries(o, group)), 0
	}
	const ends = 64 // padding of matrices, which begin at whole cache lines
	rows = ends + 4*sources*uint64(f.run.Data.About.Features)
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
