package p3

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// Columns are those of the rows that a store gives, to the last bit, whoever has them,
// in answers of any size.
func TestColumnsAreThoseOfRows(t *testing.T) {
	for _, k := range []kindOf{denseKind, scaledKind, halfKind, sparseKind, onesKind, countsKind} {
		for _, most := range []int{60, 400, mostAnswer} {
			for _, columns := range []int{1, 7} {
				j := newJob(specs()["gcn"], k, columns)
				whole, err := features.Open(j.shards, k.how)
				if err != nil {
					t.Fatal(err)
				}
				l := j.layout(2)
				net := loopback.New(2)
				sources := []*Source{Register(net.Node(0)), Register(net.Node(1))}
				for i, s := range sources {
					s.most = most
					net.Node(i).Open()
					if err := s.Ready(j.part(t, l, i), ""); err != nil {
						t.Fatal(err)
					}
				}
				for i, s := range sources {
					w := peer.Work{Nodes: []string{"n0", "n1"}, Self: i, Owners: l.Owners}
					c, err := s.Columns(t.Context(), w, l, 1<<30, nil)
					if err == nil {
						err = s.Bring(t.Context(), c, w, nil)
					}
					if err != nil {
						t.Fatalf("%+v, answers of %d bytes: %v", k, most, err)
					}
					sameRows(t, c, whole)
				}
			}
		}
	}
}

