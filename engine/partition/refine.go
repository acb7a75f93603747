package partition

// refiner improves a partition, one level at a time. For each vertex it keeps the parts
// of its neighbours and the weight of the edges to them, in memory borrowed from the
// hierarchy.
type refiner struct {
	crew   crew
	g      *Graph
	parts  int
	most   []int64 // by constraint: limit of a part
	bound  []int64 // the same, or less during settle
	total  []int64 // by constraint: total weight
	lumpy  []bool  // by constraint: may be impossible to balance
	part   []uint16
	load   []int64  // by part and constraint, as in Graph
	near   []uint32 // from Indptr[v] on: parts that v has edges to
	tie    []uint32 // parallel to near: weight of the edges
	count  []uint16 // by vertex: number of those parts
	heap   *heap
	fixed  []bool
	budget int64 // edges that climb may still examine
	moved  []step
	sums   [][]uint32 // by worker and part
	scale  []float64  // by constraint: the cost of one unit of excess
}

// step records one move of a vertex, so that it can be undone.
type step struct {
	v    uint32
	from uint16
}

func newRefiner(c crew, g *Graph, parts int, most []int64, lumpy []bool) *refiner {
	n := g.vertices()
	r := &refiner{
		crew: c, parts: parts, most: most, bound: most, total: g.totals(), lumpy: lumpy, scale: scales(g), load: make([]int64, parts*g.Constraints),
		count: make([]uint16, n), heap: newHeap(n), fixed: make([]bool, n),
		moved: make([]step, 0, n),
	}
	for range c.workers {
		r.sums = append(r.sums, make([]uint32, parts))
	}
	return r
}

// attach switches to a level and its partition, which it changes in place. near and tie
// need as much room as the graph has edges.
func (r *refiner) attach(g *Graph, part []uint16, near, tie []uint32) {
	r.g, r.part, r.near, r.tie = g, part, near, tie
	clear(r.load)
	for v, p := range part {
		for c := range g.Constraints {
			r.load[int(p)*g.Constraints+c] += int64(g.Weights[v*g.Constraints+c])
		}
	}
}

// survey fills near and tie for all vertices from the current partition.
func (r *refiner) survey() {
	r.crew.each(len(r.part), 1024, func(worker, from, to int) {
		for v := from; v < to; v++ {
			r.look(uint32(v), r.sums[worker])
		}
	})
}

// look fills near and tie for v. sums must be zero, and is zero again afterwards.
func (r *refiner) look(v uint32, sums []uint32) {
	g := r.g
	first, count := g.Indptr[v], int64(0)
	for e := first; e < g.Indptr[v+1]; e++ {
		w := g.weightOf(e)
		if w == 0 {
			continue
		}
		p := r.part[g.Indices[e]]
		if sums[p] == 0 {
			r.near[first+count] = uint32(p)
			count++
		}
		sums[p] = saturate(sums[p], w)
	}
	for i := first; i < first+count; i++ {
		r.tie[i] = sums[r.near[i]]
		sums[r.near[i]] = 0
	}
	r.count[v] = uint16(count)
}

// tied returns the weight of the edges from v to p.
func (r *refiner) tied(v uint32, p uint16) int64 {
	first := r.g.Indptr[v]
	for i := first; i < first+int64(r.count[v]); i++ {
		if r.near[i] == uint32(p) {
			return int64(r.tie[i])
		}
	}
	return 0
}

// retie records that edges of u of weight w lead to another part than before.
func (r *refiner) retie(u uint32, from, to uint16, w uint32) {
	first, count := r.g.Indptr[u], int64(r.count[u])
	found := false
	for i := first; i < first+count; i++ {
		switch r.near[i] {
		case uint32(from):
			if r.tie[i] > w {
				r.tie[i] -= w
				continue
			}
			count--
			r.near[i], r.tie[i] = r.near[first+count], r.tie[first+count]
			i--
		case uint32(to):
			r.tie[i] = saturate(r.tie[i], w)
			found = true
		}
	}
	if !found && first+count < r.g.Indptr[u+1] {
		r.near[first+count], r.tie[first+count] = uint32(to), w
		count++
	}
	r.count[u] = uint16(count)
}

// fits reports whether p has room for v.
func (r *refiner) fits(v uint32, p uint16) bool {
	nc := len(r.most)
	for c, most := range r.most {
		if r.load[int(p)*nc+c]+int64(r.g.Weights[int(v)*nc+c]) > most {
			return false
		}
	}
	return true
}

// best returns the part with room among those near v whose gain is largest.
func (r *refiner) best(v uint32) (to uint16, gain int64, ok bool) {
	own := r.part[v]
	first := r.g.Indptr[v]
	tie := r.tie[first:]
	inside, most := int64(0), int64(-1)
	for i, q := range r.near[first : first+int64(r.count[v])] {
		p, w := uint16(q), int64(tie[i])
		if p == own {
			inside = w
		} else if w >= most && r.fits(v, p) {
			if w == most && r.lighter(to, p) {
				continue
			}
			to, most = p, w
		}
	}
	return to, most - inside, most >= 0
}

// lighter reports whether p has less of the first weight than q.
func (r *refiner) lighter(p, q uint16) bool {
	nc := len(r.most)
	return r.load[int(p)*nc] <= r.load[int(q)*nc]
}

// move moves v to a part, updates its neighbours and calls tell for each.
func (r *refiner) move(v uint32, to uint16, tell func(u uint32, w uint32)) {
	g, from := r.g, r.part[v]
	nc := g.Constraints
	r.part[v] = to
	for c := range nc {
		w := int64(g.Weights[int(v)*nc+c])
		r.load[int(from)*nc+c] -= w
		r.load[int(to)*nc+c] += w
	}
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		if w := g.weightOf(e); w > 0 {
			u := g.Indices[e]
			r.retie(u, from, to, w)
			tell(u, w)
		}
	}
}
