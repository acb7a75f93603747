package partition

const (
	climbPasses   = 4
	climbPatience = 100       // minimum moves without gain before a pass ends
	climbWork     = 1_000_000 // half-edges of moving vertices that a level's passes may examine
	climbShare    = 16        // fraction of the level's half-edges that they may examine, if that is more
)

// climb is Fiduccia and Mattheyses' refinement for many parts: vertices move one at a
// time to the part with the largest gain, each at most once in a pass, even if that
// increases the cut for the moment; the moves after the best state are undone. No move
// makes a part too heavy.
func (r *refiner) climb() {
	r.budget = max(climbWork, int64(len(r.g.Indices))/climbShare)
	for range climbPasses {
		if r.budget <= 0 || r.climbOnce() == 0 || r.crew.ctx.Err() != nil {
			return
		}
	}
}

// climbOnce runs one pass and returns the reduction of the cut.
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

// outward reports whether v has an edge to another part.
func (r *refiner) outward(v uint32) bool {
	return r.count[v] > 1 || r.count[v] == 1 && r.near[r.g.Indptr[v]] != uint32(r.part[v])
}

// raise gives u a key not below its gain, after a neighbour by an edge of weight w has
// moved. The exact gain is computed when u reaches the top.
func (r *refiner) raise(u, w uint32, from, to uint16) {
	if r.fixed[u] {
		return
	}
	if !r.heap.has(u) {
		if r.part[u] == to {
			return // its gain has decreased
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
