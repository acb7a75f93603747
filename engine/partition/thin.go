package partition

import "math"

// thinBins is the number of bins that edges are sorted into by strength.
const thinBins = 1 << 12

// thin returns g without its weakest edges, so that at most enough are left: coarse
// versions of graphs with hubs or much noise are nearly complete, and most of those edges
// carry no information. An edge's strength is its weight relative to those of all edges
// at its ends. The vertices are shared with g.
func thin(g *Graph, enough int) *Graph {
	if len(g.Indices) <= enough {
		return g
	}
	n := g.vertices()
	scale := make([]float64, n)
	for v := range n {
		sum := 0.0
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			sum += float64(g.weightOf(e))
		}
		scale[v] = 1 / math.Sqrt(math.Max(1, sum))
	}
	// Logarithms from 2^-32 to 1, the strongest first.
	bin := func(v int, e int64) int {
		binds := float64(g.weightOf(e)) * (scale[v] * scale[g.Indices[e]])
		return min(max(int(-math.Log2(math.Max(binds, 1e-300))*(thinBins/32)), 0), thinBins-1)
	}
	var count [thinBins]int
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			count[bin(v, e)]++
		}
	}
	last, kept := -1, 0
	for last+1 < thinBins && kept+count[last+1] <= enough {
		last++
		kept += count[last]
	}
	to := &Graph{
		Constraints: g.Constraints, Weights: g.Weights, Indptr: make([]int64, n+1),
		Indices: make([]uint32, 0, kept), EdgeWeights: make([]uint32, 0, kept),
	}
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if bin(v, e) <= last {
				to.Indices = append(to.Indices, g.Indices[e])
				to.EdgeWeights = append(to.EdgeWeights, g.weightOf(e))
			}
		}
		to.Indptr[v+1] = int64(len(to.Indices))
	}
	return to
}
