package vicinity

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// rangeOf is the vertices of some shards.
func rangeOf(shards []*graph.Shard, of ...int) (vertices []uint32, ranges []Range) {
	for _, i := range of {
		s := shards[i]
		for v := s.First; v < s.First+uint32(s.Vertices); v++ {
			vertices = append(vertices, v)
		}
		if s.Vertices > 0 {
			ranges = append(ranges, Range{s.First, s.First + uint32(s.Vertices)})
		}
	}
	return vertices, ranges
}

// What comes are the rows of the shards, however many questions it takes, and no more
// bytes than these rows have.
func TestEdgesAreThoseOfTheShards(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		shards := shardsOf(kind{weighted: weighted}, 9, 0, 7, 5, 8, 6)
		for _, at := range []most{mostAtOnce, {40, 200, 200, 20}} {
			_, all := sourcesOf(t, shards, 3, []int{0, 0, 1, 2, 1, 2})
			for _, s := range all {
				s.most = at
			}
			_, ranges := rangeOf(shards, 0, 2)
			for _, within := range [][]Range{nil, ranges} {
				in := vaultOf(t, weighted)
				vertices, _ := rangeOf(shards, 2, 3, 4)
				vertices = slices.DeleteFunc(vertices, func(v uint32) bool { return v%5 == 3 })
				var tally peer.Tally
				e, err := all[0].Edges(t.Context(), in, vertices, within, &tally)
				if err != nil {
					t.Fatal(err)
				}
				entries := 0
				for _, v := range vertices {
					shard := shards[all[0].layout.Shard(v)]
					from, to := shard.Indptr[v-shard.First], shard.Indptr[v-shard.First+1]
					var sources []int32
					var weights []float32
					for i := from; i < to; i++ {
						if u := uint32(shard.Indices[i]); within == nil || u == v || u < 9 || u >= 9 && u < 16 {
							sources = append(sources, int32(u))
							if weighted {
								weights = append(weights, shard.Weights[i])
							}
						}
					}
					entries += len(sources)
					got, w, degree, ok := e.Row(v)
					if !ok || !slices.Equal(got, sources) || !slices.Equal(w, weights) || int(degree) != int(to-from) {
						t.Fatalf("vertex %d has %v, %v, %d, not %v, %v, %d", v, got, w, degree, sources, weights, to-from)
					}
				}
				if _, _, _, ok := e.Row(0); ok {
					t.Error("a vertex that nobody asked for is there")
				}
				c := tally.Read()
				if c.Requests[peer.Shard] < 2 || at != mostAtOnce && c.Requests[peer.Shard] < 3 {
					t.Errorf("%d questions", c.Requests[peer.Shard])
				}
				if at == mostAtOnce {
					entry := EntryBytes
					if weighted {
						entry *= 2
					}
					questions := 2 * (EntryBytes + RunBytes*len(within))
					for _, asked := range all[0].byOwner(vertices, func(uint32) bool { return false }) {
						questions += RunBytes * len(runsOf(asked))
					}
					want := 2*(peer.QueryFraming+peer.AnswerFraming+HeadBytes) + questions + RowBytes*len(vertices) + entry*entries
					if int(c.Bytes[peer.Shard]) != want {
						t.Errorf("%d bytes in place of %d", c.Bytes[peer.Shard], want)
					}
				}
			}
		}
	}
}

// What is here already is not asked for again, unless other sources are wanted.
func TestEdgesThatAreHereAreNotBroughtAgain(t *testing.T) {
	shards := shardsOf(kind{weighted: true}, 9, 7, 5)
	_, all := sourcesOf(t, shards, 2, []int{0, 1, 1})
	one, ranges := rangeOf(shards, 1)
	both, _ := rangeOf(shards, 1, 2)
	in := vaultOf(t, true)
	var first, again, rest, other peer.Tally
	before, err := all[0].Edges(t.Context(), in, one, nil, &first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].Edges(t.Context(), in, one, nil, &again, before); err != nil || again.Read() != (peer.Counts{}) {
		t.Errorf("%v, %v", again.Read(), err)
	}
	e, err := all[0].Edges(t.Context(), in, both, nil, &rest, before)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := all[0].Edges(t.Context(), in, both, nil, nil)
	if err != nil || e.Len() != len(both) || e.Entries() != fresh.Entries() {
		t.Errorf("%d rows of %d and %d edges, %v", e.Len(), e.Entries(), fresh.Entries(), err)
	}
	for _, v := range both {
		a, w, n, _ := e.Row(v)
		b, x, m, ok := fresh.Row(v)
		if !ok || !slices.Equal(a, b) || !slices.Equal(w, x) || n != m {
			t.Errorf("vertex %d: %v, %v and %d, in place of %v, %v and %d", v, a, w, n, b, x, m)
		}
	}
	if r := rest.Read(); r.Requests[peer.Shard] != 1 {
		t.Errorf("%v", r)
	}
	if _, err := all[0].Edges(t.Context(), in, one, ranges, &other, before); err != nil || other.Read().Requests[peer.Shard] != 1 {
		t.Errorf("%v, %v", other.Read(), err)
	}
}

