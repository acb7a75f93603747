package balance_test

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/balance"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
)

// shard makes a shard of such targets, all of whose vertices are for training but the last.
func shard(targets graph.Targets, columns int, labels []int32, cells []uint8) *graph.Shard {
	n := len(labels)
	if targets != graph.OneClass {
		n = len(cells) / columns
		labels = make([]int32, n)
	}
	marks := slices.Repeat([]graph.Mark{graph.Train}, n)
	marks[n-1] = graph.Test
	return &graph.Shard{Vertices: n, Classes: columns, Labels: labels, Marks: [][]graph.Mark{marks}, Wide: graph.Wide{Targets: targets, Columns: graph.Columns{YesOrNo: cells}}}
}

// All classes weigh the same together, and the average vertex 1; and all yeses of a column weigh
// as much as all of its noes.
func TestWeights(t *testing.T) {
	const no = graph.Missing
	for name, c := range map[string]struct {
		about  dataset.About
		shards []*graph.Shard
		want   []float64
	}{
		"classes": {dataset.About{Vertices: 12, Classes: 4}, []*graph.Shard{
			shard(graph.OneClass, 4, []int32{0, 0, 0, 0, 1, -1, 3}, nil), shard(graph.OneClass, 4, []int32{0, 0, 3, 1, 1}, nil),
		}, []float64{9. / 3 / 6, 9. / 3 / 2, 1, 9. / 3}},
		"columns": {dataset.About{Vertices: 6, Classes: 3, Targets: graph.YesOrNo}, []*graph.Shard{
			shard(graph.YesOrNo, 3, nil, []uint8{1, 0, 1, 0, no, 1, 1, 1, 1}), shard(graph.YesOrNo, 3, nil, []uint8{0, 0, no, 0, 0, 1, 1, 1, 0}),
		}, []float64{3, 1, 1}},
	} {
		total := balance.New(&c.about)
		for _, s := range c.shards {
			part := balance.New(&c.about)
			part.Add(s, 0)
			if err := total.Merge(part.Export(), c.about.Vertices); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i, w := range total.Weights() {
			if math.Abs(w-c.want[i]) > 1e-15 {
				t.Errorf("%s: %v, want %v", name, total.Weights(), c.want)
			}
		}
	}
}

// What another node sends is not trusted.
func TestCountsThatCannotBe(t *testing.T) {
	about := dataset.About{Vertices: 10, Classes: 2}
	for name, message := range map[string][]byte{
		"nothing":       {},
		"too few":       {1},
		"too many":      {1, 2, 3},
		"cut off":       {1, 0x80},
		"beyond 64":     {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"more vertices": {4, 8},
	} {
		total := balance.New(&about)
		if err := total.Merge([]byte{0, 3}, about.Vertices); err != nil {
			t.Fatal(err)
		}
		if err := total.Merge(message, about.Vertices); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// Whatever is sent, no count exceeds the number of vertices.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 2, 0x80, 1, 3, 0}, uint8(3), true)
	f.Add([]byte{10, 11}, uint8(2), false)
	f.Fuzz(func(t *testing.T, message []byte, classes uint8, columns bool) {
		about := dataset.About{Vertices: 200, Classes: int(classes)}
		if columns {
			about.Targets = graph.YesOrNo
		}
		total := balance.New(&about)
		for range 2 {
			if total.Merge(message, about.Vertices) != nil {
				return
			}
		}
		if again := balance.New(&about); again.Merge(total.Export(), about.Vertices) != nil || !slices.Equal(again.Weights(), total.Weights()) {
			t.Errorf("what %v comes to can't be sent on", message)
		}
		for _, w := range total.Weights() {
			if !(w > 0) || w > 200*255 {
				t.Errorf("a weight of %v", w)
			}
		}
	})
}
