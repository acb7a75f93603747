package gather

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// withEdges gives each vertex of the shards some in-edges, more often from some sources
// than from others, and says how many edges each is the source of.
func withEdges(shards []*graph.Shard, rng *rand.Rand) (edges []int) {
	total := int(shards[0].Total)
	edges = make([]int, total)
	for _, s := range shards {
		s.Indptr = []int64{0}
		for range s.Vertices {
			var from []int32
			for range rng.IntN(6) {
				from = append(from, int32(rng.IntN(total)*rng.IntN(total)/total))
			}
			slices.Sort(from)
			from = slices.Compact(from)
			for _, u := range from {
				edges[u]++
			}
			s.Indices = append(s.Indices, from...)
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
	}
	return edges
}

// hottest is which rows a node should keep, in plain words.
func (m *mesh) hottest(node, rows int, edges []int) []uint32 {
	var far []uint32
	for v := range m.layout.Vertices() {
		if m.layout.Owner(v) != node {
			far = append(far, v)
		}
	}
	slices.SortFunc(far, func(a, b uint32) int { return cmp.Or(edges[b]-edges[a], int(a)-int(b)) })
	far = far[:min(rows, len(far))]
	slices.Sort(far)
	return far
}

// TestCache: the hottest rows are brought once, and never asked for again; all rows are
// as they were.
func TestCache(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, k := range kinds {
		shards := graphOf(k, 70, 0, 40, 30, 60)
		edges := withEdges(shards, rng)
		m := meshOf(t, shards, 4, []int{0, 0, 1, 2, 1}, "row", "")
		for _, rows := range []int{1000, -1, 129, 50, 7, 1, 0} {
			for node := range 4 { // the last has no shard: all its rows are of others
				s := m.sources[node]
				var start peer.Tally
				bytes, err := s.Cache(t.Context(), rows, shards, &start)
				if err != nil {
					t.Fatal(err)
				}
				kept := m.hottest(node, max(rows, 0), edges)
				if got := start.Read().Requests[peer.Feature]; int(got) != m.owners(node, kept) {
					t.Errorf("%d questions for %d rows", got, len(kept))
				}
				if (bytes == 0) != (len(kept) == 0) || bytes < uint64(4*len(kept)) {
					t.Errorf("%d bytes for %d rows", bytes, len(kept))
				}
				for v := range m.layout.Vertices() {
					if _, ok := s.hot.place(v); ok != slices.Contains(kept, v) {
						t.Fatalf("node %d, %d rows: vertex %d of %d edges is kept: %v", node, rows, v, edges[v], ok)
					}
				}
				var r Rows
				for _, o := range options {
					sets := [][]uint32{m.some(rng, 90), m.some(rng, 50), nil}
					m.checkCached(t, node, &r, sets, kept, o)
					m.checkCached(t, node, &r, sets[1:], kept, o)
				}
			}
		}
	}
}

// checkCached gathers, and compares rows and their counts.
func (m *mesh) checkCached(t *testing.T, node int, r *Rows, sets [][]uint32, kept []uint32, o Options) {
	t.Helper()
	var tally peer.Tally
	m.gather(node, r, sets, o, &tally)
	m.checkRows(t, node, r, sets)
	all := slices.Concat(sets...)
	if o == (Options{}) {
		all = union(sets)
	}
	cached := 0
	var asked []uint32
	for _, v := range all {
		switch {
		case slices.Contains(kept, v):
			cached++
		case m.layout.Owner(v) != node:
			asked = append(asked, v)
		}
	}
	local := len(all) - cached - len(asked)
	if r.Local != local || r.Cached != cached || r.Remote != len(asked) {
		t.Fatalf("%+v: %d, %d and %d rows, not %d, %d and %d", o, r.Local, r.Cached, r.Remote, local, cached, len(asked))
	}
	if got := tally.Read().Requests[peer.Feature]; !o.Apart && int(got) != m.owners(node, asked) {
		t.Fatalf("%+v: %d questions", o, got)
	}
}

// TestHottestOfWhatIsKnown: shards without edges count for nothing.
func TestHottestOfWhatIsKnown(t *testing.T) {
	shards := graphOf(kinds[0], 3, 4)
	shards[0].Indices = []int32{5, 6, 4, 6, 5, 6}
	m := meshOf(t, shards, 2, []int{0, 1}, "none", "")
	for rows, want := range [][]uint32{nil, {6}, {5, 6}, {4, 5, 6}, {3, 4, 5, 6}, {3, 4, 5, 6}} {
		if got := m.sources[0].hottest(rows, shards); rows > 0 && !slices.Equal(got, want) {
			t.Errorf("%d rows: %v, not %v", rows, got, want)
		}
	}
	// More than there are, of which the coldest are several.
	shards[0].Indices = []int32{5, 6, 6}
	for rows := 4; rows < 9; rows++ {
		if got := m.sources[0].hottest(rows, shards); !slices.Equal(got, []uint32{3, 4, 5, 6}) {
			t.Errorf("%d rows of 4: %v", rows, got)
		}
	}
}

func TestCachingFails(t *testing.T) {
	m := meshOf(t, graphOf(kinds[0], 10, 10), 2, []int{0, 1}, "none", "")
	m.net.Trouble = func(context.Context, int, int, peer.Query) error { return errors.New("it burns") }
	_, err := m.sources[0].Cache(t.Context(), 3, m.shards, nil)
	if err == nil || !strings.Contains(err.Error(), "often: ask node n1: it burns") {
		t.Error(err)
	}
	m.net.Trouble = nil
	var r Rows
	sets := [][]uint32{{12, 10, 3}}
	m.gather(0, &r, sets, Options{}, nil)
	m.checkRows(t, 0, &r, sets)
	if r.Cached != 0 || r.Remote != 2 {
		t.Errorf("%d and %d rows", r.Cached, r.Remote)
	}
}
