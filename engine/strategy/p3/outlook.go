package p3

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// needs sets what a node takes in a step: in its slot the sums of all groups by its columns,
// and no rows. It is about what Look and See find, by sums over groups.
func needs(s *forecast.Step, node int, to *fit.Step) (underWay uint64) {
	front, err := s.Model.Front()
	if err != nil {
		return 0 // refused by Check
	}
	to.Far, to.Heap, to.Late = 0, 0, false
	to.Input = func(int) (slot, rows uint64) { return 0, 0 }
	to.Passes = func(group int, see func(arena, beside int)) {
		see(behind(s.Model, front.Cols, front.Sources, &to.Groups[group]))
	}
	settings := Of(s.Settings)
	cols := share(s.Columns, node, s.Nodes).cols
	var kinds []kind
	width := 0
	for _, t := range front.Terms {
		if k := (kind{t.Own, t.Edges, t.How}); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		width += t.Param.Rows * t.Param.Cols
	}
	own, all, sources, targets := 0, 0, 0, 0
	number := uint64(4)
	if s.Valued {
		number = 8
	}
	for other := range s.Loads {
		l := &s.Loads[other]
		if cols == 0 && other != node {
			continue
		}
		groups, high := max(1, l.Groups), height(nn.Size{Targets: l.First, Sources: l.Inputs}, front.Sources)
		all += high
		sources, targets = max(sources, l.Inputs/groups), max(targets, high/groups)
		if cols > 0 {
			arena := uint64(len(kinds)) * uint64(64*groups+4*high*cols)
			to.More.Rows, to.More.Slot = to.More.Rows+arena, to.More.Slot+arena
		}
		if other == node {
			own = high
			continue
		}
		if settings.Pushed() || s.Sharded {
			to.More.Slot += uint64(groupSize*groups+4*(l.Inputs+l.First))*9/8 + number*uint64(l.Edges)*9/8 + 8*uint64(l.First)
			continue
		}
		to.More.Slot += 4*uint64(l.Roots+l.Inputs) + number*uint64(l.Edges) + 8*uint64(l.First)
	}
	row := cols + 1
	if s.Model.Spec().InputDropout > 0 {
		row += cols
	}
	to.More.Worker = uint64(4 * sources * row)
	return flights(settings.Inflight, own, all, targets, 4*front.Cols, 4*width)
}

// flights is about what Front.Forecast finds, with one sum of each node.
func flights(inflight, own, all, targets, row, width int) uint64 {
	buffered := 3*own + all + (inflight+1)*(own+all)
	buffered += buffered / 4
	levels := 1 + bits.Len(2)
	return uint64(buffered*row + levels*max(targets*row, width) + 2*targets*row + 2*width)
}

// behind returns what a pass of a group takes that begins with the sum of its first layer.
func behind(m *nn.Model, cols int, sources bool, g *slot.Shape) (arena, beside int) {
	d := dry.New(tensor.F32)
	rows, others := d.Arena(), d.Arena()
	p := m.NewPass(d, rows)
	p.Train = true
	p.Weights = others.Alloc(tensor.F32, 1, m.Size())
	p.Gradients = p.Weights
	sum := others.Alloc(tensor.F32, height(nn.Size{Targets: g.Targets(), Sources: g.Inputs()}, sources), cols)
	p.BackwardTo(sum, p.ForwardFrom(nn.Unseen(g.Blocks), make([]uint32, g.Inputs()), sum))
	return rows.Peak(), d.Beside()
}
