package partition

import (
	"context"
	"fmt"
	"math"
)

const (
	coarsestPerPart = 30      // vertices for each part in the coarsest graph
	coarsestLeast   = 1000    // vertices there at least
	clustersPerPart = 40      // vertices of a coarser graph that make a part, at least
	thinLeast       = 1 << 18 // half-edges that the first partition may always look at
	thinShare       = 16      // the part of the graph's half-edges that it may look at, if that is more
)

// Multilevel answers the part of each vertex. It cuts a small image of the graph and carries the cut back
// through ever finer images, bettering it on each. No part weighs more than Tolerance times the average, or
// what the heaviest vertex and whole numbers make unavoidable, if the search finds a way to that: it goes before
// the cut. Parts are numbered in the order of recursive bisection. Only a cancelled context is an error, once
// graph and options are in order.
func Multilevel(ctx context.Context, g *Graph, o Options) ([]uint16, error) {
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	if err := o.check(g.Constraints); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	part := make([]uint16, g.vertices())
	if o.Parts == 1 || len(part) == 0 {
		return part, ctx.Err()
	}
	report := o.Report
	if report == nil {
		report = func(float64) {}
	}
	c := newCrew(ctx, o.Threads)
	most, lumpy := bounds(g, o)
	h := newHierarchy(c, g)
	h.coarsen(max(coarsestPerPart*o.Parts, coarsestLeast), clusterLimit(g, o.Parts), o.Seed)
	h.clusterer, h.contractor = nil, nil // their memory is as large as a level's
	report(0.4)
	coarsest := &h.levels[len(h.levels)-1].graph
	first := initialPartition(c, thin(coarsest, max(thinLeast, len(g.Indices)/thinShare)), o.Parts, most, o.Seed)
	report(0.5)
	r := newRefiner(c, g, o.Parts, most, lumpy)
	part = h.carry(r, first, part, report)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	newArrangement(r, o.Seed).apply(part)
	report(1)
	return part, nil
}

// carry takes a partition of the coarsest level to the graph itself, bettering it on each level. part is where
// the answer may be put.
func (h *hierarchy) carry(r *refiner, first, part []uint16, report func(float64)) []uint16 {
	now, spare := part, make([]uint16, len(part))
	now = now[:copy(now, first)]
	for i := len(h.levels) - 1; i >= 0 && r.crew.ctx.Err() == nil; i-- {
		level := &h.levels[i]
		if i < len(h.levels)-1 {
			for v, at := range level.label {
				spare[v] = now[at]
			}
			now, spare = spare[:len(level.label)], now[:cap(now)]
		}
		near, tie := h.free(i)
		r.attach(&level.graph, now, near, tie)
		r.sweep()
		r.survey()
		if i == 0 {
			r.settle()
		} else {
			r.balance()
		}
		r.climb()
		report(0.5 + 0.5/float64(i+1))
	}
	return now
}

// bounds is what a part may weigh: the tolerance, but never less than what whole numbers allow, and room for
// the heaviest vertex. Where that weighs more than half a part, the weight is called lumpy.
func bounds(g *Graph, o Options) (most []int64, lumpy []bool) {
	heaviest := make([]int64, g.Constraints)
	for i, w := range g.Weights {
		c := i % g.Constraints
		heaviest[c] = max(heaviest[c], int64(w))
	}
	most = g.totals()
	parts := int64(o.Parts)
	for c, total := range most {
		most[c] = max(int64(o.Tolerance[c]*float64(total)/float64(parts)), (total+parts-1)/parts, heaviest[c])
		lumpy = append(lumpy, 2*heaviest[c]*parts > total)
	}
	return most, lumpy
}

// scales is what a unit too much of each weight counts for: all of a weight count for as much as all of another.
func scales(g *Graph) (s []float64) {
	for _, total := range g.totals() {
		s = append(s, 1/math.Max(1, float64(total)))
	}
	return s
}

// clusterLimit is what one vertex of a coarser graph may weigh.
func clusterLimit(g *Graph, parts int) []int64 {
	limit := g.totals()
	for c := range limit {
		limit[c] = min(max(limit[c]/int64(clustersPerPart*parts), 1), math.MaxUint32)
	}
	return limit
}
