package program

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// slack is by how much memory of a batch is larger than the first batch that it is for: a
// quarter.
const slack = 4

// handed is a batch as a program gets it. A slot has one, whose memory is reused.
type handed struct {
	memory *desk.Memory // nil until the slot's first batch
	body   desk.Batch
}

// count is how much there is in a batch.
type count struct{ nodes, edges, roots int }

// A layout is where the parts of a batch lie in its memory.
type layout struct {
	count
	along
	columns, label int // of x; bytes of each root's label
	// Offsets, and the size of all.
	ids, x, pairs, labels, types, weights, rows, bytes uint64
}

// newLayout lays out a batch whose seed vertices each have a label of so many bytes.
func newLayout(n count, columns, label int, of along) layout {
	l := layout{count: n, along: of, columns: columns, label: label}
	take := func(bytes int) (at uint64) {
		at = l.bytes
		l.bytes += (uint64(bytes) + desk.Align - 1) / desk.Align * desk.Align
		return at
	}
	l.ids = take(8 * n.nodes)
	l.labels = take(label * n.roots)
	l.pairs = take(16 * n.edges)
	l.x = take(4 * n.nodes * columns)
	if of.relations > 0 {
		l.types = take(8 * n.edges)
	}
	if of.weighted {
		l.weights = take(4 * n.edges)
	}
	l.rows = take(4 * n.edges * of.columns)
	return l
}

// labelBytes returns how many bytes a program gets of a seed vertex's targets: its class as an
// int64, or a float32 for each column.
func labelBytes(of *dataset.About) int {
	if of.Targets == graph.OneClass {
		return 8
	}
	return 4 * of.Words()
}

// handing implements the layers of batched.Batched: there is no pass, and the input of a
// group lies in shared memory.
type handing struct {
	batched.FromRows
	run *train.Trainer
}

// Input implements layers.
func (h handing) Input(o *slot.Outline, group int) (bytes, rows uint64) {
	g := &o.Groups[group]
	edges := 0
	for _, b := range g.Blocks {
		edges += b.Entries
	}
	about := &h.run.Data.About
	bytes = newLayout(count{g.Inputs(), edges, len(g.Roots)}, about.Features, labelBytes(about), alongOf(h.run)).bytes
	if h.run.Data.Features.Sparse() {
		own, _ := h.FromRows.Input(o, group)
		bytes += own
	}
	return bytes + bytes/slack, 0
}

// Forecast implements layers.
func (handing) Forecast(*train.Learner, *slot.Outline, int) (arena, beside int) { return 0, 0 }

// Prepare implements train.Method: what is drawn and gathered is put where the program reads
// it.
func (m *method) Prepare(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	p := &m.run.Phases
	defer pprof.SetGoroutineLabels(p.Other)
	pprof.SetGoroutineLabels(p.Sample)
	start := time.Now()
	if err := m.Draw(ctx, h, s, epoch); err != nil {
		return err
	}
	sampled := time.Now()
	pprof.SetGoroutineLabels(p.Gather)
	s.Outermost()
	places, far, err := m.Sources.Find(ctx, s, epoch)
	if err == nil {
		err = m.hand(h, s, places, far)
	}
	if err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, s.Step+1, err)
	}
	s.Sampling, s.Gathering = sampled.Sub(start), time.Since(sampled)
	return nil
}

// along returns what the program is given of edges: nothing if it would not know of it.
func (m *method) along() along {
	if !m.reader.form.Edges {
		return along{}
	}
	return alongOf(m.run)
}

