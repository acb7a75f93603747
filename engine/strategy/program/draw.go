package program

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// draws are batches that a program asks for beside those of epochs: of any vertices, by any
// fan-outs. No other node's program takes part in one.
type draws struct {
	slot  slot.Slot    // its memory holds the last batch
	lists *desk.Memory // of the last answer to own or know
}

// marks are what vertices that a program asks for are marked by.
var marks = map[string]graph.Mark{desk.Train: graph.Train, desk.Val: graph.Validation, desk.Test: graph.Test}

// draw answers by a batch of the vertices that the program names. It is valid until the next
// one. err is what is wrong with the question, and fatal an error with which the run ends.
func (m *method) draw(ctx context.Context, a *desk.Asking) (err, fatal error) {
	s := &m.draws.slot
	from, err := m.room.Of(a.Region)
	if err != nil {
		return err, nil
	}
	if s.Roots, err = m.rootsOf(s.Roots[:0], desk.Numbers[int64](from)); err != nil {
		return err, nil
	}
	s.Forget()
	s.Step = int(a.Number)
	s.Groups = slices.Grow(s.Groups[:0], 1)[:1]
	s.Groups[0].Group = deal.Group{Roots: s.Roots}
	fatal = m.run.Batches.With(ctx, func(h *slot.Worker) error { return m.fillDraw(ctx, h, s, a.Fanout) })
	if fatal != nil {
		return nil, fmt.Errorf("draw a batch of %d vertices: %w", len(s.Roots), fatal)
	}
	b := s.Own.(*handed)
	body := b.body
	body.Epoch, body.Step, body.Steps = frontier.AnyFanout, s.Step, 0
	if len(a.Fanout) == 0 { // there is nothing where a list of hops is to be
		body.HopEdges, body.HopFresh = []int{}, []int{}
	}
	a.Answer(desk.Answer{Body: body, Uses: []*desk.Memory{b.memory}})
	return nil, nil
}

// rootsOf appends vertices, which may be the roots of one batch.
func (m *method) rootsOf(to []uint32, vertices []int64) ([]uint32, error) {
	n := m.run.Data.About.Vertices
	for _, v := range vertices {
		if v < 0 || uint64(v) >= n {
			return to, fmt.Errorf("vertex %d is asked for, and the graph has %d, counted from 0", v, n)
		}
		to = append(to, uint32(v))
	}
	sorted := slices.Clone(to)
	slices.Sort(sorted)
	for i, v := range sorted[1:] {
		if v == sorted[i] {
			return to, fmt.Errorf("vertex %d is asked for twice in one batch: name each once", v)
		}
	}
	return to, nil
}

// fillDraw samples and gathers a batch.
func (m *method) fillDraw(ctx context.Context, h *slot.Worker, s *slot.Slot, fanouts []int) error {
	if h.Far != nil {
		h.Far.Tally = &s.Tally
	}
	g := &s.Groups[0]
	var err error
	if g.Labels, err = m.labelsOf(ctx, h.Data, g.Labels[:0], g.Roots, &s.Tally); err != nil {
		return err
	}
	before := h.Sampler.Fan(fanouts)
	defer h.Sampler.Fan(before)
	if err := h.Sampler.Sample(ctx, &g.Batch, frontier.AnyFanout, uint64(s.Step), g.Roots); err != nil {
		return err
	}
	s.Outermost()
	places, far, err := m.Sources.Find(ctx, s, frontier.AnyFanout)
	if err != nil {
		return err
	}
	return m.hand(h, s, places, far)
}

// labelsOf appends the labels of vertices that may have none.
func (m *method) labelsOf(ctx context.Context, data *dataset.Graph, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	if !m.run.Session.Alone() {
		return m.run.Session.Labels.AppendAny(ctx, to, vertices, tally)
	}
	for _, v := range vertices {
		var here bool
		if to, here = data.Target(to, v); !here {
			for range data.About.Words() {
				to = append(to, graph.NoLabel)
			}
		}
	}
	return to, nil
}

