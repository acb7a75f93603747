package census

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// drawn returns shards of a random graph, one of them empty, with some self-loops.
func drawn(vertices, shards int) (all []*graph.Shard, firsts []uint32, edges []int) {
	r := rand.New(rand.NewPCG(1, 7))
	first := 0
	for i := range shards {
		n := vertices / (shards - 1)
		if i == 3 {
			n = 0
		}
		s := &graph.Shard{Number: i, Shards: shards, First: uint32(first), Vertices: n, Total: uint32(vertices), Indptr: []int64{0}}
		for range n {
			var row []int32
			for range r.IntN(5) {
				row = append(row, int32(r.IntN(vertices)))
			}
			if r.IntN(9) == 0 {
				row = append(row, int32(first+len(s.Indptr)-1))
			}
			slices.Sort(row)
			s.Indices = append(s.Indices, slices.Compact(row)...)
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		all, firsts, edges = append(all, s), append(firsts, s.First), append(edges, len(s.Indices))
		first += n
	}
	return all, append(firsts, uint32(vertices)), edges
}

// Nodes that have the edges of their own shards count what one counts that has all; the
// mirrors of ways whose shards several nodes own may be counted higher, and alike by all.
func TestSharedCounts(t *testing.T) {
	const vertices, count = 400, 11
	shards, firsts, edges := drawn(vertices, count)
	whole, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	form := sample.Form{SelfLoops: true, Weighting: sample.Symmetric}
	for _, owners := range [][]int{
		{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}, {2, 2, 0, 1, 1, 1, 0, 0, 0, 2, 2}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0},
	} {
		nodes := slices.Max(owners) + 1
		var shapes []*arrange.Shape
		for ways := 1; ways <= nodes; ways++ {
			s, err := arrange.NewShape(firsts, nil, ways, 2*ways)
			if err != nil {
				t.Fatal(err)
			}
			shapes = append(shapes, s)
		}
		net := loopback.New(nodes)
		all, errs := make([]*Census, nodes), make([]error, nodes)
		var running sync.WaitGroup
		for node := range nodes {
			peers := net.Node(node)
			work := peer.Work{Self: node, Owners: owners}
			for i := range nodes {
				work.Nodes = append(work.Nodes, fmt.Sprint("n", i))
			}
			x := exchange.New(peers, work)
			peers.Open()
			c := Begin(firsts, edges)
			all[node] = c
			own := whole.Held(func(first uint32) bool {
				for i, s := range shards {
					if s.First == first && s.Vertices > 0 {
						return owners[i] == node
					}
				}
				return false
			})
			running.Go(func() { errs[node] = c.Share(t.Context(), x, work, own, form, shapes, nil) })
		}
		running.Wait()
		want := New(firsts, whole, form)
		if !slices.Equal(want.Edges, edges) {
			t.Errorf("%v edges, and not %v", want.Edges, edges)
		}
		for node, c := range all {
			if errs[node] != nil {
				t.Fatal(errs[node])
			}
			if !slices.Equal(c.Sources, want.Sources) || !slices.Equal(c.Entries, want.Entries) {
				t.Errorf("%v: node %d counts %v and %v, and not %v and %v", owners, node, c.Sources, c.Entries, want.Sources, want.Entries)
			}
			for _, s := range shapes {
				got, of := c.Of(s), want.Of(s)
				if !slices.Equal(got.Halves, of.Halves) {
					t.Errorf("%v, %d ways: node %d counts %v, and not %v", owners, s.Ways(), node, got.Halves, of.Halves)
				}
				if !reflect.DeepEqual(got, all[0].Of(s)) {
					t.Errorf("%v, %d ways: node %d has others counts than the first", owners, s.Ways(), node)
				}
				for way := range s.Ways() {
					_, _, first, end := s.Of(way)
					one := len(slices.Compact(slices.Clone(owners[first:end]))) == 1
					for chunk, n := range of.Mirrors[way] {
						a, b := s.Chunk(chunk)
						if m := got.Mirrors[way][chunk]; m < n || one && m > n || m > int(b-a) {
							t.Errorf("%v, %d ways: node %d counts %d mirrors of way %d in chunk %d, and there are %d", owners, s.Ways(), node, m, way, chunk, n)
						}
						if s.Ways() == 1 {
							continue
						}
						if m := got.Least[way][chunk]; m > n || one && m < n || n > 0 && m == 0 {
							t.Errorf("%v, %d ways: node %d counts %d mirrors at least of way %d in chunk %d, and there are %d", owners, s.Ways(), node, m, way, chunk, n)
						}
					}
				}
			}
		}
	}
}

// A set is emptied, and filled again.
func TestSets(t *testing.T) {
	s := NewSet(20000)
	for range 3 {
		var want []uint32
		for _, v := range []uint32{19999, 0, 63, 64, 4095, 4096, 12000, 64} {
			s.Add(v)
			want = append(want, v)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := s.All(nil); !slices.Equal(got, want) || s.Count() != len(want) {
			t.Errorf("%v, %d", got, s.Count())
		}
		s.Empty()
		if s.Count() != 0 || len(s.All(nil)) != 0 {
			t.Error("it is not empty")
		}
	}
}

func FuzzCounts(f *testing.F) {
	shards, firsts, edges := drawn(40, 5)
	whole, err := sample.NewTopology(shards)
	if err != nil {
		f.Fatal(err)
	}
	shape, err := arrange.NewShape(firsts, nil, 2, 4)
	if err != nil {
		f.Fatal(err)
	}
	c, own := Begin(firsts, edges), []int{1, 2, 4}
	all, k := newSharing(c, []*arrange.Shape{shape}), newCounter(whole, sample.Form{})
	all.sources, all.entries = k.wholes(firsts, own)
	all.of[0] = k.of(shape, own)
	f.Add(all.encode(own))
	f.Add([]byte{1, 2, 3})
	f.Add(slices.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		to := newSharing(c, all.shapes)
		if err := to.read(b, own); err != nil {
			return
		}
		to.bound()
		for shard, n := range to.sources {
			if n < 0 || n > 40 || to.entries[shard] < 0 || to.entries[shard] > edges[shard]+c.Vertices(shard) {
				t.Fatalf("shard %d has %d sources and %d entries", shard, n, to.entries[shard])
			}
		}
		for _, of := range to.of[0].Mirrors {
			for chunk, n := range of {
				if first, end := shape.Chunk(chunk); n < 0 || n > int(end-first) {
					t.Fatalf("%d mirrors in chunk %d", n, chunk)
				}
			}
		}
	})
}
