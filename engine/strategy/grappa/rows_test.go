package grappa

import (
	"math"
	"strings"
	"testing"
)

// What comes from elsewhere is looked at before anything relies on it.
func TestRowsThatCanNotBe(t *testing.T) {
	edges := []edge{{0, 2}, {1, 2}, {3, 2}, {2, 3}, {3, 3}}
	shards := cut(edges, 2, 4)
	o := given("groups=2", "sweep=off")
	builder := func() *Builder {
		b, err := NewBuilder(BuildOptions{
			Schedule: schedule(t, 2, o, 1), Settings: &o, Group: 1, Firsts: firstsOf(shards), Topology: far(t, shards, func(i int) bool { return i == 1 }),
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := func() Rows {
		return Rows{Vertices: []uint32{2, 3}, Degrees: []int32{3, 2}, Indptr: []int64{0, 3, 5}, Sources: []int32{0, 1, 3, 2, 3}, Weights: []float32{1, 1, 1, 1, 1}}
	}
	if err := builder().Take(good()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(r *Rows)
		want  string
	}{
		"a row too few":         {func(r *Rows) { r.Indptr = r.Indptr[:2] }, "came with 2 degrees, 2 bounds"},
		"a degree too few":      {func(r *Rows) { r.Degrees = r.Degrees[:1] }, "came with 1 degrees"},
		"no bounds":             {func(r *Rows) { r.Indptr = nil }, "0 bounds"},
		"bounds from 1":         {func(r *Rows) { r.Indptr[0] = 1 }, "came with"},
		"bounds beyond":         {func(r *Rows) { r.Indptr[2] = 6 }, "came with"},
		"bounds that fall":      {func(r *Rows) { r.Indptr[1] = 7 }, "came with"},
		"a weight too few":      {func(r *Rows) { r.Weights = r.Weights[:4] }, "4 weights of 5 sources"},
		"a weight of nothing":   {func(r *Rows) { r.Weights[3] = float32(math.NaN()) }, "came with a weight of NaN"},
		"vertices that fall":    {func(r *Rows) { r.Vertices[1] = 1 }, "the edges of vertex 1 came after those of vertex 2"},
		"a vertex twice":        {func(r *Rows) { r.Vertices[1] = 2 }, "the edges of vertex 2 came after those of vertex 2"},
		"a vertex beyond":       {func(r *Rows) { r.Vertices[1] = 4 }, "of a graph of 4 vertices"},
		"a vertex nobody asked": {func(r *Rows) { r.Vertices[0] = 1 }, "the edges of vertex 1 came, and nobody asked for them"},
		"more than there are":   {func(r *Rows) { r.Degrees[0] = 2 }, "vertex 2 has 2 edges, and 3 of them came"},
		"fewer than none":       {func(r *Rows) { r.Degrees[1] = -1 }, "vertex 3 has -1 edges"},
		"an edge twice":         {func(r *Rows) { r.Sources[1] = 0 }, "an edge from vertex 0 to vertex 2 came after one from 0"},
		"a source beyond":       {func(r *Rows) { r.Sources[4] = 4 }, "an edge from vertex 4 to vertex 3"},
		"a source below":        {func(r *Rows) { r.Sources[0] = -1 }, "an edge from vertex -1"},
	} {
		b, r := builder(), good()
		c.spoil(&r)
		if err := b.Take(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if len(b.Missing()) != 2 {
			t.Errorf("%s: %v are missing after it", name, b.Missing())
		}
	}
}
