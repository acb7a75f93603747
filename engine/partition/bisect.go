package partition

import "math"

const (
	bisectCoarsest = 100   // vertices of the coarsest graph, which is grown into halves
	bisectClusters = 40    // minimum number of clusters of a coarser graph
	bisectTries    = 30    // starting vertices tried
	bisectLeast    = 6     // starting vertices tried even in graphs with very many edges
	bisectEdges    = 60000 // edges examined over all tries
	bisectPasses   = 6
	bisectPatience = 50   // moves without gain before a pass ends
	bisectSlack    = 0.02 // excess allowed temporarily during a pass
)

// bisection is a cut of a graph in two sides, with the state needed to improve it.
type bisection struct {
	g     *Graph
	side  []uint8
	load  [2][]int64
	most  [2][]int64 // limits of each side
	scale []float64  // by constraint: the cost of one unit of excess
	gain  []int64    // by vertex: the reduction of the cut if it changes sides
	heaps [2]*heap
	moved []uint32
	fixed []bool // by vertex: has moved in this pass
	dice  uint64
}

// bisect cuts g in two: side 0 gets about share of each weight, and neither side exceeds
// most if that can be avoided. It coarsens g, grows halves of the coarsest graph from
// several vertices, and refines the best on the way back. It returns the excess and the
// cut as well.
func bisect(c crew, g *Graph, share float64, most [2][]int64, seed uint64) (side []uint8, excess float64, cut int64) {
	limit := g.totals()
	for i := range limit {
		limit[i] = max(limit[i]/bisectClusters, 1)
	}
	h := newHierarchy(c, g)
	h.coarsen(bisectCoarsest, limit, seed)
	for i := len(h.levels) - 1; i >= 0 && c.ctx.Err() == nil; i-- {
		level := &h.levels[i]
		b := newBisection(&level.graph, most, scales(g), randomMix(seed, uint64(i)))
		if side == nil {
			b.grow(share)
		} else {
			for v := range b.side {
				b.side[v] = side[level.label[v]]
			}
			b.count()
			b.refine(bisectPasses)
		}
		side = b.side
		if i == 0 {
			cut, excess = b.count(), b.excess()
		}
	}
	return side, excess, cut
}

func newBisection(g *Graph, most [2][]int64, scale []float64, seed uint64) *bisection {
	n := g.vertices()
	b := &bisection{
		g: g, most: most, scale: scale, side: make([]uint8, n), gain: make([]int64, n), fixed: make([]bool, n),
		heaps: [2]*heap{newHeap(n), newHeap(n)}, dice: seed,
	}
	for s := range b.load {
		b.load[s] = make([]int64, g.Constraints)
	}
	return b
}

// count recomputes loads and gains and returns the cut.
func (b *bisection) count() int64 {
	for s := range b.load {
		clear(b.load[s])
	}
	cut := int64(0)
	for v := range uint32(len(b.side)) {
		for c := range b.g.Constraints {
			b.load[b.side[v]][c] += int64(b.g.Weights[int(v)*b.g.Constraints+c])
		}
		gain := int64(0)
		for e := b.g.Indptr[v]; e < b.g.Indptr[v+1]; e++ {
			w := int64(b.g.weightOf(e))
			if b.side[b.g.Indices[e]] == b.side[v] {
				gain -= w
			} else {
				gain += w
				cut += w
			}
		}
		b.gain[v] = gain
	}
	return cut / 2
}

// excess returns the weight of the sides above their limits, as a share of all weights.
func (b *bisection) excess() (sum float64) {
	for s := range b.load {
		for c, load := range b.load[s] {
			if over := load - b.most[s][c]; over > 0 {
				sum += float64(over) * b.scale[c]
			}
		}
	}
	return sum
}

// grow tries several starting vertices and keeps the best result.
func (b *bisection) grow(share float64) {
	best := make([]uint8, len(b.side))
	bestExcess, bestCut := math.Inf(1), int64(0)
	tries := min(max(bisectEdges/(len(b.g.Indices)+1), bisectLeast), bisectTries)
	for range tries {
		b.growOnce(share)
		b.refine(bisectPasses)
		cut, excess := b.count(), b.excess()
		if excess < bestExcess || excess == bestExcess && cut < bestCut {
			bestExcess, bestCut = excess, cut
			copy(best, b.side)
		}
	}
	copy(b.side, best)
	b.count()
}

// growOnce puts all vertices on side 1, then moves the cheapest one to side 0 until side
// 0 has its share.
func (b *bisection) growOnce(share float64) {
	n := len(b.side)
	for v := range b.side {
		b.side[v] = 1
	}
	b.count()
	h := b.heaps[0]
	left := n
	for left > 0 && b.filled() < share {
		if len(h.list) == 0 {
			v := uint32(b.roll() % uint64(n))
			for b.side[v] == 0 {
				v = (v + 1) % uint32(n)
			}
			h.put(v, 0)
		}
		v, _ := h.pop()
		b.move(v, func(u uint32) {
			if b.side[u] == 1 {
				h.put(u, float64(b.gain[u]))
			}
		})
		left--
	}
	h.clear()
}

// filled returns side 0's share of all weights, averaged over the constraints.
func (b *bisection) filled() (sum float64) {
	count := 0.0
	for c, load := range b.load[0] {
		if both := load + b.load[1][c]; both > 0 {
			sum += float64(load) / float64(both)
			count++
		}
	}
	if count == 0 {
		return 1
	}
	return sum / count
}

// move moves v to the other side, updates its neighbours' gains and calls tell for each.
func (b *bisection) move(v uint32, tell func(u uint32)) {
	from := b.side[v]
	b.side[v] = 1 - from
	b.gain[v] = -b.gain[v]
	for c := range b.g.Constraints {
		w := int64(b.g.Weights[int(v)*b.g.Constraints+c])
		b.load[from][c] -= w
		b.load[1-from][c] += w
	}
	for e := b.g.Indptr[v]; e < b.g.Indptr[v+1]; e++ {
		u := b.g.Indices[e]
		if w := int64(b.g.weightOf(e)); b.side[u] == from {
			b.gain[u] += 2 * w
		} else {
			b.gain[u] -= 2 * w
		}
		tell(u)
	}
}

func (b *bisection) roll() uint64 {
	b.dice++
	return randomMix(b.dice, 0)
}
