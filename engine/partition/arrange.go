package partition

import (
	"math"
	"slices"
)

const (
	arrangeSteps = 2000    // exchanges tried per part
	arrangeWork  = 1 << 25 // parts examined over all exchanges, if each is made
	arrangeHeat  = 0.03    // initial temperature: the loss, in whole cuts, that is likely to be accepted
	arrangeOdd   = 2       // weight of cuts that bisection did not optimise, relative to those it did
)

// arrangement renumbers parts so that runs of consecutive numbers have few edges between
// them: it exchanges numbers while that reduces the cuts between 2, 3, 4... runs of equal
// length. The cut between the parts themselves does not change.
type arrangement struct {
	parts  int
	edges  []int64 // by two parts: weight of the edges between them
	number []int   // by part
	runs   []runs
	dice   uint64
}

// runs is one division of the numbers into runs.
type runs struct {
	count int
	run   []int   // by number
	tied  []int64 // by part and run: weight of the edges
	worth float64 // weight of a unit of its cut
}

// arrangeRuns are the numbers of runs that are considered.
var arrangeRuns = [...]int{2, 3, 4, 8}

// runOf returns which of count runs a number from 0 to parts-1 is in.
func runOf(number, count, parts int) int { return (number*count + count/2) / parts }

func newArrangement(r *refiner, seed uint64) *arrangement {
	a := &arrangement{parts: r.parts, edges: make([]int64, r.parts*r.parts), dice: seed}
	for v, p := range r.part {
		first := r.g.Indptr[v]
		for i := first; i < first+int64(r.count[v]); i++ {
			if q := int(r.near[i]); q != int(p) {
				a.edges[int(p)*r.parts+q] += int64(r.tie[i])
			}
		}
	}
	for p := range r.parts {
		a.number = append(a.number, p)
	}
	for _, count := range arrangeRuns {
		if count < r.parts {
			a.runs = append(a.runs, a.share(count))
		}
	}
	return a
}

func (a *arrangement) share(count int) runs {
	s := runs{count: count, tied: make([]int64, a.parts*count)}
	for number := range a.parts {
		s.run = append(s.run, runOf(number, count, a.parts))
	}
	cut := int64(0)
	for p := range a.parts {
		for q := range a.parts {
			w := a.edges[p*a.parts+q]
			s.tied[p*count+s.run[q]] += w
			if s.run[p] != s.run[q] {
				cut += w
			}
		}
	}
	s.worth = 1 / math.Max(1, float64(cut))
	if count&(count-1) != 0 {
		s.worth *= arrangeOdd
	}
	return s
}

// gain returns the reduction of all cuts, each relative to its initial length, if p and q
// exchange numbers.
func (a *arrangement) gain(p, q int) (sum float64) {
	both := 2 * a.edges[p*a.parts+q]
	for i := range a.runs {
		s := &a.runs[i]
		x, y := s.run[a.number[p]], s.run[a.number[q]]
		if x != y {
			sum += s.worth * float64(s.tied[p*s.count+y]-s.tied[p*s.count+x]+s.tied[q*s.count+x]-s.tied[q*s.count+y]-both)
		}
	}
	return sum
}

func (a *arrangement) exchange(p, q int) {
	for i := range a.runs {
		s := &a.runs[i]
		x, y := s.run[a.number[p]], s.run[a.number[q]]
		if x == y {
			continue
		}
		for o := range a.parts {
			w := a.edges[o*a.parts+q] - a.edges[o*a.parts+p]
			s.tied[o*s.count+x] += w
			s.tied[o*s.count+y] -= w
		}
	}
	a.number[p], a.number[q] = a.number[q], a.number[p]
}

// apply renumbers the part of each vertex by simulated annealing, and uses the best
// numbering found.
func (a *arrangement) apply(part []uint16) {
	if len(a.runs) == 0 {
		return
	}
	best, now := 0.0, 0.0
	keep := slices.Clone(a.number)
	steps := min(arrangeSteps*a.parts, arrangeWork/a.parts)
	for i := range steps {
		roll := randomMix(a.dice, uint64(i))
		p, q := int(roll&0xffffff)%a.parts, int(roll>>24&0xffffff)%a.parts
		if p == q {
			continue
		}
		gain := a.gain(p, q)
		heat := arrangeHeat * (1 - float64(i)/float64(steps))
		if gain < 0 && float64(roll>>48)/(1<<16) >= math.Exp(gain/heat) {
			continue
		}
		a.exchange(p, q)
		now += gain
		// Sums of fractions are not exact: a step and its reverse must not count as a
		// gain.
		if now > best+1e-9 {
			best = now
			copy(keep, a.number)
		}
	}
	for v, p := range part {
		part[v] = uint16(keep[p])
	}
}