// Rows are those of the owners, and those that are here already are not asked for.
func TestRowsAreThoseOfTheOwners(t *testing.T) {
	for i := range 8 {
		sparse := i%2 == 1
		shards := shardsOf(kind{sparse: sparse}, 9, 7, 5)
		_, all := sourcesOf(t, shards, 3, []int{0, 1, 2})
		in := vaultOf(t, i/2%2 == 1)
		if i >= 4 {
			all[0].most.rows = 1 // one row at a time
		}
		var first, more peer.Tally
		before, err := all[0].Rows(t.Context(), in, []uint32{9, 12, 17, 20}, nil, &first)
		if err != nil {
			t.Fatal(err)
		}
		want := []uint32{10, 12, 13, 20}
		rows, err := all[0].Rows(t.Context(), in, want, before, &more)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := first.Read(), more.Read(); i < 4 && (a.Requests[peer.Shard] != 2 || b.Requests[peer.Shard] != 1) || a.Requests[peer.Feature]+b.Requests[peer.Feature] != 0 {
			t.Errorf("%v and %v", a, b)
		}
		if _, ok := rows.Place(9); ok {
			t.Error("a row that is not wanted any more is there")
		}
		for _, v := range want {
			place, ok := rows.Place(v)
			if !ok {
				t.Fatalf("no row of %d", v)
			}
			got := numbers(t, all[0], place, rows)
			if other := numbers(t, all[all[0].layout.Owner(v)], v, nil); !slices.Equal(got, other) {
				t.Errorf("sparse %v: vertex %d has %v, not %v", sparse, v, got, other)
			}
		}
	}
}

// numbers are those of the row at a place.
func numbers(t *testing.T, s *Source, place uint32, rows *Rows) []float64 {
	t.Helper()
	d := reference.New()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	y := a.Alloc(d.Type(), 1, 3)
	fill(s, d, a, y, place, rows)
	all := make([]float64, 3)
	d.Read(all, y)
	return all
}

// vaultOf is a vault in files, or one in memory.
func vaultOf(t *testing.T, filed bool) *Vault {
	t.Helper()
	if !filed {
		return nil
	}
	dir := t.TempDir()
	v := NewVault(dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err = errors.Join(err, v.Close()); err != nil || len(left) > 0 || v.Size() != 0 {
			t.Errorf("%v, %d files and %d bytes are left", err, len(left), v.Size())
		}
	})
	return v
}

// Edges from nowhere are not edges from everywhere.
func TestEdgesOfNoRangesAreNotAll(t *testing.T) {
	shards := shardsOf(kind{}, 9, 7, 5)
	_, all := sourcesOf(t, shards, 2, []int{0, 1, 1})
	vertices, _ := rangeOf(shards, 1, 2)
	for _, c := range [][2][]Range{{nil, {}}, {{}, nil}} {
		before, err := all[0].Edges(t.Context(), nil, vertices, c[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := all[0].Edges(t.Context(), nil, vertices, c[1], nil, before)
		if err != nil {
			t.Fatal(err)
		}
		want, err := all[0].Edges(t.Context(), nil, vertices, c[1], nil)
		if err != nil || got.Entries() != want.Entries() || got.Entries() == before.Entries() {
			t.Errorf("%d edges after %d, and %d at once, %v", got.Entries(), before.Entries(), want.Entries(), err)
		}
	}
}
