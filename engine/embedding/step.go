package embedding

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A step is the gradient of one update: first its parts, then their sum at the rows that they
// touch. Its memory is reused.
type step struct {
	// mine are messages with this node's parts as others take them: of each part its grain, how
	// many vertices it has, these, and the gradient of their rows. There is one message for all who
	// have the same rows. Others may still read those of the step before.
	mine [2][][]uint32
	turn int

	parts   []part
	at      []uint32 // of each row that is here: one more than its row in touched; 0: it is not touched
	touched []uint32 // places of rows, in the order of the sum
	sum     []float32
	rows    []float32 // of the touched vertices
	some    []float32 // the gradient of all vertices of a part
	goes    []int32   // of each of these: the message that has it; -1: none does
	filled  []filled  // of each message, while a part is added
	moments [][]float32
	over    []tensor.Matrix // moments
	undo    undo
}

// undo is what the touched rows were before the update, where rows are on some nodes each.
type undo struct {
	made    bool // the last update can be taken back
	rows    []float32
	moments [][]float32
}

// A part is the gradient of the rows that one group of seed vertices has read.
type part struct {
	grain    uint32
	vertices []uint32
	gradient []float32
}

// head is how many words of a part precede its vertices.
const head = 2

// filled is how far a part is written into a message.
type filled struct{ vertices, vertex, gradient int }

func (s *step) init(o *Options, rows, messages int) {
	s.at = make([]uint32, rows)
	s.filled = make([]filled, messages)
	for turn := range s.mine {
		s.mine[turn] = make([][]uint32, messages)
	}
	n := len(o.Optimizer.Moments())
	s.moments, s.over = make([][]float32, n), make([]tensor.Matrix, n)
}

// Begin begins a step, whose gradient has no parts yet.
func (t *Table) Begin() {
	if t == nil {
		return
	}
	t.turn, t.shared = 1-t.turn, false // a step that failed may have left it
	for i, message := range t.mine[t.turn] {
		t.mine[t.turn][i] = message[:0]
	}
	t.step.parts = t.step.parts[:0]
}

// Add adds a part to the gradient of the step: at the rows of some vertices, which lies on a
// device, an empty one of a pass that was cut short. Parts are added up in the order of their grains,
// and those of one grain in the order of the nodes, as they were added there.
func (t *Table) Add(d tensor.Device, grain int, vertices []uint32, gradient tensor.Matrix) {
	if gradient.None() {
		return
	}
	if t.learns != nil || t.held != nil {
		t.addSome(d, grain, vertices, gradient)
		return
	}
	at, n := len(t.mine[t.turn][0]), len(vertices)
	all := slices.Grow(t.mine[t.turn][0], head+n*(1+t.o.Columns))[:at+head+n*(1+t.o.Columns)]
	all[at], all[at+1] = uint32(grain), uint32(n)
	copy(all[at+head:], vertices)
	d.Read32(floats(all[at+head+n:]), gradient)
	t.mine[t.turn][0] = all
}

// addSome is Add where only some vertices have a learnt row, behind features, or where rows are on
// some nodes each.
func (t *Table) addSome(d tensor.Device, grain int, vertices []uint32, gradient tensor.Matrix) {
	columns := t.o.Columns
	t.some = slices.Grow(t.some[:0], len(vertices)*columns)[:len(vertices)*columns]
	d.Read32(t.some, gradient.View(0, len(vertices), t.o.Features, columns))
	clear(t.filled)
	t.goes = t.goes[:0]
	for _, v := range vertices {
		if t.learns != nil && !t.learns[v] {
			t.goes = append(t.goes, -1)
			continue
		}
		to := t.held.to(v)
		t.goes = append(t.goes, int32(to))
		t.filled[to].vertices++
	}
	mine := t.mine[t.turn]
	for to := range t.filled {
		f := &t.filled[to]
		if f.vertices == 0 {
			continue
		}
		at, n := len(mine[to]), head+f.vertices*(1+columns)
		mine[to] = slices.Grow(mine[to], n)[:at+n]
		mine[to][at], mine[to][at+1] = uint32(grain), uint32(f.vertices)
		f.vertex, f.gradient = at+head, at+head+f.vertices
	}
	for i, to := range t.goes {
		if to < 0 {
			continue
		}
		f := &t.filled[to]
		mine[to][f.vertex] = vertices[i]
		copy(floats(mine[to][f.gradient:][:columns]), t.some[i*columns:])
		f.vertex, f.gradient = f.vertex+1, f.gradient+columns
	}
}

// floats returns words as the numbers that they hold.
func floats(words []uint32) []float32 { return plain.Numbers[float32](plain.Bytes(words)) }

