package enginetest

import (
	"context"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// The planted typed graph: each paper has three authors and three editors, who are of one type. What
// group its authors are of is half of its label, that of its editors the other half.
const (
	typedPeople = 60
	typedPapers = 600
)

// Back begins the name of a relation that has the edges of another one, the other way round.
const Back = "rev-"

// Typed returns that graph with the relations that are given, such as "wrote", "edited", and
// "rev-wrote" from papers to people. The numbers of people are drawn by the name: "edited" has its
// own, and all others have those of "wrote".
func Typed(relations ...string) graph.Source {
	t := &graph.Types{Vertices: []graph.VertexType{
		{Name: "paper", Vertices: typedPapers, Features: 1, Bare: true},
		{Name: "person", Vertices: typedPeople, First: 1, Features: 2},
	}}
	for _, name := range relations {
		r := graph.Relation{Source: "person", Name: name, Target: "paper", Edges: 3 * typedPapers}
		if strings.HasPrefix(name, Back) {
			r.Source, r.Target = r.Target, r.Source
		}
		t.Relations = append(t.Relations, r)
	}
	s := &source.Assembled{Info: graph.Meta{
		Format: "typed", Vertices: typedPapers + typedPeople, Edges: uint64(3 * typedPapers * len(relations)), Weighted: true,
		Features: 3, Sparse: true, NonZeros: typedPapers + typedPeople, Classes: 4, Types: t,
	}}
	s.ReadEdges = func(_ context.Context, yield func(graph.EdgeBatch) error) error {
		for r, name := range relations {
			if err := yield(typedEdges(r, name)); err != nil {
				return err
			}
		}
		return nil
	}
	s.ReadFeatures = func(_ context.Context, yield func(graph.FeatureBatch) error) error {
		b := graph.FeatureBatch{Indptr: []int64{0}}
		for v := range typedPapers + typedPeople {
			column := 0
			if v >= typedPapers {
				column = 1 + (v-typedPapers)%2
			}
			b.Indices, b.Values, b.Indptr = append(b.Indices, uint32(column)), append(b.Values, 1), append(b.Indptr, int64(v+1))
		}
		return yield(b)
	}
	s.Marks = [][]graph.Mark{make([]graph.Mark, typedPapers+typedPeople)}
	for v := range typedPapers + typedPeople {
		label := graph.NoLabel
		if v < typedPapers {
			label = int32(v % 4)
			s.Marks[0][v] = []graph.Mark{graph.Train, graph.Validation, graph.Test}[v/4%3]
		}
		s.Classes = append(s.Classes, label)
	}
	return s
}

// typedEdges returns the edges of a relation, which has a number.
func typedEdges(relation int, name string) (b graph.EdgeBatch) {
	name, back := strings.CutPrefix(name, Back)
	half := map[string]int{"wrote": 0, "edited": 1}[name]
	for paper := range typedPapers {
		for k := range 3 {
			person := (paper*7+k*11+half*5)%(typedPeople/2)*2 + paper>>half&1
			from, to := uint32(typedPapers+person), uint32(paper)
			if back {
				from, to = to, from
			}
			b.Src, b.Dst, b.Weights = append(b.Src, from), append(b.Dst, to), append(b.Weights, float32(relation))
		}
	}
	return b
}
