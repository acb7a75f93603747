package gather

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// A kind is how a graph's features are stored.
type kind struct {
	sparse, ones bool
	dtype        graph.DType
}

var kinds = []kind{
	{false, false, graph.F32}, {false, false, graph.BF16}, {false, true, graph.F32},
	{true, false, graph.F32}, {true, false, graph.BF16}, {true, true, graph.F32},
}

// graphOf makes shards of so many vertices, whose rows of 9 columns tell them apart
// unless they are of ones. Vertex 1 has a row of zeros.
func graphOf(k kind, sizes ...int) []*graph.Shard {
	const columns = 9
	r := rand.New(rand.NewPCG(7, 8))
	total := 0
	for _, n := range sizes {
		total += n
	}
	var shards []*graph.Shard
	first := 0
	for i, n := range sizes {
		s := &graph.Shard{
			Number: i, Shards: len(sizes), First: uint32(first), Vertices: n,
			Total: uint32(total), Features: columns, DType: k.dtype,
		}
		values, rows := []float32{}, &graph.SparseRows{Indptr: []int64{0}}
		for v := first; v < first+n; v++ {
			for c := range columns {
				f := float32(0)
				switch {
				case v == 1:
				case k.ones && (v>>c)&1 == 1:
					f = 1
				case !k.ones && c == 0:
					f = float32(v + 1)
				case !k.ones && r.IntN(3) > 0:
					f = r.Float32()*8 - 4
				}
				if f != 0 || !k.sparse {
					values = append(values, f)
				}
				if f != 0 {
					rows.Columns = append(rows.Columns, int32(c))
				}
			}
			rows.Indptr = append(rows.Indptr, int64(len(rows.Columns)))
		}
		half := make([]uint16, len(values))
		graph.ToBF16(half, values)
		switch {
		case k.sparse && k.dtype == graph.BF16:
			s.Sparse, rows.ValuesBF16 = rows, half
		case k.sparse:
			s.Sparse, rows.Values = rows, values
		case k.dtype == graph.BF16:
			s.DenseBF16 = half
		default:
			s.Dense = values
		}
		shards = append(shards, s)
		first += n
	}
	return shards
}

// A mesh is a graph on several nodes.
type mesh struct {
	t       testing.TB
	shards  []*graph.Shard
	whole   *features.Store
	layout  peer.Layout
	net     *loopback.Net
	stores  []*features.Store
	sources []*Source
}

// meshOf gives each shard to its owner alone.
func meshOf(t testing.TB, shards []*graph.Shard, nodes int, owners []int, how, wire string) *mesh {
	t.Helper()
	whole, err := features.Open(shards, how)
	if err != nil {
		t.Fatal(err)
	}
	m := &mesh{t: t, shards: shards, whole: whole, net: loopback.New(nodes)}
	m.layout = peer.Layout{Nodes: nodes, Owners: owners}
	var stats []graph.FeatureStats
	for _, s := range shards {
		m.layout.Firsts = append(m.layout.Firsts, s.First)
		stats = append(stats, graph.StatsOf(s))
	}
	m.layout.Firsts = append(m.layout.Firsts, shards[0].Total)
	for node := range nodes {
		var mine []*graph.Shard
		for i, s := range shards {
			if owners[i] != node {
				bare := *s
				bare.Dense, bare.DenseBF16, bare.Sparse = nil, nil, nil
				s = &bare
			}
			mine = append(mine, s)
		}
		store, err := features.OpenPart(mine, stats, how)
		if err != nil {
			t.Fatal(err)
		}
		source := Register(m.net.Node(node))
		if err := source.Ready(store, m.work(node), m.layout, wire); err != nil {
			t.Fatal(err)
		}
		m.net.Node(node).Open()
		m.stores, m.sources = append(m.stores, store), append(m.sources, source)
	}
	return m
}

func (m *mesh) work(node int) peer.Work {
	w := peer.Work{Self: node, Owners: m.layout.Owners}
	for i := range m.layout.Nodes {
		w.Nodes = append(w.Nodes, fmt.Sprintf("n%d", i))
	}
	return w
}

// gather is Gather at a node, which must not fail.
func (m *mesh) gather(node int, r *Rows, sets [][]uint32, o Options, tally *peer.Tally) {
	m.t.Helper()
	if err := m.sources[node].Gather(m.t.Context(), r, sets, 1, 0, o, tally); err != nil {
		m.t.Fatal(err)
	}
}

// some are n different vertices, in any order.
func (m *mesh) some(r *rand.Rand, n int) []uint32 {
	var all []uint32
	for _, v := range r.Perm(int(m.layout.Vertices()))[:n] {
		all = append(all, uint32(v))
	}
	return all
}

// far counts the vertices that are not at a node.
func (m *mesh) far(node int, vertices []uint32) int {
	n := 0
	for _, v := range vertices {
		if m.layout.Owner(v) != node {
			n++
		}
	}
	return n
}

// owners counts those, beside a node, of vertices.
func (m *mesh) owners(node int, vertices []uint32) int {
	var seen []int
	for _, v := range vertices {
		if o := m.layout.Owner(v); o != node && !slices.Contains(seen, o) {
			seen = append(seen, o)
		}
	}
	return len(seen)
}

// union is the vertices of all sets, once.
func union(sets [][]uint32) []uint32 {
	all := slices.Concat(sets...)
	slices.Sort(all)
	return slices.Compact(all)
}