// own answers by the vertices of a part of the split that this node owns. Those of all nodes
// together are each vertex once.
func (m *method) own(a *desk.Asking) error {
	t := m.run
	var shards []*graph.Shard
	vertices, text := 0, 0
	named := false
	for i, s := range t.Data.Shards {
		if x := t.Session; !x.Alone() && x.Layout.Owners[i] != x.Work.Self {
			continue
		}
		o := &s.Originals
		if len(o.Ints) != s.Vertices && len(o.Offsets) != s.Vertices+1 {
			return errors.New("this node does not have the names of its vertices: have the dataset verified")
		}
		shards, named = append(shards, s), named || o.Offsets != nil
		for row := range m.rows(s, a.Part) {
			vertices++
			if o.Offsets != nil {
				text += int(o.Offsets[row+1] - o.Offsets[row])
			}
		}
	}
	l := newLayout(count{nodes: vertices, roots: vertices}, 0, 8, along{}) // numbers of vertices, and numbers or ends of names
	begin := l.bytes
	memory, err := m.list(begin + uint64(text))
	if err != nil {
		return err
	}
	numbers, second := desk.Numbers[int64](memory.Data[l.ids:][:8*vertices]), desk.Numbers[int64](memory.Data[l.labels:][:8*vertices])
	names, n := memory.Data[begin:begin], 0
	for _, s := range shards {
		for row := range m.rows(s, a.Part) {
			numbers[n] = int64(s.First) + int64(row)
			if named {
				names = s.Originals.Append(names, row)
				second[n] = int64(len(names))
			} else {
				second[n] = s.Originals.Ints[row]
			}
			n++
		}
	}
	region := func(at uint64, bytes int) *desk.Region {
		return &desk.Region{Memory: memory.ID, Offset: at, Bytes: uint64(bytes)}
	}
	body := desk.Owned{Type: "owned", NID: *region(l.ids, 8*vertices)}
	if named {
		body.Ends, body.Text = region(l.labels, 8*vertices), region(begin, text)
	} else {
		body.IDs = region(l.labels, 8*vertices)
	}
	a.Answer(desk.Answer{Body: body, Uses: []*desk.Memory{memory}})
	return nil
}

// list returns memory for an answer. That of the one before is gone.
func (m *method) list(bytes uint64) (memory *desk.Memory, err error) {
	m.shared.drop(m.draws.lists)
	m.draws.lists = nil
	if memory, err = m.shared.take(bytes); err == nil {
		m.draws.lists = memory
	}
	return memory, err
}

// know answers by the labels and the marks of all vertices, wherever they are.
func (m *method) know(ctx context.Context, a *desk.Asking) (err, fatal error) {
	const some = 1 << 16
	t := m.run
	n, words := int(t.Data.About.Vertices), t.Data.About.Words()
	labels := 4 * uint64(n) * uint64(words)
	if words > 1 && labels > desk.MostBytes {
		return fmt.Errorf("the labels of all %d vertices in %d columns take %s, and %s is the most: take those of batches", n, words, budget.Format(labels), budget.Format(desk.MostBytes)), nil
	}
	second := (labels + desk.Align - 1) / desk.Align * desk.Align
	memory, err := m.list(second + uint64(n))
	if err != nil {
		return err, nil
	}
	y, marks := desk.Numbers[int32](memory.Data[:labels]), memory.Data[second:][:n]
	s := &m.draws.slot
	s.Forget()
	vertices, found := make([]uint32, 0, some), make([]int32, 0, some)
	for first := 0; first < n; first += some {
		vertices = vertices[:0]
		for v := first; v < min(first+some, n); v++ {
			vertices = append(vertices, uint32(v))
		}
		if found, err = m.labelsOf(ctx, t.Data, found[:0], vertices, &s.Tally); err != nil {
			return nil, err
		}
		copy(y[first*words:], found)
		if found, err = m.marksOf(ctx, found[:0], vertices, &s.Tally); err != nil {
			return nil, err
		}
		for i, mark := range found {
			marks[first+i] = byte(mark)
		}
	}
	a.Answer(desk.Answer{Body: desk.Known{
		Type: "known", Y: desk.Region{Memory: memory.ID, Bytes: labels}, Marks: desk.Region{Memory: memory.ID, Offset: second, Bytes: uint64(n)},
	}, Uses: []*desk.Memory{memory}})
	return nil, nil
}

// marksOf appends the marks of vertices.
func (m *method) marksOf(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	if !m.run.Session.Alone() {
		return m.run.Session.Labels.AppendMarks(ctx, to, vertices, tally)
	}
	for _, v := range vertices {
		mark, _ := m.run.Data.Mark(v)
		to = append(to, mark)
	}
	return to, nil
}

// rows yields the rows of a shard that are in a part of the split.
func (m *method) rows(s *graph.Shard, part string) func(yield func(row int) bool) {
	return func(yield func(row int) bool) {
		marked := m.run.Data.Split < len(s.Marks)
		for row := range s.Vertices {
			if part != desk.All && !(marked && s.Marks[m.run.Data.Split][row] == marks[part]) {
				continue
			}
			if !yield(row) {
				return
			}
		}
	}
}
