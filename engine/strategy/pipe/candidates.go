package pipe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// Candidates ranks the arrangements that the settings allow: first those that nodes have
// memory for, by the estimated time of an epoch; then the others, by memory. It depends
// on the facts alone. ways, if not 0, are those of the job that goes on: they decide what
// is learnt, so they are kept.
func (f *Facts) Candidates(ctx context.Context, ways int) (arrange.Candidates, error) {
	var all arrange.Candidates
	for _, w := range f.ways(ways) {
		shape, err := f.shape(w)
		if err != nil {
			return nil, err
		}
		for _, s := range f.stages(shape) {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("choose stages and ways: %w", context.Cause(ctx))
			}
			c := f.draft(s, shape, f.Settings.Recomputes()).estimate()
			if !c.Fits && f.Settings.MayRecompute() {
				c = f.draft(s, shape, true).estimate()
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b arrange.Candidate) int {
		switch {
		case a.Fits != b.Fits && a.Fits:
			return -1
		case a.Fits != b.Fits:
			return 1
		case !a.Fits:
			return cmp.Compare(a.Memory, b.Memory)
		}
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	return all, nil
}

// ways returns the numbers of ways to consider.
func (f *Facts) ways(kept int) (all []int) {
	s, nodes := &f.Settings, f.Layout.Nodes
	switch {
	case kept > 0:
		return []int{kept}
	case s.Ways != strategy.Asked:
		return []int{s.WaysOf(nodes)}
	case s.Deterministic:
		return []int{1} // the same on any number of nodes
	}
	most := len(f.Layout.Owners)
	if !s.Graph {
		most = s.ChunksOf(nodes, most)
	}
	if s.Stages > 0 {
		most = min(most, max(1, nodes/s.Stages))
	}
	for w := 1; w <= min(nodes, most); w++ {
		all = append(all, w)
	}
	return all
}

// stages returns the numbers of stages to consider beside the ways of a shape. Each stage
// has a layer, and no more stages are useful than a way has chunks to keep them busy.
func (f *Facts) stages(shape *arrange.Shape) (all []int) {
	s, nodes, units := &f.Settings, f.Layout.Nodes, len(arrange.Units(f.Model.Stages()))-1
	if s.Graph || s.Stages != strategy.Asked {
		given := *s
		given.Ways = shape.Ways()
		return []int{min(units, given.StagesOf(nodes, units))}
	}
	for n := 1; n <= max(1, min(nodes/shape.Ways(), units, shape.Chunks())); n++ {
		all = append(all, n)
	}
	return all
}
