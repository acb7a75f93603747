package dataset

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// shards are those of six vertices: the second shard has none, and of the third neither
// labels nor marks are known.
func shards() []*graph.Shard {
	all := []*graph.Shard{{}, {}, {}}
	for i, n := range []int{4, 0, 2} {
		all[i].Vertices, all[i].Total, all[i].Features, all[i].Classes = n, 6, 3, 2
	}
	all[1].First, all[2].First = 4, 4
	all[0].Indices = []int32{1, 2, 5}
	all[0].Labels = []int32{1, graph.NoLabel, 0, 1}
	all[0].Marks = [][]graph.Mark{
		{graph.Train, graph.Train, graph.Test, graph.Validation},
		{graph.Unmarked, graph.Train, graph.Train, graph.Train},
	}
	all[1].Labels, all[1].Marks = []int32{}, [][]graph.Mark{{}, {}}
	return all
}

func TestDescribe(t *testing.T) {
	all := shards()
	a := Describe(all)
	if a.Vertices != 6 || a.Edges != 3 || a.Features != 3 || a.Classes != 2 {
		t.Errorf("%+v", a)
	}
	// A vertex without a label can be neither learned from nor evaluated.
	if want := []graph.SplitInfo{{Train: 1, Val: 1, Test: 1}, {Train: 2}}; !slices.Equal(a.Splits, want) {
		t.Errorf("the splits are %+v in place of %+v", a.Splits, want)
	}
	// Of edges that are elsewhere a summary says how many there are.
	if a := DescribePart(all, []*sample.Summary{nil, nil, {Edges: 40}}, nil); a.Edges != 43 {
		t.Errorf("%d edges", a.Edges)
	}
	if got := Firsts(all); !slices.Equal(got, []uint32{0, 4, 4, 6}) {
		t.Errorf("shards begin at %d", got)
	}
}

func TestLabelsAndMarksOfVertices(t *testing.T) {
	for split, c := range []struct {
		training []uint32
		learnt   []int32
		marks    []graph.Mark
	}{
		{[]uint32{0}, []int32{1, graph.NoLabel, graph.NoLabel, graph.NoLabel, graph.NoLabel, graph.NoLabel}, []graph.Mark{graph.Train, graph.Train, graph.Test, graph.Validation, graph.Unmarked, graph.Unmarked}},
		{[]uint32{2, 3}, []int32{graph.NoLabel, graph.NoLabel, 0, 1, graph.NoLabel, graph.NoLabel}, []graph.Mark{graph.Unmarked, graph.Train, graph.Train, graph.Train, graph.Unmarked, graph.Unmarked}},
	} {
		d := &Graph{Shards: shards(), Split: split}
		d.learn(nil)
		if !slices.Equal(d.Training, c.training) {
			t.Errorf("split %d: learned from are %d", split, d.Training)
		}
		labels, marks := make([]int32, 6), make([]graph.Mark, 6)
		d.Known(labels, marks, 0)
		if !slices.Equal(labels, []int32{1, graph.NoLabel, 0, 1, graph.NoLabel, graph.NoLabel}) || !slices.Equal(marks, c.marks) {
			t.Errorf("split %d: %d, %d", split, labels, marks)
		}
		if d.Learnt(labels, 0); !slices.Equal(labels, c.learnt) {
			t.Errorf("split %d: labels learned from are %d", split, labels)
		}
		if d.Known(labels[:2], marks[:2], 3); labels[0] != 1 || labels[1] != graph.NoLabel {
			t.Errorf("split %d: from vertex 3 on, %d", split, labels[:2])
		}
	}
	// Shards without labels and marks tell which vertices are learned from.
	bare, seeds, want := shards(), make([]*graph.Seeds, 3), Describe(shards())
	for i, s := range bare[:2] {
		seeds[i] = graph.SeedsOf(s, 1)
		s.Labels, s.Marks = nil, nil
	}
	d := &Graph{Shards: bare, Split: 1, About: DescribePart(bare, nil, seeds)}
	d.learn(seeds)
	if !slices.Equal(d.Training, []uint32{2, 3}) || !reflect.DeepEqual(d.About, want) || cap(d.Training) != 2 {
		t.Errorf("%d, %+v", d.Training, d.About)
	}
	if _, here := d.Target(nil, 3); here {
		t.Error("a label is here that is not")
	}
	d = &Graph{Shards: shards()}
	if label, here := d.Target([]int32{7}, 3); !slices.Equal(label, []int32{7, 1}) || !here {
		t.Errorf("the label is %d", label)
	}
	if got := d.TargetsOf([]int32{7}, []uint32{3, 0, 2}); !slices.Equal(got, []int32{7, 1, 1, 0}) {
		t.Errorf("labels are %d", got)
	}
}

func TestIndexFindsEachVertex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		vertices := 1 + random.IntN(3000)
		var ids []uint32
		for v := range vertices {
			if random.IntN(7) == 0 || v == vertices-1 {
				ids = append(ids, uint32(v))
			}
		}
		rows := make([]int32, len(ids))
		for i := range rows {
			rows[i] = random.Int32()
		}
		x := NewIndex(ids, rows, vertices)
		for i, v := range ids {
			if got := x.Find(v); got != rows[i] {
				t.Fatalf("of %d vertices, %d has row %d in place of %d", vertices, v, got, rows[i])
			}
		}
	}
}
