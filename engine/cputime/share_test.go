package cputime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/cgroup"
)

func TestShare(t *testing.T) {
	group := func(second bool, files ...string) cgroup.Group {
		g := cgroup.Group{Dir: t.TempDir(), Second: second}
		for i := 0; i < len(files); i += 2 {
			if err := os.WriteFile(filepath.Join(g.Dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	part, two := group(true, "cpu.max", "4500 10000\n"), group(true, "cpu.max", "200000 100000\n")
	none, empty := group(true, "cpu.max", "max 100000\n"), group(true)
	first := group(false, "cpu.cfs_quota_us", "50000\n", "cpu.cfs_period_us", "100000\n")
	free := group(false, "cpu.cfs_quota_us", "-1\n", "cpu.cfs_period_us", "100000\n")
	for _, c := range []struct {
		groups []cgroup.Group
		want   float64
	}{
		{nil, 0}, {[]cgroup.Group{part}, 0.45}, {[]cgroup.Group{two, part, none}, 0.45}, {[]cgroup.Group{none, empty, free}, 0},
		{[]cgroup.Group{first, two}, 0.5}, {[]cgroup.Group{group(true, "cpu.max", "7\n"), group(true, "cpu.max", "1 0\n")}, 0},
	} {
		if got := least(c.groups); got != c.want {
			t.Errorf("%v: %v, want %v", c.groups, got, c.want)
		}
	}
}
