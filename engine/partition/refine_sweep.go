package partition

const (
	sweepRounds = 16  // times within a sweep that the vertices' choices are carried out
	sweepTimes  = 8   // sweeps at most
	sweepLeast  = 100 // vertices for each unit of the cut that a sweep must take off for another one to follow
)

// sweep moves vertices wherever that takes something off the cut, and nothing else: quicker than climb, and on
// all threads. Vertices choose side by side, by the parts of the others as they were; then those who want to
// move do so in turn, if it is still good.
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

// choose is the part with room that takes most off the cut if v moves there, and how much: 0 if none takes
// anything. sums is zero, and is so again afterwards.
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

// transfer moves v without a word to its neighbours.
func (r *refiner) transfer(v uint32, to uint16) {
	from := int(r.part[v])
	r.part[v] = to
	for c := range r.most {
		w := int64(r.g.Weights[int(v)*len(r.most)+c])
		r.load[from*len(r.most)+c] -= w
		r.load[int(to)*len(r.most)+c] += w
	}
}
