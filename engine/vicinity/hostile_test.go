package vicinity

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// fill sets y to the row at a place.
func fill(s *Source, d tensor.Device, a tensor.Arena, y tensor.Matrix, place uint32, rows *Rows) {
	var far *features.Far
	if rows != nil {
		far = &rows.Far
	}
	if s.store.Sparse() {
		var r features.Rows
		s.store.Fill(&r, []uint32{place}, false, far)
		d.Densify(y, &r.CSR)
		return
	}
	s.store.Dense(d, a, y, []uint32{place}, far)
}

func words(all ...uint32) (b []byte) {
	for _, n := range all {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// Wrong answers are errors that name who gave them.
func TestWrongAnswers(t *testing.T) {
	shards := shardsOf(kind{}, 9, 4)
	for name, c := range map[string]struct {
		answer []byte
		say    string
	}{
		"nothing":            {nil, "the answer of node n1 is wrong: it has not the length"},
		"no row":             {words(0, 0), "it has no row"},
		"too many rows":      {words(3, 0, 0, 0, 0, 0, 0, 0), "more than were asked for"},
		"a flag":             {words(1, 2, 0, 0), "more than were asked for"},
		"cut rows":           {words(2, 0, 1, 1, 1), "length"},
		"cut sources":        {words(1, 0, 2, 2, 1), "length"},
		"no weights":         {words(1, 1, 1, 1, 1), "length"},
		"not a number":       {words(1, 1, 1, 1, 1, 0x7fc00000), "no numbers"},
		"infinite":           {words(1, 1, 1, 1, 1, 0xff800000), "no numbers"},
		"sources descend":    {words(1, 0, 2, 2, 3, 1), "descend"},
		"no such vertex":     {words(1, 0, 1, 1, 13), "descend"},
		"more than it has":   {words(1, 0, 2, 1, 1, 2), "other entries"},
		"fewer than it has":  {words(1, 0, 1, 2, 1), "other entries"},
		"as many as numbers": {words(1, 0, 0, 1<<31), "other entries"},
		"much said":          {words(1, 0, 1<<31, 1<<31, 1), "length"},
	} {
		net, all := sourcesOf(t, shards, 2, []int{0, 1})
		net.Node(1).Answer(peer.Contexts, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(c.answer)
		})
		if _, err := all[0].Edges(t.Context(), nil, []uint32{9, 11}, nil, nil); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A source occurs once for each relation that leads from it, and so once where there are none.
func TestASourceTwice(t *testing.T) {
	shards := shardsOf(kind{}, 9, 4)
	twice := func() (*Edges, error) {
		net, all := sourcesOf(t, shards, 2, []int{0, 1})
		net.Node(1).Answer(peer.Contexts, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(words(1, 0, 3, 3, 2, 3, 3))
		})
		return all[0].Edges(t.Context(), nil, []uint32{9}, nil, nil)
	}
	if _, err := twice(); err == nil || !strings.Contains(err.Error(), "the answer of node n1 is wrong: it has a source twice") {
		t.Error(err)
	}
	for _, s := range shards {
		s.Related = &graph.Related{Count: 2}
	}
	e, err := twice()
	if err != nil {
		t.Fatal(err)
	}
	if sources, _, degree, ok := RowIn([]*Edges{e}, 9); !ok || degree != 3 || !slices.Equal(sources, []int32{2, 3, 3}) {
		t.Errorf("of vertex 9 came %v of %d: %v", sources, degree, ok)
	}
}

// Vertices have no more edges together than the graph, however many answers bring their rows.
func TestMoreEdgesThanTheGraphHas(t *testing.T) {
	shards := shardsOf(kind{}, 9, 4)
	for _, s := range shards {
		s.Related = &graph.Related{Count: 20}
	}
	for degree, good := range map[uint32]bool{5: true, 6: false, 11: false} {
		net, all := sourcesOf(t, shards, 2, []int{0, 1})
		all[0].edges = 10
		net.Node(1).Answer(peer.Contexts, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(words(1, 0, degree, degree), words(slices.Repeat([]uint32{2}, int(degree))...))
		})
		for range 2 { // each call by itself
			_, err := all[0].Edges(t.Context(), nil, []uint32{9, 11}, nil, nil)
			if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "edges with those before, of a graph of 10") {
				t.Errorf("two rows of %d edges: %v", degree, err)
			}
		}
	}
}

