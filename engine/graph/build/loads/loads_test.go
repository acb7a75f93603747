package loads

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// sourceOf returns a source with so many vertices of each type; trained: of two splits, one has
// training vertices.
func sourceOf(trained bool, types ...uint64) graph.Source {
	s := &source.Assembled{}
	if len(types) > 0 {
		s.Info.Types = &graph.Types{}
	}
	for i, n := range types {
		s.Info.Types.Vertices = append(s.Info.Types.Vertices, graph.VertexType{Name: fmt.Sprint(i), Vertices: n})
		s.Info.Vertices += uint32(n)
	}
	if trained {
		s.Marks = [][]graph.Mark{{graph.Test}, {graph.Validation, graph.Train}}
	}
	return s
}

func TestWeights(t *testing.T) {
	const shards = 2 // so that types with 128 vertices or more are balanced by themselves
	for name, c := range map[string]struct {
		trained bool
		types   []uint64
		vertex  uint32
		want    []uint32
	}{
		"no types":                       {false, nil, 7, []uint32{1, 5}},
		"no types, trained":              {true, nil, 7, []uint32{1, 5, 1}},
		"not a training vertex":          {true, nil, 8, []uint32{1, 5, 0}},
		"one type":                       {true, []uint64{900}, 7, []uint32{1, 5, 1}},
		"first of two types":             {true, []uint64{128, 900}, 127, []uint32{0, 1, 5, 0}},
		"second of two types":            {true, []uint64{128, 900}, 128, []uint32{1, 0, 5, 0}},
		"last vertex":                    {false, []uint64{128, 900}, 1027, []uint32{1, 0, 5}},
		"a small type":                   {true, []uint64{2, 128, 900, 127}, 1, []uint32{0, 0, 1, 5, 0}},
		"another small one counts there": {true, []uint64{2, 128, 900, 127}, 1030, []uint32{0, 0, 1, 5, 0}},
		"small ones alone":               {true, []uint64{8, 127}, 7, []uint32{1, 5, 1}},
		"a type without vertices":        {true, []uint64{0, 128, 0, 128}, 0, []uint32{1, 0, 0, 5, 0}},
		"the least of nine":              {false, []uint64{200, 200, 200, 199, 200, 200, 200, 200, 200}, 600, []uint32{0, 0, 0, 0, 0, 0, 0, 0, 1, 5}},
	} {
		l := New(sourceOf(c.trained, c.types...), shards)
		got := slices.Repeat([]uint32{9}, l.Constraints())
		l.Weigh(got, c.vertex, 5, func(v uint32) bool { return v == 7 })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: vertex %d weighs %v, and not %v", name, c.vertex, got, c.want)
		}
		if n := len(l.Tolerance()); n != len(c.want) {
			t.Errorf("%s: %d tolerances for %d weights", name, n, len(c.want))
		}
	}
}