// part is the store of a node.
func (j *job) part(t testing.TB, l peer.Layout, node int) *features.Store {
	t.Helper()
	mine, stats := j.held(l, node)
	store, err := features.OpenPart(mine, stats, j.kind.how)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func sameRows(t *testing.T, c *Columns, whole *features.Store) {
	t.Helper()
	if c.cols == 0 {
		return
	}
	d := reference.New()
	a := arena(t, d)
	var vertices []uint32
	for v := range whole.Vertices() {
		vertices = append(vertices, v)
	}
	n := len(vertices)
	want, got := a.Alloc(tensor.F64, n, whole.Columns()), a.Alloc(tensor.F64, n, c.cols)
	if whole.Sparse() {
		var rows features.Rows
		whole.Fill(&rows, vertices, false, nil)
		d.Densify(want, &rows.CSR)
		var p part
		c.fill(&p, c.span, vertices)
		p.rebase(c.span)
		d.Densify(got, &p.CSR)
	} else {
		whole.Dense(d, a, want, vertices, nil)
		c.dense(d, a, got, vertices)
	}
	for row := range n {
		for column := range c.cols {
			a, b := got.F64()[row*got.Stride+column], want.F64()[row*want.Stride+c.first+column]
			if a != b {
				t.Fatalf("vertex %d has %v in column %d in place of %v", row, a, c.first+column, b)
			}
		}
	}
	if c.Bytes() == 0 {
		t.Error("columns take no memory")
	}
}

func TestColumnsThatDoNotFit(t *testing.T) {
	for _, k := range []kindOf{denseKind, sparseKind} {
		j := newJob(specs()["gcn"], k, 50)
		s, err := Alone(j.part(t, j.layout(1), 0), "")
		if err != nil {
			t.Fatal(err)
		}
		w := peer.Work{Nodes: []string{"n0"}}
		if _, err := s.Columns(t.Context(), w, j.layout(1), 1<<20, nil); err != nil {
			t.Error(err)
		}
		if _, err := s.Columns(t.Context(), w, j.layout(1), 1000, nil); err == nil || !strings.Contains(err.Error(), "columns of the features of all vertices take") {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func TestModelsWithoutFront(t *testing.T) {
	for model, want := range map[string]string{"gcnii": "not linear", "resgcn": "not linear"} {
		spec := nn.Defaults(model)
		m, err := nn.New(spec, 5, classes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Options{Model: m})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "choose another strategy, such as leap") {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// What others ask is checked.
func TestQuestionsAreChecked(t *testing.T) {
	j := newJob(specs()["gcn"], denseKind, 7)
	l := j.layout(2)
	net := loopback.New(2)
	s := Register(net.Node(0))
	net.Node(0).Open()
	if err := s.Ready(j.part(t, l, 0), ""); err != nil {
		t.Fatal(err)
	}
	here := l.Firsts[1] // of a shard that node 0 has
	if l.Owners[1] != 0 {
		t.Fatal("the layout is another")
	}
	good := question{here, 3, span{2, 4}}
	ask := func(q question, change func(q *peer.Query)) error {
		query := peer.Query{Service: peer.Columns, Kind: peer.Shard, Part: s.form.Code(), Body: q.body(), Limit: 1 << 20}
		if change != nil {
			change(&query)
		}
		_, err := net.Node(1).Ask(t.Context(), 0, query, nil)
		return err
	}
	if err := ask(good, nil); err != nil {
		t.Error(err)
	}
	bad := map[string]error{
		"of another form":    ask(good, func(q *peer.Query) { q.Part++ }),
		"short":              ask(good, func(q *peer.Query) { q.Body = q.Body[:15] }),
		"long":               ask(good, func(q *peer.Query) { q.Body = append(q.Body, 0) }),
		"of no column":       ask(question{here, 3, span{2, 0}}, nil),
		"of columns beyond":  ask(question{here, 3, span{2, 6}}, nil),
		"of vertices beyond": ask(question{here, 1 << 20, span{0, 1}}, nil),
		"that overflows":     ask(question{math.MaxUint32, math.MaxUint32, span{0, 1}}, nil),
		"of another's":       ask(question{l.Firsts[0], 1, span{0, 1}}, nil),
	}
	s.most = 30
	bad["for too much"] = ask(good, nil)
	for what, err := range bad {
		if !errors.Is(err, peer.ErrRefused) {
			t.Errorf("a question %s: %v", what, err)
		}
	}
}

func TestQuestionsWaitForData(t *testing.T) {
	net := loopback.New(2)
	Register(net.Node(0))
	net.Node(0).Open()
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	cancel(over)
	_, err := net.Node(1).Ask(ctx, 0, peer.Query{Service: peer.Columns}, nil)
	if !errors.Is(err, over) {
		t.Error(err)
	}
}

// Answers that are wrong are errors, and leave nothing that later use trips over.
func FuzzSparseColumns(f *testing.F) {
	row := func(n uint32, columns ...uint16) (b []byte) {
		b = binary.LittleEndian.AppendUint32(b, n)
		for _, c := range columns {
			b = binary.LittleEndian.AppendUint16(b, c)
		}
		return b
	}
	f.Add(append([]byte{0, 0, 0, 0}, row(2, 0, 4)...))
	f.Add(append([]byte{0, 0, 0, 0}, append(row(0), row(1, 4)...)...))
	f.Add(append([]byte{1, 0, 0, 0}, append(row(1, 3), 1, 2, 3, 4)...))
	f.Add(append([]byte{0, 0, 0, 0}, row(2, 4, 4)...))
	f.Add(append([]byte{0, 0, 0, 0}, row(1, 5)...))
	f.Add(append([]byte{0, 0, 0, 0}, row(math.MaxUint32)...))
	f.Add([]byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := &Columns{span: span{10, 5}, sparse: true, layout: peer.Layout{Firsts: []uint32{0, 3}, Owners: []int{0}}}
		c.shards = []shard{{indptr: []int64{0}}}
		n, err := c.take(0, question{0, 3, c.span}, answer)
		if err != nil {
			return
		}
		c.valued = c.shards[0].values != nil
		var p part
		for v := range uint32(n) {
			c.fill(&p, c.span, []uint32{v})
			for i, column := range p.indices {
				if column < 10 || column >= 15 || i > 0 && column <= p.indices[i-1] || c.valued && len(p.Values) != len(p.indices) {
					t.Fatalf("columns %v, values %v", p.indices, p.Values)
				}
			}
			p.rebase(c.span)
		}
	})
}

// What others say of their blocks is checked: whatever passes can be computed.
func FuzzBlocks(f *testing.F) {
	j := newJob(specs()["gcn"], denseKind, 3)
	m, err := nn.New(j.spec, 3, classes)
	if err != nil {
		f.Fatal(err)
	}
	var b sample.Batch
	if err := j.sampler(f, m).Sample(f.Context(), &b, 1, 1, []uint32{3, 1, 7}); err != nil {
		f.Fatal(err)
	}
	f.Add(appendBlock(nil, 0, &b.Blocks[0]))
	f.Add(appendBlock(appendBlock(nil, 1, &b.Blocks[0]), 2, &b.Blocks[1]))
	b.Blocks[0].Values = nil
	f.Add(appendBlock(nil, 3, &b.Blocks[0]))
	f.Add(make([]byte, groupSize))
	o := bound{vertices: j.shards[0].Total, edges: true, groups: 4}
	f.Fuzz(func(t *testing.T, message []byte) {
		message = append(room(nil, len(message))[:0], message...) // aligned
		var r received
		for range o.groups {
			_, rest, err := r.read(message, o)
			if err != nil {
				return
			}
			r.Transpose()
			d := reference.New()
			x := tensor.OverF32(r.Cols, 1, make([]float32, r.Cols))
			y, err := d.NewArena(0)
			if err != nil {
				t.Fatal(err)
			}
			wide, sums := y.Alloc(tensor.F64, r.Cols, 1), y.Alloc(tensor.F64, r.Rows, 1)
			d.Combine(wide, 1, x, 0, tensor.Matrix{})
			d.Aggregate(sums, &r.CSR, tensor.Matrix{}, wide, tensor.Mean, false, nil)
			d.AggregateBack(wide, &r.CSR, tensor.Matrix{}, sums, tensor.Mean, false)
			if message = rest; len(message) == 0 {
				return
			}
		}
	})
}

func TestBlocksThatAreWrong(t *testing.T) {
	j := newJob(specs()["gcn"], denseKind, 3)
	var b sample.Batch
	if err := j.sampler(t, j.model(t)).Sample(t.Context(), &b, 1, 1, []uint32{3, 1, 7}); err != nil {
		t.Fatal(err)
	}
	good := appendBlock(room(nil, 0), 0, &b.Blocks[0])
	o := bound{vertices: j.shards[0].Total, edges: true, groups: 1}
	rows, cols, entries := b.Blocks[0].Rows, b.Blocks[0].Cols, b.Blocks[0].Entries()
	vertices, counts := groupSize, groupSize+4*cols
	indices := counts + 4*rows
	var r received
	if _, rest, err := r.read(good, o); err != nil || len(rest) > 0 || r.Entries() != entries {
		t.Fatal(err, len(rest))
	}
	for what, at := range map[string]int{"rows": 4, "sources": 8, "entries": 12, "values": 16, "a vertex": vertices, "a count": counts, "an edge": indices} {
		for _, n := range []uint32{math.MaxUint32, 1 << 31, 1 << 20} {
			wrong := append(room(nil, len(good))[:0], good...)
			binary.LittleEndian.PutUint32(wrong[at:], n)
			if _, _, err := r.read(wrong, o); err == nil {
				t.Errorf("%s of %d was taken", what, n)
			}
		}
	}
	if _, _, err := r.read(good[:len(good)-4], o); err == nil {
		t.Error("a message that is cut was taken")
	}
	if _, _, err := r.read(good, bound{vertices: o.vertices}); err == nil {
		t.Error("edges were taken for a model without hops")
	}
	for _, c := range []struct{ groups, bytes uint64 }{{2, 100}, {1, 0}, {0, 1}, {1, mostBlock + 1}, {1, math.MaxUint64}} {
		head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(c.groups)), c.bytes)
		if _, _, err := o.readHead(head); err == nil {
			t.Errorf("%d groups in %d bytes were taken", c.groups, c.bytes)
		}
	}
}

// TestBlocksBeyondTheirRoots has a node send more than its roots and the fan-outs allow: nothing is
// allocated for that, and no step begins with it.
func TestBlocksBeyondTheirRoots(t *testing.T) {
	j, roots := newJob(specs()["gcn"], denseKind, 3), []uint32{3, 30}
	o := bound{vertices: 100, edges: true, groups: 1, stored: 500, fanouts: []int{3, 2}, hops: 2}
	for roots, want := range map[int]limit{0: {}, 1: {0, 5, 20, 15}, 90: {0, 100, 100, 300}} {
		if got := o.limit(0, roots); got != want {
			t.Errorf("%d roots: %+v, want %+v", roots, got, want)
		}
	}
	if o.fanouts = []int{0, 2}; o.limit(7, 1) != (limit{7, 100, 100, 300}) {
		t.Errorf("with all neighbours: %+v", o.limit(7, 1))
	}
	all := int(j.shards[0].Total)
	b := sample.Block{CSR: tensor.CSR{Rows: all, Cols: all, Indptr: make([]int64, all+1)}}
	for v := range all {
		b.Vertices = append(b.Vertices, uint32(v))
	}
	block := appendBlock(room(nil, 0), 0, &b)
	for name, c := range map[string]struct {
		groups uint32
		bytes  uint64
	}{"bytes": {1, 1 << 20}, "groups": {0, 0}, "a block": {1, uint64(len(block))}} {
		tb := j.sit(t, 2)
		head := exchange.Tag{Lane: exchange.LaneBlock}
		body := head
		body.Index = 1
		tb.seats[1].exchange.Offer(head, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, c.groups), c.bytes))
		tb.seats[1].exchange.Offer(body, block)
		err := tb.seats[0].ahead(t.Context(), 0, 0, roots)
		if has := cap(tb.seats[0].batch.nodes[1].message); err == nil || has > 1<<14 {
			t.Errorf("%s: %v, and room for %d bytes", name, err, has)
		}
	}
}

// FuzzQuestion asks a node whatever a peer may ask. It refuses, or sends what the asker takes.
func FuzzQuestion(f *testing.F) {
	j := newJob(specs()["gcn"], sparseKind, 5)
	s, err := Alone(j.part(f, j.layout(1), 0), "")
	if err != nil {
		f.Fatal(err)
	}
	total := j.shards[0].Total
	f.Add(s.form.Code(), question{1, 3, span{1, 2}}.body())
	f.Add(s.form.Code(), question{total, 1, span{0, 5}}.body())
	f.Add(s.form.Code(), question{0, math.MaxUint32, span{5, 1}}.body())
	f.Add(s.form.Code()+1, []byte{1})
	f.Fuzz(func(t *testing.T, part uint32, body []byte) {
		q := peer.Query{Part: part, Body: body}
		err := s.answer(t.Context(), 0, q, func(parts ...[]byte) error {
			asked, err := s.read(&q)
			if err != nil {
				return err
			}
			if asked.first+asked.rows > total || asked.columns.first+asked.columns.cols > 5 || !bytes.Equal(asked.body(), body) {
				t.Fatalf("%v is read as %+v", body, asked)
			}
			return nil
		})
		if err != nil && !errors.Is(err, peer.ErrRefused) {
			t.Fatal(err)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 128})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != headSize { // else the exchange has refused it
			return
		}
		groups, size, err := bound{groups: 4}.readHead(b)
		if err == nil && (groups < 0 || groups > 4 || size < 0 || size > mostBlock) {
			t.Fatalf("%d groups in %d bytes", groups, size)
		}
	})
}
