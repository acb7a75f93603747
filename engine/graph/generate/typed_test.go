package generate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// typedWhole is a graph with types, read through.
type typedWhole struct {
	graph.Source
	src, dst []uint32
	relation []float32
	values   []float32
	first    []uint32 // of each type, then the number of vertices
}

func readTyped(t *testing.T, g graph.Source) typedWhole {
	t.Helper()
	if err := graph.CheckSource(g); err != nil {
		t.Fatal(err)
	}
	w, m := typedWhole{Source: g, first: []uint32{0}}, g.Meta()
	for _, of := range m.Types.Vertices {
		w.first = append(w.first, w.first[len(w.first)-1]+uint32(of.Vertices))
	}
	err := g.Edges(t.Context(), func(b graph.EdgeBatch) error {
		if len(b.Src) != len(b.Dst) || len(b.Src) != len(b.Weights) || len(b.Src) == 0 {
			t.Fatalf("a batch of %d and %d ends with %d relations", len(b.Src), len(b.Dst), len(b.Weights))
		}
		w.src, w.dst, w.relation = append(w.src, b.Src...), append(w.dst, b.Dst...), append(w.relation, b.Weights...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(w.src)) != m.Edges || !slices.IsSorted(w.relation) {
		t.Fatalf("%d edges, said to be %d, in the order of their relations: %v", len(w.src), m.Edges, slices.IsSorted(w.relation))
	}
	next := uint32(0)
	err = g.Features(t.Context(), func(b graph.FeatureBatch) error {
		if b.First != next {
			t.Fatalf("rows from %d, want from %d", b.First, next)
		}
		next += uint32(len(b.Indptr) - 1)
		for row := range len(b.Indptr) - 1 {
			of := m.Types.Vertices[w.typeOf(b.First+uint32(row))]
			columns := b.Indices[b.Indptr[row]:b.Indptr[row+1]]
			if len(columns) != of.Features || int(columns[0]) != of.First || int(columns[len(columns)-1]) != of.First+of.Features-1 {
				t.Fatalf("the row of vertex %d, which is of type %s, has the columns %v", b.First+uint32(row), of.Name, columns)
			}
		}
		w.values = append(w.values, b.Values...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next != m.Vertices || uint64(len(w.values)) != m.NonZeros {
		t.Fatalf("rows of %d vertices of %d with %d entries of %d", next, m.Vertices, len(w.values), m.NonZeros)
	}
	return w
}

func (w *typedWhole) typeOf(v uint32) int {
	return slices.IndexFunc(w.first[1:], func(end uint32) bool { return v < end })
}

// label returns the class of a paper.
func (w *typedWhole) label(v uint32) int32 { return w.Labels()[v] }

func mag(t *testing.T, scale float64, seed uint64) *typedGraph {
	t.Helper()
	g, err := New(Options{Preset: "mag", Scale: scale, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return g.(*typedGraph)
}

func TestTypedShape(t *testing.T) {
	g := readTyped(t, mag(t, 0.01, 3))
	m := g.Meta()
	var sizes []uint64
	var names []string
	for _, of := range m.Types.Vertices {
		sizes = append(sizes, of.Vertices)
		names = append(names, of.Name)
	}
	for _, r := range m.Types.Relations {
		sizes = append(sizes, r.Edges)
		names = append(names, r.String())
	}
	if want := []uint64{11_346, 600, 87, 7_364, 10_440, 71_457, 54_163, 75_051}; !slices.Equal(sizes, want) {
		t.Errorf("sizes are %v, want %v", sizes, want)
	}
	const want = "author field_of_study institution paper author-affiliated_with-institution author-writes-paper paper-cites-paper paper-has_topic-field_of_study"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("types and relations are %s", got)
	}
	if m.Features != 131 || m.Classes != 349 || !m.Types.Vertices[magAuthor].Bare || m.Types.Vertices[magPaper].Bare {
		t.Errorf("%+v", m)
	}
	for e, r := range g.relation {
		of := m.Types.Relations[int(r)]
		if from, to := names[g.typeOf(g.src[e])], names[g.typeOf(g.dst[e])]; from != of.Source || to != of.Target {
			t.Fatalf("an edge of %s leads from %s to %s", of, from, to)
		}
		if of.Source == of.Target && g.src[e] == g.dst[e] {
			t.Fatalf("vertex %d has an edge to itself", g.src[e])
		}
	}
	counts := [4]int{}
	for v, mark := range g.Splits()[0] {
		if paper := uint32(v) >= g.first[magPaper]; paper != (g.label(uint32(v)) != graph.NoLabel) || paper != (mark != graph.Unmarked) {
			t.Fatalf("vertex %d has the label %d and the mark %d", v, g.label(uint32(v)), mark)
		}
		counts[mark]++
	}
	if want := [4]int{12_033, 6_296, 648, 420}; counts != want {
		t.Errorf("the split is %v, want %v", counts, want)
	}
	if id := g.IDs().Strings; string(id.Bytes[id.Offsets[11_346]:id.Offsets[11_347]]) != "field_of_study/0" {
		t.Errorf("the first field is called %s", id.Bytes[id.Offsets[11_346]:id.Offsets[11_347]])
	}
}

// TestTypedEdgesBack compares a graph with edges back with the same without.
func TestTypedEdgesBack(t *testing.T) {
	one, source := readTyped(t, mag(t, 0.002, 1)), mag(t, 0.002, 1)
	if err := source.Mirror(); err != nil {
		t.Fatal(err)
	}
	both := readTyped(t, source)
	names := []string{"author-affiliated_with-institution", "author-writes-paper", "paper-cites-paper", "paper-has_topic-field_of_study",
		"institution-rev-affiliated_with-author", "paper-rev-writes-author", "field_of_study-rev-has_topic-paper"}
	back := map[int]int{0: 4, 1: 5, 2: 2, 3: 6}
	for i, r := range both.Meta().Types.Relations {
		if r.String() != names[i] {
			t.Errorf("relation %d is %s", i, r)
		}
	}
	type edge struct {
		src, dst uint32
		relation float32
	}
	count := map[edge]int{}
	for e, r := range one.relation {
		count[edge{one.src[e], one.dst[e], r}]++
		count[edge{one.dst[e], one.src[e], float32(back[int(r)])}]++
	}
	for e, r := range both.relation {
		count[edge{both.src[e], both.dst[e], r}]--
	}
	for e, n := range count {
		if n != 0 {
			t.Fatalf("%+v is there %d times too often", e, -n)
		}
	}
}

func TestTypedBitsDependOnTheSeedAlone(t *testing.T) {
	source := mag(t, 0.002, 5)
	first, again, other := readTyped(t, source), readTyped(t, source), readTyped(t, mag(t, 0.002, 6))
	same := func(a, b typedWhole) bool {
		return slices.Equal(a.src, b.src) && slices.Equal(a.dst, b.dst) && slices.Equal(a.values, b.values) && slices.Equal(a.Labels(), b.Labels())
	}
	if !same(first, again) {
		t.Error("a second pass differs")
	}
	if same(first, other) {
		t.Error("another seed makes the same graph")
	}
}

// TestTypedClassesArePlanted counts how often papers that have something in common have the same
// class, and how often a paper has that of its community.
func TestTypedClassesArePlanted(t *testing.T) {
	g := readTyped(t, mag(t, 0.02, 2))
	alike, pairs := map[string]float64{}, map[string]float64{}
	last := map[uint32]uint32{} // paper of an author or a field
	relations := g.Meta().Types.Relations
	for e, r := range g.relation {
		a, b, name := g.src[e], g.dst[e], relations[int(r)].Name
		switch name {
		case "affiliated_with":
			continue
		case "writes":
			a, b = b, a
			fallthrough
		case "has_topic":
			before, ok := last[b]
			if last[b] = a; !ok {
				continue
			}
			b = before
		}
		pairs[name]++
		if g.label(a) == g.label(b) {
			alike[name]++
		}
	}
	// Both ends are of their community by 0.8 each, and both edges lead there by 0.6 each.
	for name, want := range map[string]float64{"cites": 0.6 * 0.64, "writes": 0.36 * 0.64, "has_topic": 0.36 * 0.64} {
		if got := alike[name] / pairs[name]; math.Abs(got-want) > 0.03 {
			t.Errorf("%s: %.3f of the pairs are of one class, want about %.3f", name, got, want)
		}
	}
}

func TestTypedRefusals(t *testing.T) {
	for want, o := range map[string]Options{
		`the preset "mag" says by itself`:                {Preset: "mag", Features: 3},
		`would have 74 vertices of the type paper`:       {Preset: "mag", Scale: 0.0001},
		`can't be scaled by -1`:                          {Preset: "mag", Scale: -1},
		`can't be scaled by +Inf`:                        {Preset: "mag", Scale: math.Inf(1)},
		`vertices, and 2147483647 is the most`:           {Preset: "mag", Scale: 2000},
		`choose one of arxiv, reddit, products, papers1`: {Preset: "magic"},
	} {
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := Share(Options{Preset: "mag"}, 0, 2); err == nil {
		t.Error("a graph with types is shared")
	}
}
