package intids

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// TestIntegersOfAnySpread compares the map with a plain one, whichever way the ids
// lie and in whichever order they come.
func TestIntegersOfAnySpread(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, draw := range map[string]func(i int) int64{
		"identity":         func(i int) int64 { return int64(i) },
		"identity, turned": func(i int) int64 { return int64(99_999 - i) },
		"far first":        func(i int) int64 { return int64(3_000_000 - 30*i) },
		"thrice":           func(i int) int64 { return int64(3 * i) },
		"far":              func(i int) int64 { return int64(i) * 1_000_003 },
		"negative":         func(i int) int64 { return int64(i) - 50_000 },
		"random":           func(int) int64 { return int64(random.Uint64()) },
		"half far":         func(i int) int64 { return int64(i) << (i % 2 * 40) },
		"few and far":      func(i int) int64 { return int64(i%7) * 900_000 },
		"at the edge":      func(i int) int64 { return lowFree + int64(i%2) },
		"smallest":         func(i int) int64 { return math.MinInt64 + int64(i%3) },
	} {
		for _, n := range []int{1, 2, 1000, 100_000} {
			ids := make([]int64, n)
			for i := range ids {
				ids[i] = draw(i)
			}
			memory := &source.Memory{Limit: 64 << 20}
			m := New(memory)
			for part := range slices.Chunk(ids, 1<<15) {
				if err := m.Collect(part); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			want := slices.Compact(slices.Sorted(slices.Values(ids)))
			if err := m.Collect(ids[:min(n, 9)]); err != nil || m.SoFar() != len(want) { // some come again
				t.Fatalf("%s: %d ids so far, and not %d: %v", name, m.SoFar(), len(want), err)
			}
			if err := m.Finish(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if int(m.Len()) != len(want) {
				t.Fatalf("%s: %d ids, want %d", name, m.Len(), len(want))
			}
			isIdentity := want[0] == 0 && want[len(want)-1] == int64(len(want)-1)
			if listed := m.Sorted(); isIdentity != (listed == nil) || listed != nil && !slices.Equal(listed, want) {
				t.Fatalf("%s: ids %v", name, listed[:min(10, len(listed))])
			}
			for i, id := range ids {
				v := m.Number(id)
				if want[v] != ids[i] {
					t.Fatalf("%s: %d became %d, which is %d", name, ids[i], v, want[v])
				}
			}
			for _, v := range []int64{-7, want[len(want)-1] + 1, math.MaxInt64 - 9, 1 << 33} {
				if _, known := slices.BinarySearch(want, v); known {
					continue
				}
				if got := m.Number(v); got != Unknown {
					t.Fatalf("%s: the unknown id %d became %d", name, v, got)
				}
			}
			if held := memory.Held(); held > 1<<20+64*uint64(len(want)) {
				t.Errorf("%s: %d bytes for %d ids", name, held, len(want))
			}
		}
	}
}
