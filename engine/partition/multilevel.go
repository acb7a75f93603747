package partition

import (
	"context"
	"fmt"
	"math"
)

const (
	coarsestPerPart = 30      // vertices per part in the coarsest graph
	coarsestLeast   = 1000    // minimum number of vertices there
	clustersPerPart = 40      // minimum vertices of a coarser graph per part
	thinLeast       = 1 << 18 // half-edges that the initial partition may always examine
	thinShare       = 16      // fraction of the graph's half-edges that it may examine, if that is more
)

// Multilevel returns the part of each vertex. It cuts a small version of the graph and
// projects the cut back through successively finer versions, refining it on each. Balance
// takes precedence over the cut: no part weighs more than Tolerance times the average, or
// what the heaviest vertex and whole numbers make unavoidable, if the search finds such a
// partition. Parts are numbered in the order of recursive bisection. With a valid graph
// and options it returns an error only if the context is cancelled.
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

// carry projects a partition of the coarsest level to the graph itself, refining it on
// each level. part is memory for the result.
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

// bounds returns the limit of a part: the tolerance, but at least what whole numbers
// allow, with room for the heaviest vertex. A weight is lumpy if the heaviest vertex
// weighs more than half a part.
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

// scales returns the cost of a unit of excess of each weight, such that the totals of all
// weights cost the same.
func scales(g *Graph) (s []float64) {
	for _, total := range g.totals() {
		s = append(s, 1/math.Max(1, float64(total)))
	}
	return s
}

// clusterLimit returns the maximum weight of one vertex of a coarser graph.
func clusterLimit(g *Graph, parts int) []int64 {
	limit := g.totals()
	for c := range limit {
		limit[c] = min(max(limit[c]/int64(clustersPerPart*parts), 1), math.MaxUint32)
	}
	return limit
}
