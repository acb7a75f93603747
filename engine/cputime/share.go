package cputime

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/cgroup"
)

// Share returns how many processors this process may use, by its control groups: often part of one.
// 0: as many as there are.
func Share() float64 { return least(cgroup.Of("cpu")) }

// least returns the smallest share of some groups.
func least(groups []cgroup.Group) (share float64) {
	for _, g := range groups {
		quota, period := limits(g)
		if quota > 0 && period > 0 && (share == 0 || quota/period < share) {
			share = quota / period
		}
	}
	return share
}

// limits returns how long a group may compute in each period, both in microseconds; 0: without a
// limit.
func limits(g cgroup.Group) (quota, period float64) {
	if g.Second {
		words := strings.Fields(text(g.Dir, "cpu.max"))
		if len(words) != 2 {
			return 0, 0
		}
		return number(words[0]), number(words[1])
	}
	return number(text(g.Dir, "cpu.cfs_quota_us")), number(text(g.Dir, "cpu.cfs_period_us"))
}

func text(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// number returns a number above 0, or 0: without a limit it is "max", or -1.
func number(text string) float64 {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	if err != nil {
		return 0
	}
	return float64(n)
}
