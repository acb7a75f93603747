package replica

import (
	"reflect"
	"runtime"
	"testing"
	"weak"
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
