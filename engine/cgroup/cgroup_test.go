package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cgroup")
	for text, want := range map[string][]Group{
		"0::/\n":                          nil,
		"0::/a/b\n":                       {{"r/a/b", true}, {"r/a", true}},
		"9:memory:/x\n4:cpu,cpuacct:/y\n": {{"r/cpu/y", false}},
		"4:cpuset:/y\n":                   nil,
		"nonsense":                        nil,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := In(file, "r", "cpu")
		if !slices.Equal(got[:2], []Group{{"r", true}, {"r/cpu", false}}) || !slices.Equal(got[2:], want) {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
	if got := In(filepath.Join(t.TempDir(), "none"), "r", "cpu"); len(got) != 2 {
		t.Errorf("without a list: %v", got)
	}
}
