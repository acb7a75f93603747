package output

import (
	"strings"
	"testing"
)

func TestRuns(t *testing.T) {
	for want, ids := range map[string][]int{
		"shard 3": {3}, "shards 0-1": {1, 0}, "shards 0-21, 40": append([]int{40}, upTo(22)...), "shards 1, 3, 5-7": {1, 3, 5, 6, 7},
	} {
		if got := ShardList(ids); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func upTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestThousands(t *testing.T) {
	for want, n := range map[string]uint64{"0": 0, "999": 999, "1,000": 1000, "18,446,744,073,709,551,615": 1<<64 - 1} {
		if got := Thousands(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "all is well": "All is well.", "is it?": "Is it?", "run `x`": "Run `x`.", " done. ": "Done.", "über\x1b": "Über?.",
	} {
		if got := Sentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "1": 1, "512B": 512, "1k": 1024, "64GiB": 64 << 30, "64G": 64 << 30, "64gib": 64 << 30, "64 GiB": 64 << 30, "500MB": 500e6, "1.5TiB": 3 << 39,
		"18446744073709551615": 1<<64 - 1,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "G", "-1", "1X", "1GX", "1iB", "Gi1", "1e3", "0x10", "inf", "NaN", "18446744073709551616", "16777216TiB", "1.5.5G", "1_000", "1 2"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
	for n, want := range map[uint64]string{0: "-", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 3 << 29: "1.5 GiB", 64 << 30: "64 GiB", 5000 << 40: "5000 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"64GiB", "1.5TB", "", "1e9", "KKK", "-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := ParseSize(s); err == nil && !strings.ContainsAny(s, "0123456789") {
			t.Errorf("%q has no number", s)
		}
	})
}
