package dataset

import (
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// About describes a graph as its manifest does: what a recipe is checked against.
type About struct {
	Vertices uint64
	Edges    uint64
	Features int
	Classes  int // or columns of other targets
	Targets  graph.Targets
	Splits   []graph.SplitInfo
	// Relations is how many relations edges have; 0: they have none.
	Relations int
	// EdgeFeatures is how many columns of features edges have.
	EdgeFeatures int
	// Triples is how many relations triples have whose split is given; 0: edges are no triples.
	// Relations counts those of messages then, each of which has another one back.
	Triples int
	// Given is how many triples, or pairs, each part of the split has, where types are known.
	Given *[3]uint64
	// Pairs means that edges are no triples, but have a given split, where types are known. Against is
	// how many pairs there are to compare those of validation and test with.
	Pairs   bool
	Against uint64
	// Ends and Starts are the types at which relations end and begin, where types are known: shards do
	// not name them.
	Ends, Starts string
	// Balance are the weights of losses that balance the targets of training vertices (see
	// package balance); nil: they were not counted.
	Balance []float64
}

// Words returns how many 32-bit words the targets of a vertex are.
func (a *About) Words() int { return a.Targets.Words(a.Classes) }

// Describe describes the graph of these shards, which are all of its shards.
func Describe(shards []*graph.Shard) About { return DescribePart(shards, nil, nil) }

// DescribePart is Describe where edges, or labels and marks, may be elsewhere: summaries
// and seeds are of those shards, nil for others.
func DescribePart(shards []*graph.Shard, summaries []*sample.Summary, seeds []*graph.Seeds) About {
	var a About
	for n, s := range shards {
		a.Vertices += uint64(s.Vertices)
		if n < len(summaries) && summaries[n] != nil {
			a.Edges += uint64(summaries[n].Edges)
		} else {
			a.Edges += uint64(len(s.Indices))
		}
		a.Features, a.Classes, a.Targets = s.Features, s.Classes, s.Targets
		a.EdgeFeatures = s.EdgeRows.Columns
		if s.Related != nil {
			a.Relations, a.Triples = s.Related.Seen(), s.Related.Triples()
		}
		of := (*graph.Seeds)(nil)
		if n < len(seeds) {
			of = seeds[n]
		}
		if of == nil {
			of = graph.SeedsOf(s, -1)
		}
		for i, split := range of.Splits {
			if i == len(a.Splits) {
				a.Splits = append(a.Splits, graph.SplitInfo{})
			}
			a.Splits[i].Train += split.Train
			a.Splits[i].Val += split.Val
			a.Splits[i].Test += split.Test
		}
	}
	return a
}