// hand fills the shared memory of a slot.
func (m *method) hand(h *slot.Worker, s *slot.Slot, places [][]uint32, far *features.Far) error {
	b, _ := s.Own.(*handed)
	if b == nil {
		b = new(handed)
		s.Own = b
	}
	body := &b.body
	body.HopNodes, body.HopEdges, body.HopFresh = body.HopNodes[:0], body.HopEdges[:0], body.HopFresh[:0]
	body.FreshFirst = m.reader.form.FreshFirst
	at := -1
	for i := range s.Groups {
		if len(s.Groups[i].Roots) == 0 {
			continue
		}
		if at >= 0 {
			return fmt.Errorf("a node has the seed vertices of a step in one group, and not in %d", len(s.Groups))
		}
		at = i
	}
	hops, about := m.run.Learners[0].Model.Hops(), &m.run.Data.About
	if at < 0 {
		body.HopNodes = append(body.HopNodes, make([]int, hops+1)...)
		body.HopEdges = append(body.HopEdges, make([]int, hops)...)
		body.HopFresh = append(body.HopFresh, make([]int, hops)...)
		return m.place(b, newLayout(count{}, about.Features, labelBytes(about), m.along()))
	}
	g := &s.Groups[at]
	l := newLayout(count{len(s.Sets[at]), b.count(g), len(g.Roots)}, about.Features, labelBytes(about), m.along())
	if err := m.place(b, l); err != nil {
		return err
	}
	data := b.memory.Data
	ids := desk.Numbers[int64](data[l.ids:][:8*l.nodes])
	for i, v := range s.Sets[at] {
		ids[i] = int64(v)
	}
	if about.Targets == graph.OneClass {
		labels := desk.Numbers[int64](data[l.labels:][:8*l.roots])
		for i, y := range g.Labels {
			labels[i] = int64(y)
		}
	} else { // each word is a float32, and graph.NoLabel is a NaN
		copy(desk.Numbers[int32](data[l.labels:][:l.label*l.roots]), g.Labels)
	}
	l.edgesIn(data).write(g.Batch.Blocks, body.FreshFirst)
	return m.features(h, g, desk.Numbers[float32](data[l.x:][:4*l.nodes*l.columns]), places[at], far)
}

// count sets how many vertices and edges each hop has, and returns all edges.
func (b *handed) count(g *slot.Group) (edges int) {
	before := 0
	b.body.HopNodes = append(b.body.HopNodes, len(g.Roots))
	for _, block := range slices.Backward(g.Batch.Blocks) {
		n := int(block.Indptr[block.Rows] - block.Indptr[0])
		b.body.HopEdges = append(b.body.HopEdges, n)
		b.body.HopFresh = append(b.body.HopFresh, int(block.Indptr[block.Rows]-block.Indptr[before]))
		b.body.HopNodes = append(b.body.HopNodes, block.Cols-block.Rows)
		before, edges = block.Rows, edges+n
	}
	return edges
}

// place has the memory of a batch be large enough, and says where its parts lie.
func (m *method) place(b *handed, l layout) (err error) {
	if b.memory == nil || uint64(len(b.memory.Data)) < l.bytes {
		m.shared.drop(b.memory)
		if b.memory, err = m.shared.take(l.bytes + l.bytes/slack); err != nil {
			return err
		}
	}
	part := func(at, bytes uint64) desk.Region { return desk.Region{Memory: b.memory.ID, Offset: at, Bytes: bytes} }
	n := uint64(l.edges)
	body := &b.body
	body.Type, body.Roots, body.Nodes = "batch", l.roots, l.nodes
	body.NID, body.Y = part(l.ids, 8*uint64(l.nodes)), part(l.labels, uint64(l.label)*uint64(l.roots))
	body.Edges, body.X = part(l.pairs, 16*n), part(l.x, 4*uint64(l.nodes)*uint64(l.columns))
	body.EdgeType, body.EdgeWeight, body.EdgeAttr = nil, nil, nil
	if l.relations > 0 {
		body.EdgeType = new(part(l.types, 8*n))
	}
	if l.weighted {
		body.EdgeWeight = new(part(l.weights, 4*n))
	}
	if l.along.columns > 0 {
		body.EdgeAttr = new(part(l.rows, 4*n*uint64(l.along.columns)))
	}
	return nil
}

// features sets x to the rows at these places.
func (m *method) features(h *slot.Worker, g *slot.Group, x []float32, places []uint32, far *features.Far) error {
	store := h.Data.Features
	if store.Sparse() {
		store.Fill(&g.Sparse, places, false, far)
		spread(x, &g.Sparse.CSR)
		return nil
	}
	h.Scratch.Reset()
	if h.Device.Type() == tensor.F32 {
		store.Dense(h.Device, h.Scratch, tensor.OverF32(len(places), store.Columns(), x), places, far)
		return nil
	}
	wide := h.Scratch.Alloc(h.Device.Type(), len(places), store.Columns())
	store.Dense(h.Device, h.Scratch, wide, places, far)
	h.Device.Read32(x, wide)
	return nil
}

// spread sets x to sparse rows.
func spread(x []float32, rows *tensor.CSR) {
	clear(x)
	for r := range rows.Rows {
		to := x[r*rows.Cols:][:rows.Cols]
		from, end := rows.Indptr[r], rows.Indptr[r+1]
		for i, column := range rows.Indices[from:end] {
			if rows.Values == nil {
				to[column] = 1
			} else {
				to[column] = rows.Values[from+int64(i)]
			}
		}
	}
}
