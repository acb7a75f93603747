package evaluate

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/task"
)

// oneWay returns two shards of a graph: each vertex of the first has an edge to one of the second,
// and only one edge leads back.
func oneWay(each int) []*graph.Shard {
	r := rand.New(rand.NewPCG(7, 3))
	const features, classes = 12, 3
	var all []*graph.Shard
	for n := range 2 {
		s := &graph.Shard{
			Number: n, Shards: 2, First: uint32(n * each), Vertices: each, Total: uint32(2 * each), Features: features, Classes: classes, DType: graph.F32,
			Indptr: []int64{0}, Labels: make([]int32, each), Marks: [][]graph.Mark{make([]graph.Mark, each)},
		}
		for row := range each {
			for range features {
				s.Dense = append(s.Dense, float32(r.NormFloat64()))
			}
			s.Labels[row], s.Marks[0][row] = int32(row%classes), graph.Mark(1+row%3)
			of := []int32{int32(n*each + r.IntN(each)), int32(n*each + r.IntN(each))}
			if n == 1 {
				of = append(of, int32(row))
			} else if row == 5 {
				of = append(of, int32(each))
			}
			slices.Sort(of)
			s.Indices = append(s.Indices, slices.Compact(of)...)
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		all = append(all, s)
	}
	return all
}

// A node that needs little of another plans for little, until it hears that the other needs all of
// its rows. It keeps to its memory then, too.
func TestWhatOthersNeedIsPlanned(t *testing.T) {
	const each = 6 * chunkRows
	shards, spec := oneWay(each), nn.Defaults("gcn")
	spec.Layers, spec.Hidden = 3, 64
	of := setup{spec: spec, metric: task.ROCAUC, topology: "sharded", dir: t.TempDir()}
	want, err := of.alone(t, shards).evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, whole := range []bool{true, false} {
		m := newMesh(2, []int{0, 1})
		all := m.start(t, of, shards)
		gives := all[0]
		if gives.halo.size() != 1 || all[1].halo.size() != each {
			t.Fatalf("halos of %d and %d vertices", gives.halo.size(), all[1].halo.size())
		}
		gives.Limit(0)
		memory := gives.wholeBytes(gives.all())
		if !whole {
			memory = min(memory, gives.beyond(gives.inParts(gives.all(), false)))
		}
		memory += 1000
		gives.Limit(memory)
		if p := gives.plan(gives.all()); p.inFile || whole && !p.whole {
			t.Fatalf("%d bytes are planned to be used as %+v", memory, p)
		}
		for epoch := range 2 {
			same(t, "one way", m.evaluated(t, all, epoch+1), want)
			held := uint64(0)
			for _, rows := range gives.halo.out {
				held += uint64(cap(rows))
			}
			// Of two stages all rows are given.
			if taken := gives.beyond(gives.planned); taken > memory || held > 0 && taken < held {
				t.Errorf("whole %v: %d bytes, of which %d are rows of others, where %d may be taken: %+v", whole, taken, held, memory, gives.planned)
			}
			if outs, _, _ := gives.exchanges(gives.all()); outs != 2*4*64*each || held > 0 && held > outs+outs/4 || !whole && !gives.planned.inFile {
				t.Errorf("whole %v: %d bytes are given, and %d are planned: %+v", whole, held, outs, gives.planned)
			}
		}
	}
}

// Lists of what others need lie in memory. Where they are too long for it, nothing is begun.
func TestOthersThatNeedTooMuch(t *testing.T) {
	all := newMesh(2, []int{0, 1}).start(t, setup{spec: evalSpecs()["gcn"], metric: task.Accuracy, topology: "sharded", dir: t.TempDir()}, oneWay(chunkRows))
	gives := all[0]
	gives.Limit(gives.wholeBytes(gives.all()))
	if err := gives.admit([]int{0, 3}); err != nil || !gives.plan(gives.all()).whole {
		t.Errorf("a little more is planned as %+v, %v", gives.plan(gives.all()), err)
	}
	gives.Limit(gives.Least())
	if err := gives.admit([]int{0, chunkRows}); err != nil {
		t.Error(err)
	}
	err := gives.admit([]int{0, 1 << 20})
	short, is := errors.AsType[*budget.Short](err)
	if !is || short.Needs <= short.Has || !strings.Contains(err.Error(), "other nodes need 1048576 rows of the 1024 of this node") {
		t.Error(err)
	}
	gives.Limit(plenty)
	if err := gives.admit([]int{0, 1 << 20}); err != nil {
		t.Error(err)
	}
}
