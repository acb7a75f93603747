package embedding

import (
	"cmp"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A step is the gradient of one update: first its parts, then their sum at the rows that they
// touch. Its memory is reused.
type step struct {
	// mine are this node's parts as others take them: of each its grain, how many vertices it
	// has, these, and the gradient of their rows. Others may still read the one of the step
	// before.
	mine [2][]uint32
	turn int

	parts   []part
	place   []uint32 // of each vertex: one more than its row in touched; 0: it is not touched
	touched []uint32 // vertices, in the order of the sum
	sum     []float32
	rows    []float32 // of the touched vertices
	some    []float32 // the gradient of all vertices of a part
	moments [][]float32
	over    []tensor.Matrix // moments
}

// A part is the gradient of the rows that one group of seed vertices has read.
type part struct {
	grain    uint32
	vertices []uint32
	gradient []float32
}

// head is how many words of a part precede its vertices.
const head = 2

func (s *step) init(o *Options) {
	s.place = make([]uint32, o.Vertices)
	n := len(o.Optimizer.Moments())
	s.moments, s.over = make([][]float32, n), make([]tensor.Matrix, n)
}

// Begin begins a step, whose gradient has no parts yet.
func (t *Table) Begin() {
	if t == nil {
		return
	}
	t.turn, t.shared = 1-t.turn, false // a step that failed may have left it
	t.mine[t.turn] = t.mine[t.turn][:0]
	t.step.parts = t.step.parts[:0]
}

// Add adds a part to the gradient of the step: at the rows of some vertices, which lies on a
// device, an empty one of a pass that was cut short. Parts are added up in the order of their grains,
// and those of one grain in the order of the nodes, as they were added there.
func (t *Table) Add(d tensor.Device, grain int, vertices []uint32, gradient tensor.Matrix) {
	if gradient.None() {
		return
	}
	if t.learns != nil {
		t.addSome(d, grain, vertices, gradient)
		return
	}
	at, n := len(t.mine[t.turn]), len(vertices)
	all := slices.Grow(t.mine[t.turn], head+n*(1+t.o.Columns))[:at+head+n*(1+t.o.Columns)]
	all[at], all[at+1] = uint32(grain), uint32(n)
	copy(all[at+head:], vertices)
	d.Read32(floats(all[at+head+n:]), gradient)
	t.mine[t.turn] = all
}

// addSome is Add where only some vertices have a learnt row, behind features.
func (t *Table) addSome(d tensor.Device, grain int, vertices []uint32, gradient tensor.Matrix) {
	at, columns := len(t.mine[t.turn]), t.o.Columns
	all := append(t.mine[t.turn], uint32(grain), 0)
	for _, v := range vertices {
		if t.learns[v] {
			all = append(all, v)
		}
	}
	n := len(all) - at - head
	all[at+1] = uint32(n)
	t.some = slices.Grow(t.some[:0], len(vertices)*columns)[:len(vertices)*columns]
	d.Read32(t.some, gradient.View(0, len(vertices), t.o.Features, columns))
	all = slices.Grow(all, n*columns)[:at+head+n*(1+columns)]
	to := floats(all[at+head+n:])
	for i, v := range vertices {
		if t.learns[v] {
			to = to[copy(to, t.some[i*columns:][:columns]):]
		}
	}
	t.mine[t.turn] = all
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
		t.step.parts, _ = t.partsOf(t.step.parts, t.mine[t.turn]) // this node has written them
	}
	t.shared = false
	t.addUp()
	n := len(t.touched) * t.o.Columns
	if n == 0 {
		return
	}
	t.step.rows = t.collect(t.step.rows, t.rows)
	for i := range t.moments {
		t.step.moments[i] = t.collect(t.step.moments[i], t.moments[i].rows)
		t.over[i] = tensor.OverF32(1, n, t.step.moments[i])
	}
	rows := tensor.OverF32(1, n, t.step.rows)
	t.o.Optimizer.StepRows(t.device, rows, tensor.OverF32(1, n, t.sum), t.over, rate, steps)
	t.unsound = t.unsound || !t.device.Finite(rows)
	t.scatter(t.rows, t.step.rows)
	for i := range t.moments {
		t.unsound = t.unsound || !t.device.Finite(t.over[i])
		t.scatter(t.moments[i].rows, t.step.moments[i])
	}
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
			at := t.place[v]
			if at == 0 {
				t.touched, t.sum = append(t.touched, v), append(t.sum, g...)
				t.place[v] = uint32(len(t.touched))
				continue
			}
			for c, x := range t.sum[int(at-1)*columns:][:columns] {
				t.sum[int(at-1)*columns+c] = x + g[c]
			}
		}
	}
	for _, v := range t.touched {
		t.place[v] = 0
	}
}

// collect returns the rows of the touched vertices, in memory that is reused.
func (t *Table) collect(to, all []float32) []float32 {
	to = to[:0]
	for _, v := range t.touched {
		to = append(to, t.row(all, v)...)
	}
	return to
}

// scatter sets the rows of the touched vertices.
func (t *Table) scatter(all, from []float32) {
	for i, v := range t.touched {
		copy(t.row(all, v), from[i*t.o.Columns:])
	}
}

// StepBytes returns the memory of a step, if this node adds so many rows and other nodes as many
// each.
func (t *Table) StepBytes(rows, nodes int) uint64 {
	if t == nil {
		return 0
	}
	each := 4 * uint64(rows) * uint64(1+t.o.Columns)
	messages := uint64(2 + nodes - 1)
	touched := min(uint64(rows)*uint64(nodes), uint64(t.o.Vertices)) * (4 + 4*uint64(t.o.Columns)*uint64(2+len(t.moments)))
	return (messages*each + touched) * 5 / 4 // memory grows by a quarter at a time
}
