package plan

import (
	"cmp"
	"slices"
)

// A claim is what one node brings to a division of shards.
type claim struct {
	node   int
	weight uint64
	most   int // it may not get more, if that can be helped
	has    int // how many it has; of two with equal rights, who has more keeps it
}

// divide gives each claim its part of so many shards: by weight, rounded by the
// largest remainder, and no more than its bound unless all are at theirs.
func divide(total int, claims []claim) []int {
	parts := make([]int, len(claims))
	open := make([]int, len(claims)) // those below their bounds
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

// byWeight divides among the open claims, whatever their bounds.
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

// off says whether somebody is so far off a quota that shards shall move for it.
// Small changes of weights must not move any, but nobody should be left with
// nothing.
func off(has, quota int) bool {
	slack := max(1, quota/10)
	return has > quota+slack || has < quota-slack || has == 0 && quota > 0
}
