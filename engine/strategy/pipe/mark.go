package pipe

import (
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
)

// marked is the last state that this node had whole, in memory. What a lost stage has learned
// since, nobody has: the others leave a checkpoint of this.
type marked struct {
	rows  []byte // Method.rows, one after the other; empty: there is no mark
	place train.Mark
	made  time.Time
	cost  time.Duration // of one, in the mean of the last few
}

// worth is how many times longer than it takes a mark is put off: so marks take a hundredth of
// a run's time.
const worth = 100

// wantsMark reports whether it is time for the next mark. Nodes may answer differently: one
// that wants it is enough.
func (p *Method) wantsMark() bool {
	return p.marks() && time.Since(p.marked.made) >= worth*p.marked.cost
}

// marks reports whether marks are of use: where nobody has all weights, and checkpoints are
// kept.
func (p *Method) marks() bool { return p.Worker.Parted() && p.run.Options.Dir != "" }

// spent counts the time that a mark has taken, from when the rows began to be settled for it.
func (m *marked) spent(since time.Time) {
	const few = 4
	m.made = time.Now()
	took := m.made.Sub(since)
	if m.cost == 0 {
		m.cost = took
	}
	m.cost += (took - m.cost) / few
}

// mark notes a state that can be resumed from, before it is trained on.
func (p *Method) mark() {
	if !p.marks() || !p.Resumes(p.l) {
		return
	}
	m := &p.marked
	m.rows = plain.Grow(m.rows, len(p.rows)*bytes(p.l.Weights))
	to := m.rows
	for _, row := range p.rows {
		n := bytes(row)
		plain.Read(p.l.Run.Device, to[:n], row)
		to = to[n:]
	}
	m.place.Set(p.l)
}

// Back implements Method: it brings back the last mark, unless the rows are whole.
func (p *Method) Back(l *train.Learner) {
	from := p.marked.rows
	if len(from) == 0 || p.Complete(l) {
		return
	}
	for _, row := range p.rows {
		n := bytes(row)
		plain.Write(l.Run.Device, row, from[:n])
		from = from[n:]
	}
	p.marked.place.Return(l)
	p.settled = len(p.rows)
}

// markRows is how many rows a mark will have: those of Start.
func (p *Method) markRows() int {
	n := 1 + len(p.l.Optimizer.Moments())
	if p.Worker.refreshes() {
		n++
	}
	return n
}
