package hgt_test

import (
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
	"github.com/hopmesh/hopmesh/engine/nn/nntest"
)

const vertices = 12

// The vertices of each type follow one another in turns of five: two papers, two authors, a venue.
var typeOf = [5]int{0, 1, 0, 1, 2}

// Relations lead between types: two from authors to papers, and one each from papers to papers, to
// authors and to venues. No edge is of the last one.
var (
	begins = []int{1, 1, 0, 0, 0, 2}
	closes = []int{0, 0, 0, 1, 2, 1}
)

const (
	starts = "1,1,0,0,0,2"
	ends   = "0,0,0,1,2,1"
)

// newWorld returns a graph with types, where vertices 3 and 7 have no in-edges.
func newWorld(seed uint64) *nntest.Graph {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &graph.Shard{Shards: 1, Vertices: vertices, Total: vertices, Features: nntest.Columns, Classes: nntest.Classes, Indptr: []int64{0}}
	s.Related = &graph.Related{Count: len(begins)}
	for v := range vertices {
		for u := range vertices {
			for relation := range len(begins) - 1 {
				fits := begins[relation] == typeOf[u%5] && closes[relation] == typeOf[v%5]
				if fits && v != 3 && v != 7 && r.IntN(3) > 0 {
					s.Indices, s.Related.Of = append(s.Indices, int32(u)), append(s.Related.Of, float32(relation))
				}
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	w := &nntest.Graph{Shard: s}
	for range vertices * nntest.Columns {
		w.X = append(w.X, float64(float32(r.NormFloat64())))
	}
	return w
}

// models are what changes the arithmetic.
func models() map[string]nn.Spec {
	list := map[string]nn.Spec{}
	add := func(name string, change func(s *nn.Spec)) {
		s := nn.Defaults("hgt")
		s.Hidden, s.Heads, s.Norm, s.Dropout = 6, 2, nn.NormNone, 0
		s.Tell(len(begins), ends)
		s.TellStarts(starts)
		change(&s)
		list[name] = s
	}
	add("two heads", func(*nn.Spec) {})
	add("one head", func(s *nn.Spec) { s.Heads, s.Norm = 1, nn.NormLayer })
	add("a column for each head", func(s *nn.Spec) { s.Heads, s.Residual = 6, true })
	add("one type", func(s *nn.Spec) { s.Ends, s.Starts = "", "" })
	return list
}
