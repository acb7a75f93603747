package chaos

import "slices"

// shrink returns the fewest of n faults that it can find with which a history still
// fails. It leaves out halves first, then smaller parts, as long as that helps.
func shrink(n int, fails func(keep []int) bool) []int {
	keep := make([]int, n)
	for i := range keep {
		keep[i] = i
	}
	for size := (n + 1) / 2; size > 0; {
		smaller := false
		for at := 0; at < len(keep); {
			rest := slices.Delete(slices.Clone(keep), at, min(at+size, len(keep)))
			if len(rest) < len(keep) && fails(rest) {
				keep, smaller = rest, true
			} else {
				at += size
			}
		}
		if !smaller || size > len(keep) {
			if size == 1 && !smaller {
				break
			}
			size = max(1, size/2)
		}
	}
	return keep
}
