package partition

import "slices"

// A bisection of few parts is tried from many starts, one of many parts from fewer.
const (
	orderStarts      = 8
	orderStartsLeast = 2
	orderStartsParts = 512 // parts of all starts together
)

// Order numbers k parts so that those which share many edges have numbers close to each
// other: the quotient graph is cut in two equal halves with as little as possible between
// them, recursively down to single parts. The halves of an odd number differ by one.
// weights is a k x k matrix; the weight between a and b is the sum of both entries, and
// the diagonal is ignored. The result is each part's new number, and depends on seed and
// weights alone.
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
	gain    []float64 // by part: the reduction of the cut if it changes sides
	right   []bool    // by part: whether it is in the right half
	number  []uint16
}

// bisect assigns parts the numbers from first on.
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
	// Each half keeps its parts in their old order, so that ties leave the order
	// unchanged.
	slices.Sort(best[:half])
	slices.Sort(best[half:])
	if best[half] < best[0] && len(best) == 2*half {
		best = append(best[half:len(best):len(best)], best[:half]...)
	}
	o.bisect(best[:half], first, randomMix(seed, orderStarts))
	o.bisect(best[half:], first+half, randomMix(seed, orderStarts+1))
}

// grow puts half of the parts first: it starts with from and repeatedly adds the part
// with the largest weight to those already there minus that to the others.
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

// exchange is the algorithm of Kernighan and Lin: parts of the two halves are exchanged,
// the best pair first and each at most once, even if that is worse for the moment; the
// exchanges after the best state are undone. It repeats while that helps.
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
			// The first n positions of either half have been exchanged already.
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

// pair returns the positions of the two parts whose exchange reduces the cut most.
func (o *orderer) pair(left, right []int) (int, int) {
	bestA, bestB := 0, 0
	most := o.exchanged(left[0], right[0])
	// The gains bound what a pair can bring, so most pairs are skipped.
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

// crossed updates the gains after p moved right and q left.
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

// cut returns the weight between the two halves.
func (o *orderer) cut(order []int, half int) (sum float64) {
	for _, p := range order[:half] {
		for _, q := range order[half:] {
			sum += o.weights[p*o.k+q]
		}
	}
	return sum
}
