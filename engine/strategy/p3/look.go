package p3

import (
	"context"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Look implements Method. A node with columns counts the groups of all nodes, whose
// first layer it computes in part.
func (f *Method) Look(ctx context.Context, h *slot.Looker, o *slot.Outline, epoch int) error {
	if err := f.Outline(ctx, h, o, epoch); err != nil {
		return err
	}
	o.Others = resize(o.Others, f.Dealing.Nodes)
	for node := range o.Others {
		groups := o.Others[node][:0]
		if node != f.Dealing.Self && f.front.Computes() {
			dealt := f.Dealing.Of(nil, o.Roots, node)
			for i := range dealt {
				if len(dealt[i].Roots) == 0 {
					continue
				}
				var g slot.Shape
				if err := f.Shape(ctx, h, o, &g, &dealt[i], epoch); err != nil {
					return err
				}
				groups = append(groups, g)
			}
		}
		o.Others[node] = groups
	}
	return nil
}

// See implements Method.
func (f *Method) See(n *train.Needs, o *slot.Outline) {
	var more batched.More
	widest := 0
	each(o, func(g *slot.Shape, own bool) {
		arena, beside := f.takes(g, own)
		more.Rows, more.Slot = more.Rows+arena, more.Slot+arena+beside
		widest = max(widest, front(g).Sources)
	})
	if c := f.front.columns; f.front.Computes() && !c.sparse {
		// Rows of a group's sources, before and after dropout, and scales.
		row := c.cols + 1
		if f.dropped() {
			row += c.cols
		}
		more.Worker = uint64(widest * row * f.front.device.Type().Bytes())
	}
	n.Raise(budget.Step, f.front.Forecast(o))
	f.SeeMore(n, o, more)
}

// each calls do for the groups of all nodes in an outline that have roots.
func each(o *slot.Outline, do func(g *slot.Shape, own bool)) {
	for i := range o.Groups {
		if len(o.Groups[i].Roots) > 0 {
			do(&o.Groups[i], true)
		}
	}
	for _, groups := range o.Others {
		for i := range groups {
			do(&groups[i], false)
		}
	}
}

// takes returns what a group of any node takes of a slot: of the arena of its rows, and
// beside that for its columns and, of other nodes, for blocks that were sent or sampled.
func (f *Method) takes(g *slot.Shape, own bool) (arena, beside uint64) {
	const ends = 64 // padding of matrices, which begin at whole cache lines
	first := front(g)
	if f.front.Computes() {
		if c := f.front.columns; !c.sparse {
			arena = uint64(len(f.front.kinds)) * (ends + uint64(height(first, f.front.sources)*c.cols*f.front.device.Type().Bytes()))
		} else {
			entries := uint64(f.Run.Data.Entries * float64(first.Sources) * float64(c.cols) / float64(f.Run.Data.About.Features))
			beside = 16*entries + 8*uint64(first.Sources+c.cols)
			if f.dropped() {
				arena = ends*uint64(len(f.front.leaves)) + 4*entries
			}
		}
	}
	if own {
		return arena, beside
	}
	number := uint64(4) // of an entry, and another if it has a value
	if f.Run.Learners[0].Model.Form().Weighting != sample.Ones {
		number = 8
	}
	if f.front.columns.sparse {
		beside += 8 * uint64(first.Sources+first.Entries) // transposed
	}
	if !f.resamples {
		return arena, beside + uint64(f.front.message(g))*9/8 + 8*uint64(first.Targets)
	}
	beside += 4 * uint64(len(g.Roots)+g.Inputs())
	for _, z := range g.Blocks {
		beside += number*uint64(z.Entries) + 8*uint64(z.Targets)
	}
	return arena, beside
}

// front returns the size of a group's outermost block. Without hops a root is the target
// of itself only.
func front(g *slot.Shape) nn.Size {
	if len(g.Blocks) == 0 {
		return nn.Size{Targets: len(g.Roots), Sources: len(g.Roots)}
	}
	return g.Blocks[0]
}

// height returns how many rows the sum has over a block.
func height(z nn.Size, sources bool) int {
	if sources {
		return z.Sources
	}
	return z.Targets
}

// dropped reports whether entries of sparse rows are dropped at random.
func (f *Method) dropped() bool {
	p := f.Run.Learners[0].Model.NewPass(f.front.device, nil)
	p.Train = true
	return p.InputDropout(nil).P > 0
}

// Forecast estimates the bytes of a step, beside its batch: for computing, and for
// exchanging with other nodes.
func (f *Front) Forecast(o *slot.Outline) uint64 {
	element := uint64(f.device.Type().Bytes())
	row := uint64(f.cols) * element
	own, all, rows, sources, widest, width, sent := uint64(0), uint64(0), 0, 0, 0, uint64(0), 0
	each(o, func(g *slot.Shape, mine bool) {
		z := front(g)
		high := height(z, f.sources)
		rows, sources = max(rows, high), max(sources, z.Sources)
		all += uint64(high)
		if mine {
			own += uint64(high)
			sent += f.message(g)
		}
	})
	for i := range f.terms {
		widest = max(widest, f.terms[i].Param.Cols)
		width += uint64(f.terms[i].Param.Rows * f.terms[i].Param.Cols)
	}
	spans := 0
	for _, s := range f.spans {
		spans += len(s)
	}
	levels := uint64(1 + bits.Len(uint(max(f.numbers, len(f.leaves)))))
	buffered := 3*own + all + uint64(len(f.hangar)+len(f.air))*(uint64(spans)*own+uint64(len(f.spans[f.self]))*all)
	buffered += buffered / 4 // buffers have an eighth of room, and what they outgrew is collected later
	n := buffered*row + levels*max(uint64(rows)*row, uint64(f.width(f.self))*element) + 2*uint64(rows)*row + 2*width*element
	if f.columns.sparse {
		n += uint64(sources*widest) * element
	}
	if !f.resample {
		n += 2 * uint64(sent)
	}
	return n
}

// message returns the size of a group in a message, as blockBytes does.
func (f *Front) message(g *slot.Shape) int {
	z := front(g)
	n := groupSize + 4*(z.Sources+z.Targets+z.Entries)
	if f.model.Form().Weighting != sample.Ones {
		n += 4 * z.Entries
	}
	return n
}

// Input implements batched.layers: the batch has all that groups read.
func (*Method) Input(*slot.Outline, int) (slot, rows uint64) { return 0, 0 }

// Forecast implements batched.layers: a pass begins with its sum.
func (f *Method) Forecast(l *train.Learner, o *slot.Outline, group int) (arena, beside int) {
	return behind(l.Model, f.front.cols, f.front.sources, &o.Groups[group])
}
