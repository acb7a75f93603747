package partition

// refine is the algorithm of Fiduccia and Mattheyses: vertices change sides one at a
// time, the one with the largest gain first, each at most once per pass, even if that is
// worse for the moment; the moves after the best state are undone. Weights take
// precedence over the cut.
func (b *bisection) refine(passes int) {
	for range passes {
		if !b.pass() {
			return
		}
	}
}

// pass runs one pass and reports whether it improved the bisection.
func (b *bisection) pass() bool {
	b.moved = b.moved[:0]
	excess := b.excess()
	for v := range uint32(len(b.side)) {
		b.fixed[v] = false
		if excess > 0 || b.boundary(v) {
			b.heaps[b.side[v]].put(v, float64(b.gain[v]))
		}
	}
	patience := max(bisectPatience, len(b.side)/20)
	cut, bestCut, bestExcess, keep := int64(0), int64(0), excess, 0
	for len(b.moved)-keep < patience {
		v, ok := b.next(excess)
		if !ok {
			break
		}
		cut -= b.gain[v]
		b.fixed[v] = true
		b.move(v, func(u uint32) {
			if !b.fixed[u] {
				b.heaps[b.side[u]].put(u, float64(b.gain[u]))
			}
		})
		b.moved = append(b.moved, v)
		excess = b.excess()
		if excess < bestExcess || excess == bestExcess && cut < bestCut {
			bestCut, bestExcess, keep = cut, excess, len(b.moved)
		}
	}
	b.heaps[0].clear()
	b.heaps[1].clear()
	for i := len(b.moved) - 1; i >= keep; i-- {
		b.move(b.moved[i], func(uint32) {})
	}
	return keep > 0
}

// boundary reports whether v has an edge to the other side; then its gain is larger than
// if all its edges were internal.
func (b *bisection) boundary(v uint32) bool {
	for _, u := range b.g.Indices[b.g.Indptr[v]:b.g.Indptr[v+1]] {
		if b.side[u] != b.side[v] {
			return true
		}
	}
	return false
}

// next takes the vertex to move from the heaps. If a side is too heavy, it is one that
// lessens the excess, otherwise the best of both sides that adds little: strict bounds at
// each step would block the way to most good cuts. A vertex passed over returns once a
// neighbour has moved.
func (b *bisection) next(excess float64) (uint32, bool) {
	for {
		from := -1
		for s, h := range b.heaps {
			if len(h.list) > 0 && (from < 0 || h.key[h.list[0]] > b.heaps[from].key[b.heaps[from].list[0]]) {
				from = s
			}
		}
		if from < 0 {
			return 0, false
		}
		if excess > 0 && len(b.heaps[b.heavy()].list) > 0 {
			from = b.heavy()
		}
		v, _ := b.heaps[from].pop()
		if after := b.excessAfter(v); after < excess || after == 0 || excess == 0 && after <= bisectSlack {
			return v, true
		}
	}
}

// heavy returns the side that is furthest above its limit.
func (b *bisection) heavy() int {
	side, most := 0, 0.0
	for s := range b.load {
		for c, load := range b.load[s] {
			if over := float64(load-b.most[s][c]) * b.scale[c]; over > most {
				side, most = s, over
			}
		}
	}
	return side
}

// excessAfter returns the excess with v on the other side.
func (b *bisection) excessAfter(v uint32) (sum float64) {
	from := b.side[v]
	for s := range b.load {
		for c, load := range b.load[s] {
			w := int64(b.g.Weights[int(v)*b.g.Constraints+c])
			if s == int(from) {
				w = -w
			}
			if over := load + w - b.most[s][c]; over > 0 {
				sum += float64(over) * b.scale[c]
			}
		}
	}
	return sum
}
