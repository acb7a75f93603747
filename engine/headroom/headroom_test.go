package headroom

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGroups(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cgroup")
	for text, want := range map[string][]string{
		"0::/\n":                          nil,
		"0::/a/b\n":                       {"r/a/b/memory.max", "r/a/memory.max"},
		"9:memory:/x\n4:cpu,cpuacct:/y\n": {"r/memory/x/memory.limit_in_bytes"},
		"nonsense":                        nil,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range groups(file, "r")[2:] {
			got = append(got, g.most)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
	if got := groups(filepath.Join(t.TempDir(), "none"), "r"); len(got) != 2 {
		t.Errorf("without a list: %v", got)
	}
}

func TestFields(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(file, []byte("Name: x\nRssAnon:\t  12 kB\nBad: kB\nHuge: 99999999999999999999 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"RssAnon:": 12 << 10, "Bad:": 7, "Huge:": 7, "None:": 7} {
		if got := Field(file, name, 7); got != want {
			t.Errorf("%s %d, not %d", name, got, want)
		}
	}
	if Available() == 0 {
		t.Error("there is no memory at all")
	}
}
