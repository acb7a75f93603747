package replica

import (
	"reflect"
	"runtime"
	"testing"
	"weak"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A replica that sheds its edges is as one that was brought without them, and the cache brings
// them again when they are wanted.
func TestShed(t *testing.T) {
	for _, bare := range []bool{true, false} {
		net, works, here := mesh(4, graphs(false), owners)
		bring := func(topology string, c *Cache) *Replica {
			t.Helper()
			r, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{Dataset: "x", Topology: topology, Bare: bare, Cache: c})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		cache := &Cache{}
		want, got := bring(sharded, nil), bring(replicated, cache)
		all := got.Bytes
		var edges []weak.Pointer[int32]
		for i, s := range got.Shards {
			if here[0][i] == nil && len(s.Indices) > 0 {
				edges = append(edges, weak.Make(&s.Indices[0]))
			}
		}
		for range 2 { // once more changes nothing
			if err := got.Shed(here[0], cache); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		for _, e := range edges {
			if e.Value() != nil {
				t.Errorf("bare %v: edges that were given up are still in memory", bare)
			}
		}
		if len(edges) == 0 || got.Replicated || got.Bytes >= all || got.Bytes == 0 || !reflect.DeepEqual(got.Summaries, want.Summaries) {
			t.Errorf("%d bytes are left of %d, and summaries %+v", got.Bytes, all, got.Summaries)
		}
		for i, s := range got.Shards {
			of := want.Shards[i]
			if (s.Indptr == nil) != (of.Indptr == nil) || (s.Indices == nil) != (of.Indices == nil) || !reflect.DeepEqual(s.Labels, of.Labels) || !reflect.DeepEqual(s.Marks, of.Marks) || s.Vertices != of.Vertices {
				t.Errorf("shard %d is %+v, not %+v", i, s, of)
			}
		}
		runtime.KeepAlive(got)
		if again := bring(replicated, cache); again.Bytes != all || !again.Replicated {
			t.Errorf("brought again are %d bytes of %d", again.Bytes, all)
		}
	}
}

// Edges that are taken over later have the relations that they have where they are held.
func TestTakenEdgesHaveTheirRelations(t *testing.T) {
	all := graphs(false)
	for _, s := range all {
		s.Related = &graph.Related{Count: 3, Of: make([]float32, len(s.Indices))}
		for e := range s.Related.Of {
			s.Related.Of[e] = float32(e % 3)
		}
	}
	net, works, here := mesh(4, all, owners)
	bring := func(o Options) *Replica {
		t.Helper()
		r, err := Bring(t.Context(), net.Node(0), works[0], here[0], o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := bring(Options{Dataset: "x", Bare: true, Later: true, Memory: 1 << 17})
	if r.Later == 0 {
		t.Fatal("no edges were left for later")
	}
	r.Take(here[0], bring(Options{Dataset: "x", Bare: true, Fits: true, Memory: 1 << 17}))
	for i, s := range r.Shards {
		if !reflect.DeepEqual(s.Indices, all[i].Indices) && len(all[i].Indices) > 0 || !reflect.DeepEqual(s.Related.Of, all[i].Related.Of) && len(all[i].Indices) > 0 {
			t.Errorf("shard %d has relations %v of %d edges", i, s.Related, len(all[i].Indices))
		}
	}
}
