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
	Classes  int
	Splits   []graph.SplitInfo
}

// Describe describes the graph of these shards, which are all of its shards.
func Describe(shards []*graph.Shard) About { return DescribePart(shards, nil) }

// DescribePart is Describe where edges may be elsewhere: summaries are of those shards, nil
// for others.
func DescribePart(shards []*graph.Shard, summaries []*sample.Summary) About {
	var a About
	for n, s := range shards {
		a.Vertices += uint64(s.Vertices)
		if n < len(summaries) && summaries[n] != nil {
			a.Edges += uint64(summaries[n].Edges)
		} else {
			a.Edges += uint64(len(s.Indices))
		}
		a.Features, a.Classes = s.Features, s.Classes
		for i, marks := range s.Marks {
			if i == len(a.Splits) {
				a.Splits = append(a.Splits, graph.SplitInfo{})
			}
			for row, mark := range marks {
				if s.Labels == nil || s.Labels[row] < 0 {
					continue // it can be neither learnt from nor judged
				}
				switch mark {
				case graph.Train:
					a.Splits[i].Train++
				case graph.Validation:
					a.Splits[i].Val++
				case graph.Test:
					a.Splits[i].Test++
				}
			}
		}
	}
	return a
}
