package budget

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGroups(t *testing.T) {
	got := groups(filepath.Join(t.TempDir(), "none"), "r")
	if want := []group{{"r/memory.max", "r/memory.current"}, {"r/memory/memory.limit_in_bytes", "r/memory/memory.usage_in_bytes"}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestMachine(t *testing.T) {
	dir := t.TempDir()
	boot, other, space := filepath.Join(dir, "boot"), filepath.Join(dir, "other"), filepath.Join(dir, "space")
	for path, text := range map[string]string{boot: "a\n", other: "b\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("cgroup:[7]", space); err != nil {
		t.Fatal(err)
	}
	here := machine(boot, "none")
	if here == 0 || here != machine(boot, "none") || here == machine(other, "none") || here == machine(boot, space) || machine("none", space) != 0 {
		t.Errorf("%x, another boot %x, another container %x, unknown %x", here, machine(other, "none"), machine(boot, space), machine("none", space))
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

func TestLeft(t *testing.T) {
	for _, c := range []struct{ limit, taken, want uint64 }{{100, 0, 100}, {100, 30, 70}, {100, 130, 0}} {
		if got := Left(c.limit, c.taken); got != c.want {
			t.Errorf("of %d, %d taken: %d left, not %d", c.limit, c.taken, got, c.want)
		}
	}
	if Left(0, 1<<62) == 0 {
		t.Error("without a limit, what is taken counts")
	}
}
