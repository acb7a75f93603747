package gather

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/peer"
)

func ids(vertices ...uint32) []byte {
	var b []byte
	for _, v := range vertices {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// row is a sparse row that says that it has so many entries.
func row(entries uint32, columns ...uint16) []byte {
	b := ids(entries)
	for _, c := range columns {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// liar makes a mesh of two nodes, of which the second answers anything.
func liar(t testing.TB, k kind, how string, answer func(q peer.Query) []byte) *mesh {
	m := meshOf(t, graphOf(k, 10, 10), 2, []int{0, 1}, how, "")
	m.net.Node(1).Answer(peer.Rows, func(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
		return reply(answer(q))
	})
	return m
}

// TestWrongAnswers are errors that name who gave them.
func TestWrongAnswers(t *testing.T) {
	dense, values, ones := kinds[0], kinds[3], kinds[5]
	for name, c := range map[string]struct {
		kind   kind
		how    string
		answer []byte
		say    string
	}{
		"dense, nothing":       {dense, "none", nil, "the answer of node n1 is wrong: it has 0 bytes where 2 rows take 72"},
		"dense, too short":     {dense, "none", make([]byte, 71), "71 bytes"},
		"dense, a row only":    {dense, "none", make([]byte, 36), "36 bytes"},
		"dense, too long":      {dense, "none", make([]byte, 73), "ask node n1"},
		"dense, scaled":        {dense, "row", make([]byte, 72), "72 bytes where 2 rows take 80"},
		"sparse, nothing":      {values, "none", nil, "the answer of node n1 is wrong: it has no row"},
		"sparse, cut head":     {values, "none", ids(0, 0)[:7], "it ends within a row"},
		"sparse, cut columns":  {values, "none", row(2, 0), "it ends within a row"},
		"sparse, cut values":   {values, "none", row(1, 0), "it ends within a row"},
		"sparse, no scale":     {ones, "row", ids(0), "it ends within a row"},
		"sparse, 3 rows":       {ones, "none", ids(0, 0, 0), "it has more rows than were asked for"},
		"sparse, 10 entries":   {ones, "none", row(10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), "it has a row of 10 entries in 9 columns"},
		"sparse, 2^32 entries": {ones, "none", ids(1<<32 - 1), "entries in 9 columns"},
		"sparse, column 9":     {ones, "none", append(row(1, 9), row(0)...), "node n1 is wrong: it has column 9"},
		"sparse, column -1":    {ones, "none", append(row(1, 1<<16-1), row(0)...), "it has column 65535"},
		"sparse, falling":      {ones, "none", append(row(2, 3, 2), row(0)...), "it has column 2 in a row"},
		"sparse, twice":        {ones, "none", append(row(2, 3, 3), row(0)...), "it has column 3 in a row"},
		"sparse, long":         {ones, "none", make([]byte, 200), "ask node n1"},
	} {
		m := liar(t, c.kind, c.how, func(peer.Query) []byte { return c.answer })
		var r Rows
		err := m.sources[0].Gather(t.Context(), &r, [][]uint32{{12, 3, 15}}, 1, 0, Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "node n1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongQuestions are refused.
func TestWrongQuestions(t *testing.T) {
	m := meshOf(t, graphOf(kinds[0], 10, 10), 2, []int{0, 1}, "none", "")
	m.sources[1].most = most{40, 36 * 5}
	code := m.sources[1].form.Code()
	scaled, err := features.Open(m.shards, "row")
	if err != nil {
		t.Fatal(err)
	}
	other, err := scaled.Form("")
	if err != nil || other.Code() == code {
		t.Fatal(other, err)
	}
	for name, c := range map[string]struct {
		part uint32
		body []byte
		say  string
	}{
		"half an id":      {code, ids(12)[:3], "3 bytes"},
		"too many":        {code, make([]byte, 44), "44 bytes"},
		"too many rows":   {code, ids(10, 11, 12, 13, 14, 15), "6 rows"},
		"not here":        {code, ids(12, 3), "the features of vertex 3 are not here"},
		"beyond":          {code, ids(20), "vertex 20"},
		"far beyond":      {code, ids(1<<32 - 1), "vertex 4294967295"},
		"another meaning": {other.Code(), ids(12), "all nodes need the same settings"},
	} {
		q := peer.Query{Service: peer.Rows, Kind: peer.Feature, Part: c.part, Body: c.body, Limit: 1 << 20}
		_, err := m.net.Node(0).Ask(t.Context(), 1, q, nil)
		if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An answer is no larger than what the asker takes, and is charged for, where rows are copied.
	short := meshOf(t, graphOf(kinds[0], 10, 10), 2, []int{0, 1}, "row", "")
	of := short.sources[1].form
	for rows, want := range map[int]bool{1: true, 2: false} {
		q := peer.Query{Part: of.Code(), Body: ids(12, 13)[:4*rows], Limit: of.RowBytes()}
		err := short.sources[1].answer(t.Context(), 0, q, func(...[]byte) error { return nil })
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "2 rows are more than the") {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
	sparse := meshOf(t, graphOf(kinds[3], 10, 10), 2, []int{0, 1}, "none", "")
	sparse.sources[1].most.answer = 8
	err = sparse.sources[0].Gather(t.Context(), &Rows{}, [][]uint32{{12}}, 1, 0, Options{}, nil)
	if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "the row of vertex 12 takes more than the 8 bytes") {
		t.Error(err)
	}
}

// TestOtherMemory: answers may come in memory of their own.
func TestOtherMemory(t *testing.T) {
	for _, k := range kinds {
		m := meshOf(t, graphOf(k, 10, 10, 10), 3, []int{0, 1, 2}, "row", "")
		m.sources[0].peers = &copies{m.net.Node(0)}
		var r Rows
		for _, sets := range [][][]uint32{{{12, 3, 15, 28}}, {{25, 9}, {13}}} {
			m.gather(0, &r, sets, Options{}, nil)
			m.checkRows(t, 0, &r, sets)
		}
	}
}

type copies struct{ peer.Peers }

func (p *copies) Ask(ctx context.Context, node int, q peer.Query, _ []byte) ([]byte, error) {
	got, err := p.Peers.Ask(ctx, node, q, nil)
	return bytes.Clone(got), err
}

// FuzzQuestion: no question ends a node, and what is answered is what was asked for.
func FuzzQuestion(f *testing.F) {
	f.Add(uint32(0), ids(12, 15, 12))
	f.Add(uint32(0), ids(12, 3))
	f.Add(uint32(1), ids(12))
	f.Add(uint32(0), []byte{12, 0, 0})
	f.Add(uint32(0), []byte{})
	var meshes []*mesh
	for _, k := range kinds {
		meshes = append(meshes, meshOf(f, graphOf(k, 10, 10), 2, []int{0, 1}, "row", ""))
	}
	f.Fuzz(func(t *testing.T, part uint32, body []byte) {
		for _, m := range meshes {
			s := m.sources[1]
			q := peer.Query{Part: s.form.Code() ^ part, Body: body}
			var answer []byte
			err := s.answer(t.Context(), 0, q, func(parts ...[]byte) error {
				answer = slices.Concat(parts...)
				return nil
			})
			switch {
			case err != nil && !errors.Is(err, peer.ErrRefused):
				t.Fatal(err)
			case err == nil && !s.form.Sparse() && len(answer) != len(body)/4*s.form.RowBytes():
				t.Fatalf("%d bytes for %d", len(answer), len(body))
			case err == nil && s.form.Sparse():
				if n, err := s.form.Count(answer, len(body)/4); err != nil || n != len(body)/4 {
					t.Fatal(n, err)
				}
			}
		}
	})
}

// FuzzAnswer: no answer ends a node; what is taken can be read.
func FuzzAnswer(f *testing.F) {
	f.Add(make([]byte, 80))
	f.Add(append(ids(1, 0x3f800000), 3, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(append(ids(2, 0x3f800000), 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(ids(1<<32-1, 0, 0))
	var answer []byte
	var meshes []*mesh
	for _, k := range kinds {
		meshes = append(meshes, liar(f, k, "row", func(peer.Query) []byte { return answer }))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		answer = b
		for _, m := range meshes {
			var r Rows
			sets := [][]uint32{{12, 3, 15}}
			if m.sources[0].Gather(t.Context(), &r, sets, 1, 0, Options{}, nil) != nil || !m.whole.Sparse() {
				continue
			}
			var rows features.Rows
			m.stores[0].Fill(&rows, r.Places[0], true, &r.Far)
			if rows.Rows != 3 || int(rows.Indptr[3]) != len(rows.Indices) || len(rows.Values) != len(rows.Indices) {
				t.Fatal(rows.CSR)
			}
		}
	})
}
