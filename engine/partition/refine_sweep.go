package partition

const (
	sweepRounds = 16  // times within a sweep that the vertices' choices are carried out
	sweepTimes  = 8   // maximum number of sweeps
	sweepLeast  = 100 // another sweep follows if one reduces the cut by at least one unit per so many vertices
)

// sweep moves vertices only where that reduces the cut: faster than climb, and on all
// threads. Vertices choose in parallel, from the current parts of the others; then those
// that want to move do so in turn, if that is still good.
func (r *refiner) sweep() {
	n := len(r.part)
	round := max(64, (n+sweepRounds-1)/sweepRounds)
	for range sweepTimes {
		took := int64(0)
		for from := 0; from < n && r.crew.ctx.Err() == nil; from += round {
			to := min(from+round, n)
			r.crew.each(to-from, 256, func(worker, a, b int) {
				for v := uint32(from + a); v < uint32(from+b); v++ {
					_, gain := r.choose(v, r.sums[worker])
					r.fixed[v] = gain > 0
				}
			})
			for v := uint32(from); v < uint32(to); v++ {
				if !r.fixed[v] {
					continue
				}
				if p, gain := r.choose(v, r.sums[0]); gain > 0 {
					r.transfer(v, p)
					took += gain
				}
			}
		}
		if took < int64(n)/sweepLeast {
			return
		}
	}
}

// choose returns the part with room whose gain for v is largest, and that gain, 0 if none
// is positive. sums must be zero, and is zero again afterwards.
func (r *refiner) choose(v uint32, sums []uint32) (to uint16, gain int64) {
	g, own := r.g, r.part[v]
	first, last := g.Indptr[v], g.Indptr[v+1]
	inner := true
	for e := first; e < last; e++ {
		p := r.part[g.Indices[e]]
		inner = inner && p == own
		sums[p] = saturate(sums[p], g.weightOf(e))
	}
	if inner {
		sums[own] = 0
		return own, 0
	}
	most := int64(sums[own])
	inside := most
	sums[own] = 0
	to = own
	for e := first; e < last; e++ {
		p := r.part[g.Indices[e]]
		w := int64(sums[p])
		sums[p] = 0
		if w > most && r.fits(v, p) {
			to, most = p, w
		}
	}
	return to, most - inside
}

// transfer moves v without updating its neighbours.
func (r *refiner) transfer(v uint32, to uint16) {
	from := int(r.part[v])
	r.part[v] = to
	for c := range r.most {
		w := int64(r.g.Weights[int(v)*len(r.most)+c])
		r.load[from*len(r.most)+c] -= w
		r.load[int(to)*len(r.most)+c] += w
	}
}
