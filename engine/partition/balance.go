package partition

import "math"

// balanceShares are the shares of their free room that parts keep, tried when there is no
// other way.
var balanceShares = [...]float64{0.5, 0.25, 0.75, 0}

const (
	balanceRounds = 20
	balanceLeast  = 1e-13 // smallest reduction of the excess that counts, as a share of all weight: excludes rounding
)

// balance moves vertices out of parts that are too heavy, those with the least cost to
// the cut per weight first. It reports whether no part is too heavy any more, except in
// lumpy weights.
func (r *refiner) balance() bool {
	return r.relieve() || !r.overloaded()
}

// settle is balance for the graph itself, which must succeed if it can. Parts that are
// full in one weight but have room in another may block it, so all parts are made to keep
// a little room for a while.
func (r *refiner) settle() {
	strict := r.bound
	for _, share := range balanceShares {
		if r.balance() {
			return
		}
		r.bound = make([]int64, len(strict))
		for c, most := range strict {
			average := min(r.total[c]/int64(r.parts)+1, most)
			r.bound[c] = average + int64(share*float64(most-average))
		}
		r.relieve()
		r.bound = strict
	}
	r.balance()
}

// overloaded reports whether a part is too heavy in a weight that is not lumpy.
func (r *refiner) overloaded() bool {
	for i, load := range r.load {
		if c := i % len(r.bound); load > r.bound[c] && !r.lumpy[c] {
			return true
		}
	}
	return false
}

// relieve moves vertices for balance, and reports whether no part is too heavy at all.
func (r *refiner) relieve() bool {
	for range balanceRounds {
		excess := r.excess()
		if excess == 0 {
			return true
		}
		for v := range uint32(len(r.part)) {
			if v&4095 == 0 && r.crew.ctx.Err() != nil {
				break
			}
			if r.partExcess(r.part[v]) > 0 {
				if _, key := r.relief(v); key > math.Inf(-1) {
					r.heap.put(v, key)
				}
			}
		}
		for pops := 0; len(r.heap.list) > 0; pops++ {
			if pops&1023 == 0 && r.crew.ctx.Err() != nil {
				r.heap.clear()
				return false
			}
			v, key := r.heap.pop()
			if r.partExcess(r.part[v]) == 0 {
				continue
			}
			to, now := r.relief(v)
			if now < key {
				if now > math.Inf(-1) {
					r.heap.put(v, now)
				}
				continue
			}
			r.move(v, to, func(uint32, uint32) {})
		}
		if r.excess() >= excess {
			return false
		}
	}
	return r.excess() == 0
}

// relief returns the best part for v to move to if parts are too heavy, and its key: the
// gain in cut against the reduction of the excess.
func (r *refiner) relief(v uint32) (to uint16, key float64) {
	key = math.Inf(-1)
	from := r.part[v]
	inside := r.tied(v, from)
	rid := r.partExcess(from) - r.partExcessWith(from, v, -1)
	if rid <= 0 {
		return 0, key
	}
	consider := func(p uint16, tie int64) {
		less := rid - (r.partExcessWith(p, v, 1) - r.partExcess(p))
		if less <= balanceLeast {
			return
		}
		gain := float64(tie - inside)
		k := gain / less
		if gain > 0 {
			k = gain * less
		}
		if k > key {
			to, key = p, k
		}
	}
	for p := range uint16(r.parts) {
		if p != from {
			consider(p, r.tied(v, p))
		}
	}
	return to, key
}

// excess returns the weight of all parts above their limits, as a share of all weights.
func (r *refiner) excess() (sum float64) {
	for p := range uint16(r.parts) {
		sum += r.partExcess(p)
	}
	return sum
}

func (r *refiner) partExcess(p uint16) (sum float64) {
	nc := len(r.bound)
	for c, most := range r.bound {
		if over := r.load[int(p)*nc+c] - most; over > 0 {
			sum += float64(over) * r.scale[c]
		}
	}
	return sum
}

// partExcessWith returns the excess of p with v added (times = 1) or removed (times =
// -1).
func (r *refiner) partExcessWith(p uint16, v uint32, times int64) (sum float64) {
	nc := len(r.bound)
	for c, most := range r.bound {
		if over := r.load[int(p)*nc+c] + times*int64(r.g.Weights[int(v)*nc+c]) - most; over > 0 {
			sum += float64(over) * r.scale[c]
		}
	}
	return sum
}
