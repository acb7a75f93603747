package pipe

import "sort"

// divide divides things that cost so much into runs of one at least: where each begins, then
// how many things there are. The dearest run costs as little as can be and, as far as that
// allows, each begins where its share of all costs does. Costs are whole numbers, so that
// all machines come to the same.
func divide(costs []uint64, runs int) []int {
	d := division{runs: runs, things: len(costs), sums: make([]uint64, len(costs)+1)}
	for i, c := range costs {
		d.sums[i+1] = d.sums[i] + c
	}
	low, high := uint64(0), d.sums[d.things] // so much is enough
	for low < high {
		if middle := low + (high-low)/2; d.enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return d.even(high)
}

// A division is one under way.
type division struct {
	runs, things int
	sums         []uint64 // of the costs before each thing
}

// reach is how far a run may go that begins at a thing, and is to cost no more than most:
// no further than leaves one thing for each run after it.
func (d *division) reach(run, from int, most uint64) int {
	beyond := sort.Search(d.things-from, func(i int) bool { return d.sums[from+i+1]-d.sums[from] > most })
	return min(from+beyond, d.things-(d.runs-1-run))
}

// enough says whether no run has to cost more.
func (d *division) enough(most uint64) bool {
	at := 0
	for run := range d.runs {
		end := d.reach(run, at, most)
		if end == at {
			return false
		}
		at = end
	}
	return at == d.things
}

// even is where runs begin that cost no more than that, each as near to its share as can be.
func (d *division) even(most uint64) []int {
	// No run may begin before what those from it on can hold.
	earliest := make([]int, d.runs+1)
	earliest[d.runs] = d.things
	for run := d.runs - 1; run > 0; run-- {
		end := earliest[run+1]
		begin := sort.Search(end, func(i int) bool { return d.sums[end]-d.sums[i] <= most })
		earliest[run] = max(begin, run)
	}
	firsts := make([]int, d.runs+1)
	for run := 1; run < d.runs; run++ {
		low := max(earliest[run], firsts[run-1]+1)
		high := d.reach(run-1, firsts[run-1], most)
		firsts[run] = d.nearest(low, high, d.sums[d.things]/uint64(d.runs)*uint64(run))
	}
	firsts[d.runs] = d.things
	return firsts
}

// nearest is the thing, of those from low to high, before which the sum is nearest to a
// number.
func (d *division) nearest(low, high int, to uint64) int {
	at := low + sort.Search(high-low, func(i int) bool { return d.sums[low+i] >= to })
	if at > low && d.sums[at] > to && to-d.sums[at-1] <= d.sums[at]-to {
		at--
	}
	return at
}
