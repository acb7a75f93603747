package plan

import (
	"cmp"
	"slices"
)

// claim is one node's claim in a division of shards.
type claim struct {
	node   int
	weight uint64
	most   int // bound, exceeded only if it must be
	has    int // current number; on ties, the one with more keeps it
}

// divide divides total shards among the claims: by weight, rounded by the largest
// remainder, and no more than each bound unless all claims are at theirs.
func divide(total int, claims []claim) []int {
	parts := make([]int, len(claims))
	open := make([]int, len(claims)) // claims below their bounds
	for i := range open {
		open[i] = i
	}
	left := total
	for left > 0 && len(open) > 0 {
		shares := byWeight(left, claims, open)
		full := slices.ContainsFunc(open, func(i int) bool { return shares[i] > claims[i].most })
		if !full {
			for _, i := range open {
				parts[i] = shares[i]
			}
			return parts
		}
		open = slices.DeleteFunc(open, func(i int) bool {
			if shares[i] < claims[i].most {
				return false
			}
			parts[i] = claims[i].most
			left -= parts[i]
			return true
		})
	}
	if left > 0 {
		all := make([]int, len(claims))
		for i := range all {
			all[i] = i
		}
		for i, more := range byWeight(left, claims, all) {
			parts[i] += more
		}
	}
	return parts
}

// byWeight divides total among the open claims, ignoring their bounds.
func byWeight(total int, claims []claim, open []int) []int {
	var sum uint64
	for _, i := range open {
		sum += claims[i].weight
	}
	parts := make([]int, len(claims))
	left := total
	for _, i := range open {
		parts[i] = int(uint64(total) * claims[i].weight / sum)
		left -= parts[i]
	}
	rest := slices.Clone(open)
	slices.SortStableFunc(rest, func(a, b int) int {
		x, y := claims[a], claims[b]
		return cmp.Or(
			cmp.Compare(uint64(total)*y.weight%sum, uint64(total)*x.weight%sum),
			cmp.Compare(y.has-parts[b], x.has-parts[a]),
			cmp.Compare(x.node, y.node))
	})
	for _, i := range rest[:left] {
		parts[i]++
	}
	return parts
}

// off reports whether has differs from quota enough to justify moving shards. Small
// changes of weights must not move any, but no node should be left with nothing.
func off(has, quota int) bool {
	slack := max(1, quota/10)
	return has > quota+slack || has < quota-slack || has == 0 && quota > 0
}
