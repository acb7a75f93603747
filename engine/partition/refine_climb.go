package partition

const (
	climbPasses   = 4
	climbPatience = 100       // moves in vain before a pass ends, at least
	climbWork     = 1_000_000 // half-edges of moving vertices that a level's passes may look at
	climbShare    = 16        // the part of the level's half-edges that they may, if that is more
)

// climb is Fiduccia and Mattheyses' refinement for many parts: vertices move one at a time to the part that
// takes most off the cut, each at most once in a pass, also where that makes the cut larger for the moment; what
// came after the best moment is undone. No move makes a part too heavy.
func (r *refiner) climb() {
	r.budget = max(climbWork, int64(len(r.g.Indices))/climbShare)
	for range climbPasses {
		if r.budget <= 0 || r.climbOnce() == 0 || r.crew.ctx.Err() != nil {
			return
		}
	}
}

// climbOnce answers what it took off the cut.
func (r *refiner) climbOnce() int64 {
	r.moved = r.moved[:0]
	for v := range uint32(len(r.part)) {
		r.fixed[v] = false
		if r.outward(v) {
			if _, gain, ok := r.best(v); ok {
				r.heap.put(v, float64(gain))
			}
		}
	}
	patience := max(climbPatience, len(r.part)/50)
	cut, best, keep := int64(0), int64(0), 0
	for pops := 0; len(r.heap.list) > 0 && len(r.moved)-keep < patience && r.budget > 0; pops++ {
		if pops&1023 == 0 && r.crew.ctx.Err() != nil {
			break
		}
		v, key := r.heap.pop()
		to, gain, ok := r.best(v)
		if !ok {
			continue
		}
		if float64(gain) < key {
			r.heap.put(v, float64(gain))
			continue
		}
		from := r.part[v]
		r.fixed[v] = true
		r.budget -= r.g.degree(v)
		r.moved = append(r.moved, step{v, from})
		cut -= gain
		r.move(v, to, func(u, w uint32) { r.raise(u, w, from, to) })
		if cut < best {
			best, keep = cut, len(r.moved)
		}
	}
	r.heap.clear()
	for i := len(r.moved) - 1; i >= keep; i-- {
		r.move(r.moved[i].v, r.moved[i].from, func(uint32, uint32) {})
	}
	return -best
}

// outward says whether v has an edge to another part.
func (r *refiner) outward(v uint32) bool {
	return r.count[v] > 1 || r.count[v] == 1 && r.near[r.g.Indptr[v]] != uint32(r.part[v])
}

// raise gives u a key that is not below its gain, now that a neighbour by an edge of weight w has moved. The
// gain itself is found when u comes to the top.
func (r *refiner) raise(u, w uint32, from, to uint16) {
	if r.fixed[u] {
		return
	}
	if !r.heap.has(u) {
		if r.part[u] == to {
			return // it is held back more than before
		}
		if _, gain, ok := r.best(u); ok {
			r.heap.put(u, float64(gain))
		}
		return
	}
	key := r.heap.key[u]
	switch r.part[u] {
	case from:
		key += 2 * float64(w)
	case to:
		key -= float64(w)
	default:
		key += float64(w)
	}
	r.heap.put(u, key)
}
