package pipe

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What lives as long as training does not grow with how many shards there are, and edges
// between them: no shard keeps rows of others from forward to backward.
func TestShardsKeepNoRowsOfOthers(t *testing.T) {
	kept := func(shards int) int {
		w := newWorld(t, 1, slices.Repeat([]int{48 / shards}, shards), anywhere)
		n := w.start(t, newSetup(deep("gcnii", 3), 1, 1, shards)).nodes[0]
		if held := n.kept.Bytes(); held > keeps(n.Worker)+64 {
			t.Errorf("%d shards keep %d bytes, and %d were meant", shards, held, keeps(n.Worker))
		}
		return keeps(n.Worker)
	}
	few, many := kept(2), kept(16)
	const ends = 2 * 64 // of what comes of each shard
	if many > few+14*ends {
		t.Errorf("2 shards keep %d bytes, and 16 of the same vertices %d", few, many)
	}
}

// A further layer keeps no copies of the rows that shards read of others: forward drops
// them where sums are kept, and backward once they are added up.
func TestLayersKeepNoSources(t *testing.T) {
	const hidden = 32
	w := newWorld(t, 3, slices.Repeat([]int{150}, 24), anywhere)
	passes := func(layers, ways int) (bytes, sources int) {
		spec := deep("gcn", layers)
		spec.Hidden = hidden
		s := newSetup(spec, 1, ways, ways)
		s.Recompute = false
		s.device = func() tensor.Device { return cpu.New(1) }
		for _, n := range w.start(t, s).nodes {
			l := loadOf(n.Worker)
			if l.passes() < bytes {
				continue
			}
			bytes, sources = 0, 0
			for i := range l.parts {
				n, _ := l.pass(&l.parts[i])
				bytes, sources = bytes+n, sources+l.parts[i].sources
			}
		}
		t.Logf("%d layers: the worst of %d nodes has %d bytes of passes", layers, ways, bytes)
		return bytes, sources
	}
	for _, ways := range []int{1, 3, 8} {
		few, sources := passes(4, ways)
		many, _ := passes(8, ways)
		if grown, copied := many-few, 4*sources*hidden*4; grown > copied {
			t.Errorf("%d nodes: four layers more take %d bytes, and a copy of all sources for each takes %d", ways, grown, copied)
		}
	}
}

// Where only current rows are read, further layers keep none: they take turns in the memory of
// two. Where earlier ones are read again, each has its own.
func TestLayersTakeTurns(t *testing.T) {
	w := newWorld(t, 3, slices.Repeat([]int{150}, 6), anywhere)
	kept := func(layers int, policy string, recompute bool) (most int) {
		spec := deep("gcn", layers)
		spec.Hidden = 32
		s := newSetup(spec, 1, 3, 3)
		s.Recompute, s.Halo = recompute, Halo{Policy: policy, Share: 0.5, Age: 1}
		for _, n := range w.start(t, s).nodes {
			if held := n.Worker.kept.Bytes(); held > keeps(n.Worker)+64 {
				t.Errorf("%s: a node keeps %d bytes, and %d were meant", policy, held, keeps(n.Worker))
			}
			m := keeps(n.Worker) - n.slots()*n.Model.Size()*n.Device.Type().Bytes()
			most = max(most, m)
		}
		return most
	}
	const ends = 64 * 4 * 4 // of each layer's matrices
	for _, c := range []struct {
		policy            string
		recompute, taking bool
	}{{Exact, false, true}, {Previous, false, true}, {Sampled, false, true}, {Skip, false, false}, {Exact, true, false}} {
		few, many := kept(4, c.policy, c.recompute), kept(8, c.policy, c.recompute)
		if taking := many <= few+ends; taking != c.taking {
			t.Errorf("%+v: 4 layers keep %d bytes, and 8 keep %d", c, few, many)
		}
	}
}

// What is asked for before anything is brought is nearly what a worker then takes, and no more.
func TestTheLeastIsNearlyAll(t *testing.T) {
	w := newWorld(t, 3, slices.Repeat([]int{150}, 16), anywhere)
	for _, model := range []string{"gcn", "sage", "gat", "resgcn"} {
		for _, nodes := range []int{2, 4, 8} {
			spec := deep(model, 4)
			f := w.facts(t, spec, nodes, "pipe.stages=1", fmt.Sprint("pipe.ways=", nodes), fmt.Sprint("pipe.chunks=", nodes))
			all, err := f.Candidates(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range w.start(t, newSetup(spec, 1, nodes, nodes)).nodes {
				least, err := f.least(&all[0], i)
				if takes := loadOf(n.Worker).bytes(); err != nil || least > takes || least < takes/10*9 {
					t.Errorf("%s: node %d of %d asks for %d bytes, and takes %d: %v", model, i, nodes, least, takes, err)
				}
			}
			shape, err := f.shape(nodes)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := f.least(&all[0], 0)
			if err != nil {
				t.Fatal(err)
			}
			of := f.Census.Of(shape)
			of.Least = slices.Clone(of.Mirrors)
			of.Least[0] = make([]int, len(of.Mirrors[0])) // its nodes count the same ones
			if least, err := f.least(&all[0], 0); err != nil || least >= whole {
				t.Errorf("%s: a node asks for %d bytes where there may be no mirrors, and for %d: %v", model, least, whole, err)
			}
		}
	}
}