// Edges come with a relation that there is.
func TestRelationsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		good   bool
	}{
		"the last":    {words(1, 1, 1, 1, 1, math.Float32bits(2)), true},
		"one beyond":  {words(1, 1, 1, 1, 1, math.Float32bits(3)), false},
		"below":       {words(1, 1, 1, 1, 1, math.Float32bits(-1)), false},
		"between two": {words(1, 1, 1, 1, 1, math.Float32bits(0.5)), false},
		"without":     {words(1, 0, 1, 1, 1), false},
		"no edges":    {words(1, 0, 0, 0), true},
	} {
		net, all := sourcesOf(t, shardsOf(kind{}, 9, 4), 2, []int{0, 1})
		all[0].Relate(3)
		net.Node(1).Answer(peer.Contexts, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(c.answer)
		})
		_, err := all[0].Edges(t.Context(), nil, []uint32{9}, nil, nil)
		if (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), "of relations that the graph has not") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A source that was not asked for is one too many.
func TestSourcesOutsideOfWhatWasAskedFor(t *testing.T) {
	net, all := sourcesOf(t, shardsOf(kind{}, 9, 4), 2, []int{0, 1})
	net.Node(1).Answer(peer.Contexts, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
		return reply(words(1, 0, 1, 4, 5))
	})
	if _, err := all[0].Edges(t.Context(), nil, []uint32{9}, []Range{{0, 5}}, nil); err == nil || !strings.Contains(err.Error(), "not asked for") {
		t.Error(err)
	}
}

// Questions that make no sense are refused.
func TestWrongQuestions(t *testing.T) {
	_, all := sourcesOf(t, shardsOf(kind{}, 9, 4), 2, []int{0, 1})
	for name, body := range map[string][]byte{
		"nothing": nil, "no runs": words(everywhere), "cut": words(everywhere, 9), "too many ranges": words(2, 9, 10), "only ranges": words(1, 9, 10),
		"unordered": words(everywhere, 10, 11, 9, 10), "empty": words(everywhere, 9, 9), "beyond": words(everywhere, 12, 14), "overlapping": words(everywhere, 9, 11, 10, 12),
		"unordered ranges": words(2, 3, 4, 1, 2, 9, 10), "not here": words(everywhere, 8, 10),
	} {
		_, err := all[0].peers.Ask(t.Context(), 1, peer.Query{Service: peer.Contexts, Kind: peer.Shard, Body: body, Limit: 1 << 20}, nil)
		if !errors.Is(err, peer.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all[1].most.answer = 20
	if _, err := all[0].Edges(t.Context(), nil, []uint32{9}, nil, nil); err == nil || !strings.Contains(err.Error(), "more than fit one answer") {
		t.Error(err)
	}
	if _, err := all[0].Edges(t.Context(), nil, []uint32{3}, nil, nil); err == nil || !strings.Contains(err.Error(), "should be here and are not") {
		t.Error(err)
	}
}

// everywhere begins a question for edges from all sources.
const everywhere = all

// What decodes is what was encoded, and nothing that came is trusted.
func FuzzAnswer(f *testing.F) {
	f.Add(words(1, 0, 2, 2, 1, 3), false)
	f.Add(words(2, 1, 1, 1, 1, 1, 2, 3, 0x3f800000, 0x3f800000), false)
	f.Add(words(1, 0, 1, 4, 2), true)
	f.Add(words(1, 0, 2, 2, 3, 3), false) // a source may have an edge of each relation
	f.Fuzz(func(t *testing.T, b []byte, some bool) {
		var within []Range
		if some {
			within = []Range{{2, 4}, {6, 7}}
		}
		asked := []uint32{0, 5, 9}
		got := table{indptr: []int64{0}}
		n, err := got.read(b, asked, within, 10)
		if err != nil {
			return
		}
		w := writer{weighted: got.weights != nil}
		for i := range n {
			sources, weights, degree := got.at(i)
			for j, u := range sources {
				if u < 0 || u >= 10 || j > 0 && sources[j-1] > u {
					t.Fatalf("row %d is %v", i, sources)
				}
			}
			if len(sources) > int(degree) {
				t.Fatalf("%d of %d entries", len(sources), degree)
			}
			w.add(asked[i], sources, weights, within)
		}
		// Degrees are those of the graph, which a part of a row does not tell.
		again := slices.Concat(w.head(), w.rows, w.sources, w.weights)
		for i := range n {
			copy(again[HeadBytes+RowBytes*i+4:][:4], b[HeadBytes+RowBytes*i+4:])
		}
		if !slices.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
	})
}

func FuzzQuestion(f *testing.F) {
	f.Add(words(all, 1, 3, 5, 6))
	f.Add(words(1, 0, 4, 2, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := readQuestion(b, 10)
		if err != nil {
			return
		}
		if q.within == nil && binary.LittleEndian.Uint32(b) != all {
			t.Fatal("no range is every range")
		}
		if again := q.append(nil); !slices.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
	})
}
