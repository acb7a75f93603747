package enginetest

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

// targeted is a source whose classes are replaced by targets with columns.
type targeted struct {
	graph.Source
	meta    graph.Meta
	columns graph.Columns
}

func (t *targeted) Meta() graph.Meta       { return t.meta }
func (*targeted) Labels() []int32          { return nil }
func (t *targeted) Targets() graph.Columns { return t.columns }

// WithTargets returns a source whose vertices have so many columns of targets in place of a
// class. Numbers are what of returns, NaN where one is missing; a yes is a number above 0.
func WithTargets(src graph.Source, targets graph.Targets, columns int, of func(vertex, column int) float64) graph.Source {
	t := &targeted{Source: src, meta: src.Meta()}
	t.meta.Classes, t.meta.Targets, t.meta.ClassNames = columns, targets, nil
	for v := range int(t.meta.Vertices) {
		for c := range columns {
			x := of(v, c)
			if targets == graph.Numbers {
				t.columns.Numbers = append(t.columns.Numbers, float32(x))
				continue
			}
			cell := uint8(0)
			switch {
			case math.IsNaN(x):
				cell = graph.Missing
			case x > 0:
				cell = 1
			}
			t.columns.YesOrNo = append(t.columns.YesOrNo, cell)
		}
	}
	return t
}

// TinyColumns is how many columns of targets the vertices of TinyTargets have.
const TinyColumns = 3

// TinyTargets returns the graph of Tiny, whose vertices have targets of this kind: a class, or columns.
// Some cells are missing, and of some vertices all.
func TinyTargets(t testing.TB, targets graph.Targets, vertices, shards int) []*graph.Shard {
	t.Helper()
	if targets == graph.OneClass {
		return Tiny(t, vertices, shards)
	}
	src, err := generate.New(tiny(vertices))
	if err != nil {
		t.Fatal(err)
	}
	return Cut(t, WithTargets(src, targets, TinyColumns, func(v, c int) float64 {
		if v%11 == 0 || (v+c)%5 == 0 {
			return math.NaN()
		}
		return 2 * math.Sin(float64(1+v*TinyColumns+c))
	}), shards, "")
}
