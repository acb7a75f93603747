package given

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// reads returns what yields edges, two at a time.
func reads(edges ...[2]uint32) func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	return func(_ context.Context, yield func(graph.EdgeBatch) error) error {
		for some := range slices.Chunk(edges, 2) {
			var b graph.EdgeBatch
			for _, e := range some {
				b.Src, b.Dst = append(b.Src, e[0]), append(b.Dst, e[1])
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// of returns a graph of six vertices with a few edges.
func of(edges ...[2]uint32) *source.Assembled {
	return &source.Assembled{Info: graph.Meta{Format: "csv", Vertices: 6, Edges: uint64(len(edges))}, ReadEdges: reads(edges...)}
}

func pairs(name string, edges ...[2]uint32) Pairs {
	place, ok := PlaceOf(name)
	if !ok {
		panic(name)
	}
	return Pairs{Place: place, Name: name, Read: reads(edges...)}
}

// An edge is in the part that lists it, and in no other: what is held out is no edge for training in
// either direction.
func TestEdgesOfEachPart(t *testing.T) {
	src := of([2]uint32{0, 1}, [2]uint32{1, 2}, [2]uint32{2, 2}, [2]uint32{3, 2}, [2]uint32{4, 0}, [2]uint32{0, 1})
	g, err := Of(t.Context(), src, []Pairs{
		pairs("edges_valid", [2]uint32{2, 3}, [2]uint32{5, 5}, [2]uint32{1, 4}), pairs("edges_test", [2]uint32{0, 4}, [2]uint32{4, 1}, [2]uint32{5, 0}),
		pairs("negatives_valid", [2]uint32{0, 5}), pairs("negatives_test", [2]uint32{3, 5}, [2]uint32{0, 1}, [2]uint32{3, 5}),
	}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type edge struct {
		source, target uint32
		number         int
	}
	train := []edge{{0, 1, 0}, {1, 2, 0}, {2, 2, 0}, {0, 1, 0}}
	rest := []edge{{1, 4, 4}, {2, 3, 4}, {0, 5, 5}, {0, 4, 6}, {4, 1, 6}, {5, 0, 6}, {0, 1, 7}, {3, 5, 7}}
	mirrored := []edge{{0, 1, 0}, {1, 0, 0}, {1, 2, 0}, {2, 1, 0}, {2, 2, 0}, {0, 1, 0}, {1, 0, 0}}
	for _, want := range [][]edge{slices.Concat(train, rest), slices.Concat(mirrored, rest)} {
		h, err := readtest.Hold(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		var got []edge
		for i, e := range h.Edges {
			got = append(got, edge{e[0], e[1], int(h.Weights[i])})
		}
		if !slices.Equal(got, want) {
			t.Errorf("edges\n%v, want\n%v", got, want)
		}
		readtest.Consistent(t, g)
		if types := h.Meta.Types; !types.Pairs || *types.Given != [3]uint64{4, 2, 3} || types.Relations[graph.PairNegative].Edges != 3 || !types.Vertices[0].Bare {
			t.Errorf("types %+v", types)
		}
		if len(h.Features) != 6 || h.Features[5][0] != (readtest.Cell{0, 1}) {
			t.Errorf("features %v", h.Features)
		}
		for range 2 { // once more changes nothing
			if err := g.Mirror(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if build.Shared(g) {
		t.Error("other nodes can make shards of a graph with types")
	}
	notes := strings.Join(g.Notes(), "\n")
	for _, want := range []string{"edges_valid: 1 pairs of a vertex with itself", "1 edges of test are edges of validation, too", "negatives_test: 1 pairs stand there more than once", "1 given pairs to compare with are edges of validation or test", "2 edges for training are given pairs to compare with, too", "2 edges of the graph are edges of validation or test, too", "4 for training, 2 for validation and 3 for test", "compare these with 1 and 2 given pairs"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note has %q:\n%s", want, notes)
		}
	}
}

// A part may be missing, and weights are left out with a note.
func TestOnePart(t *testing.T) {
	src := of([2]uint32{0, 1}, [2]uint32{1, 2})
	src.Info.Weighted, src.Info.Features = true, 2
	g, err := Of(t.Context(), src, []Pairs{pairs("edges_test", [2]uint32{0, 2})}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := g.Meta(); *m.Types.Given != [3]uint64{2, 0, 1} || m.Features != 2 || m.Edges != 3 || !strings.Contains(strings.Join(g.Notes(), "\n"), "Weights are not taken") {
		t.Errorf("%+v, notes %q", m, g.Notes())
	}
}

func TestSplitsThatCantBe(t *testing.T) {
	valid := pairs("edges_valid", [2]uint32{0, 2})
	negatives := pairs("negatives_valid", [2]uint32{0, 3})
	for want, c := range map[string]struct {
		split  []Pairs
		change func(s *source.Assembled, o *source.Options)
	}{
		"edges_valid and edges_val are both there, and mean the same":                     {split: []Pairs{valid, pairs("edges_val", [2]uint32{0, 2})}},
		"negatives_valid is there, and no edges_valid that are compared":                  {split: []Pairs{negatives}},
		"negatives_valid is there, and edges_test has nothing to compare with: add negat": {split: []Pairs{valid, negatives, pairs("edges_test", [2]uint32{1, 2})}},
		"edges_test holds no pairs of two vertices: leave it out":                         {split: []Pairs{pairs("edges_test", [2]uint32{1, 1})}},
		"all edges of the graph are edges of validation or test, too":                     {split: []Pairs{pairs("edges_test", [2]uint32{1, 0}, [2]uint32{2, 1})}},
		"edges_valid holds edges of a given split, which have no features":                {split: []Pairs{valid}, change: func(s *source.Assembled, _ *source.Options) { s.Info.EdgeFeatures = 1 }},
		"edges_valid holds edges of a given split, and the graph has types":               {split: []Pairs{valid}, change: func(s *source.Assembled, _ *source.Options) { s.Info.Types = &graph.Types{} }},
		"do not fit in 20.0 KiB of memory: raise {dataset.memory}": {split: []Pairs{valid}, change: func(s *source.Assembled, o *source.Options) {
			s.Classes, o.Memory = make([]int32, 4000), 20<<10 // which are in memory already
		}},
		"do not fit in 1.0 KiB of memory: raise {dataset.memory}": {split: []Pairs{valid}, change: func(_ *source.Assembled, o *source.Options) { o.Memory = 1 << 10 }},
		io.ErrClosedPipe.Error():                                  {split: []Pairs{{Place: valid.Place, Name: "it", Read: func(context.Context, func(graph.EdgeBatch) error) error { return io.ErrClosedPipe }}}},
	} {
		src, o := of([2]uint32{0, 1}, [2]uint32{1, 2}), source.Options{}
		if c.change != nil {
			c.change(src, &o)
		}
		if _, err := Of(t.Context(), src, c.split, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Edges that are others when they are read again end the import.
func TestEdgesThatChange(t *testing.T) {
	for _, later := range [][][2]uint32{{{0, 1}}, {{0, 1}, {1, 2}, {3, 4}}} {
		src := of([2]uint32{0, 1}, [2]uint32{1, 2})
		g, err := Of(t.Context(), src, []Pairs{pairs("edges_test", [2]uint32{0, 2})}, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		src.ReadEdges = reads(later...)
		if err := g.Edges(t.Context(), func(graph.EdgeBatch) error { return nil }); err == nil || !strings.Contains(err.Error(), "changed while they were read") {
			t.Errorf("%d edges: %v", len(later), err)
		}
		src.ReadEdges = reads([2]uint32{0, 1}, [2]uint32{1, 2})
		if err := g.Edges(t.Context(), func(graph.EdgeBatch) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}
}
