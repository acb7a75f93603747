package partition

import "slices"

// A bisection of few parts is tried from several beginnings, of many from fewer.
const (
	orderStarts      = 8
	orderStartsLeast = 2
	orderStartsParts = 512 // parts of all starts together
)

// Order numbers k parts so that those which share many edges have numbers close
// to each other: the quotient graph is cut in two equal halves with as little as
// possible between them, and so each half again, down to single parts. The two
// halves of an odd number differ by one. weights is k rows of k numbers; what is
// between a and b is the sum of both entries, and the diagonal counts for nothing.
// The result is each part's new number, and depends on seed and weights alone.
func Order(k int, weights []uint64, seed uint64) []uint16 {
	o := orderer{k: k, weights: make([]float64, k*k), gain: make([]float64, k), right: make([]bool, k), number: make([]uint16, k)}
	for a := range k {
		for b := range k {
			if a != b {
				o.weights[a*k+b] = float64(weights[a*k+b]) + float64(weights[b*k+a])
			}
		}
	}
	parts := make([]int, k)
	for i := range parts {
		parts[i] = i
	}
	o.bisect(parts, 0, seed)
	return o.number
}

type orderer struct {
	k       int
	weights []float64 // symmetric
	gain    []float64 // by part: what crossing over would take off the cut
	right   []bool    // by part: its half
	number  []uint16
}

// bisect gives parts the numbers from first on.
func (o *orderer) bisect(parts []int, first int, seed uint64) {
	if len(parts) <= 1 {
		for _, p := range parts {
			o.number[p] = uint16(first)
		}
		return
	}
	half := len(parts) / 2
	var best []int
	least := 0.0
	for start := range min(orderStarts, max(orderStartsLeast, orderStartsParts/len(parts))) {
		at := randomMix(seed, uint64(start))
		order := o.grow(parts, half, parts[at%uint64(len(parts))])
		o.exchange(order, half)
		if cut := o.cut(order, half); best == nil || cut < least {
			best, least = order, cut
		}
	}
	// Each half keeps its parts in their old order, so that what is alike in all
	// respects stays as it was.
	slices.Sort(best[:half])
	slices.Sort(best[half:])
	if best[half] < best[0] && len(best) == 2*half {
		best = append(best[half:len(best):len(best)], best[:half]...)
	}
	o.bisect(best[:half], first, randomMix(seed, orderStarts))
	o.bisect(best[half:], first+half, randomMix(seed, orderStarts+1))
}

// grow puts half of the parts first: from on, and always the one that has most
// with those already there against what it has with the others.
func (o *orderer) grow(parts []int, half int, from int) []int {
	order := slices.Clone(parts)
	for _, p := range order {
		o.gain[p] = 0
		for _, q := range order {
			o.gain[p] -= o.weights[p*o.k+q]
		}
	}
	next := slices.Index(order, from)
	for i := range half {
		order[i], order[next] = order[next], order[i]
		for _, q := range order[i+1:] {
			o.gain[q] += 2 * o.weights[order[i]*o.k+q]
		}
		next = i + 1
		for j := i + 2; j < len(order); j++ {
			if o.gain[order[j]] > o.gain[order[next]] {
				next = j
			}
		}
	}
	return order
}

// exchange is Kernighan and Lin's: parts of the two halves change places, the best
// pair first and each at most once, also where that makes things worse for the
// moment; what came after the best moment is undone. It goes on while that helps.
func (o *orderer) exchange(order []int, half int) {
	type swap struct{ a, b int }
	swaps := make([]swap, 0, half)
	for {
		for i, p := range order {
			o.right[p] = i >= half
		}
		for _, p := range order {
			o.gain[p] = 0
			for _, q := range order {
				if o.right[p] == o.right[q] {
					o.gain[p] -= o.weights[p*o.k+q]
				} else {
					o.gain[p] += o.weights[p*o.k+q]
				}
			}
		}
		swaps = swaps[:0]
		sum, best, keep := 0.0, 0.0, 0
		for n := range half {
			// Places before n in either half have been exchanged already.
			a, b := o.pair(order[n:half], order[half+n:])
			a, b = a+n, b+half+n
			p, q := order[a], order[b]
			sum += o.gain[p] + o.gain[q] - 2*o.weights[p*o.k+q]
			order[a], order[n] = order[n], order[a]
			order[b], order[half+n] = order[half+n], order[b]
			swaps = append(swaps, swap{n, half + n})
			if sum > best {
				best, keep = sum, n+1
			}
			o.crossed(order, p, q)
		}
		for _, s := range swaps[:keep] {
			order[s.a], order[s.b] = order[s.b], order[s.a]
		}
		if keep == 0 {
			return
		}
	}
}

// pair is where the two parts stand whose exchange takes most off the cut.
func (o *orderer) pair(left, right []int) (int, int) {
	bestA, bestB := 0, 0
	most := o.exchanged(left[0], right[0])
	// The gains bound what a pair can bring, so most pairs need no look.
	top := o.gain[right[0]]
	for _, q := range right[1:] {
		top = max(top, o.gain[q])
	}
	for a, p := range left {
		if o.gain[p]+top <= most {
			continue
		}
		for b, q := range right {
			if brings := o.exchanged(p, q); brings > most {
				bestA, bestB, most = a, b, brings
			}
		}
	}
	return bestA, bestB
}

func (o *orderer) exchanged(p, q int) float64 {
	return o.gain[p] + o.gain[q] - 2*o.weights[p*o.k+q]
}

// crossed brings the gains up to date once p has gone right and q left.
func (o *orderer) crossed(order []int, p, q int) {
	o.right[p], o.right[q] = true, false
	for _, r := range order {
		toP, toQ := o.weights[p*o.k+r], o.weights[q*o.k+r]
		if o.right[r] { // p is on its side now, q no longer
			o.gain[r] += 2 * (toQ - toP)
		} else {
			o.gain[r] += 2 * (toP - toQ)
		}
	}
}

// cut is what lies between the two halves.
func (o *orderer) cut(order []int, half int) (sum float64) {
	for _, p := range order[:half] {
		for _, q := range order[half:] {
			sum += o.weights[p*o.k+q]
		}
	}
	return sum
}