// Update updates the rows that the step has touched, and no others. steps is how many updates the
// job has made with this one.
func (t *Table) Update(rate float64, steps uint64) {
	if t == nil {
		return
	}
	if !t.shared {
		var err error
		if t.step.parts, err = t.partsOf(t.step.parts, t.mine[t.turn][0], 0); err != nil {
			panic(fmt.Sprintf("embedding: this node's own parts: %v", err)) // it has written them
		}
	}
	t.shared = false
	t.addUp()
	if t.held != nil {
		t.change()
		defer t.changed()
	}
	t.undo.made = t.held != nil
	n := len(t.touched) * t.o.Columns
	if n == 0 {
		return
	}
	t.step.rows = t.collect(t.step.rows, t.rows)
	for i := range t.moments {
		t.step.moments[i] = t.collect(t.step.moments[i], t.moments[i].rows)
		t.over[i] = tensor.OverF32(1, n, t.step.moments[i])
	}
	t.keep()
	rows := tensor.OverF32(1, n, t.step.rows)
	t.o.Optimizer.StepRows(t.device, rows, tensor.OverF32(1, n, t.sum), t.over, rate, steps)
	t.unsound = t.unsound || !t.device.Finite(rows)
	t.scatter(t.rows, t.step.rows)
	for i := range t.moments {
		t.unsound = t.unsound || !t.device.Finite(t.over[i])
		t.scatter(t.moments[i].rows, t.step.moments[i])
	}
}

// keep keeps what the touched rows were, so that Back can bring them back.
func (t *Table) keep() {
	if t.held == nil {
		return
	}
	t.undo.rows = append(t.undo.rows[:0], t.step.rows...)
	if t.undo.moments == nil {
		t.undo.moments = make([][]float32, len(t.moments))
	}
	for i := range t.moments {
		t.undo.moments[i] = append(t.undo.moments[i][:0], t.step.moments[i]...)
	}
}

// Back takes the last update back, and reports whether it did. It ends a run.
func (t *Table) Back() bool {
	if t == nil || !t.undo.made {
		return false
	}
	t.undo.made = false
	if t.end(); len(t.touched) == 0 {
		return true
	}
	t.scatter(t.rows, t.undo.rows)
	for i := range t.moments {
		t.scatter(t.moments[i].rows, t.undo.moments[i])
	}
	return true
}

// addUp sets touched and sum. Each vertex is added up by itself, in the order of the parts, so
// it does not matter which node has computed which grain.
func (t *Table) addUp() {
	slices.SortStableFunc(t.step.parts, func(a, b part) int { return cmp.Compare(a.grain, b.grain) })
	t.touched, t.sum = t.touched[:0], t.sum[:0]
	columns := t.o.Columns
	for _, p := range t.step.parts {
		for i, v := range p.vertices {
			g := p.gradient[i*columns:][:columns]
			place := t.held.place(v)
			at := t.step.at[place]
			if at == 0 {
				t.touched, t.sum = append(t.touched, uint32(place)), append(t.sum, g...)
				t.step.at[place] = uint32(len(t.touched))
				continue
			}
			for c, x := range t.sum[int(at-1)*columns:][:columns] {
				t.sum[int(at-1)*columns+c] = x + g[c]
			}
		}
	}
	for _, place := range t.touched {
		t.step.at[place] = 0
	}
}

// collect returns the touched rows, in memory that is reused.
func (t *Table) collect(to, all []float32) []float32 {
	to = to[:0]
	for _, place := range t.touched {
		to = append(to, t.row(all, int(place))...)
	}
	return to
}

// scatter sets the touched rows.
func (t *Table) scatter(all, from []float32) {
	for i, place := range t.touched {
		copy(t.row(all, int(place)), from[i*t.o.Columns:])
	}
}

// StepBytes returns the memory of a step, if this node adds so many rows and other nodes as many
// each.
func (t *Table) StepBytes(rows, nodes int) uint64 {
	if t == nil {
		return 0
	}
	return StepBytes(uint64(t.here()), t.o.Columns, rows, nodes, t.Apart(), t.o.Optimizer)
}

// StepBytes returns the memory of a step of a table of which so many rows are here, if each node adds a
// number of rows. apart: each node has the rows of some shards only.
func StepBytes(here uint64, columns, rows, nodes int, apart bool, of nn.OptimizerSpec) uint64 {
	if columns == 0 {
		return 0
	}
	each := 4 * uint64(rows) * uint64(1+columns)
	others, came := uint64(nodes-1)*each, uint64(0)
	if apart {
		// Of n owners' shards a node has those of two. Others ask for as many rows as it does:
		// an answer is on its way, and one is yet to be collected.
		const answers = 2
		others = others * 2 / uint64(nodes)
		came = each + 4*uint64(rows) + (1+answers)*each*uint64(nodes-2)/uint64(nodes)
	}
	touched := min(uint64(rows)*uint64(nodes), here) * (4 + 4*uint64(columns)*uint64(2+len(of.Moments())))
	if apart {
		touched += min(uint64(rows)*uint64(nodes), here) * 4 * uint64(columns) * uint64(1+len(of.Moments())) // undo
	}
	return (2*each + others + came + touched) * 5 / 4 // memory grows by a quarter at a time
}
