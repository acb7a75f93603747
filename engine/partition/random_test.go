package partition

import (
	"slices"
	"testing"
)

func TestRandomIsEvenAndKeyed(t *testing.T) {
	for _, c := range []struct {
		vertices uint32
		parts    int
	}{{0, 3}, {1, 1}, {1, 4}, {7, 3}, {64, 64}, {1000, 7}, {4096, 16}, {100_003, 64}} {
		part := Random(c.vertices, c.parts, 5)
		if len(part) != int(c.vertices) {
			t.Fatalf("%+v: %d vertices", c, len(part))
		}
		count := make([]int, c.parts)
		for _, p := range part {
			count[p]++
		}
		if slices.Max(count)-slices.Min(count) > 1 {
			t.Errorf("%+v: parts of %v", c, count)
		}
	}
	a, b, other := Random(10_000, 8, 1), Random(10_000, 8, 1), Random(10_000, 8, 2)
	if !slices.Equal(a, b) {
		t.Error("the same seed gives two results")
	}
	same, run := 0, 0
	for v := range a {
		if a[v] == other[v] {
			same++
		}
		if v > 0 && a[v] == a[v-1] {
			run++
		}
	}
	if same < 1000 || same > 1500 || run < 1000 || run > 1500 {
		t.Errorf("of 10000 vertices %d have the same part with another seed, %d that of the vertex before", same, run)
	}
}

func BenchmarkRandom(b *testing.B) {
	const vertices = 10_000_000
	for b.Loop() {
		Random(vertices, 64, 1)
	}
	b.ReportMetric(vertices*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvertices/s")
}
