package train

import (
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A Mark is the last state of a learner that all nodes had whole, in memory. Where each node
// trains a part of the weights, a run that loses a node leaves a checkpoint of it: what the lost
// one has learned since, nobody has.
type Mark struct {
	rows    []byte // weights and moments, one after the other; empty: nothing is marked
	course  course
	best    []float32
	bestOf  *trained.Epoch // the epoch that best belongs to
	updates uint64

	made time.Time
	cost time.Duration // of making all rows whole, in the mean of the last few
}

// worth is how many times longer than it takes a mark is put off: so marks take a hundredth of
// a run's time.
const worth = 100

// Due reports whether it is time for the next mark.
func (m *Mark) Due() bool { return time.Since(m.made) >= worth*m.cost }

// Took counts the time since the nodes began to make all rows whole.
func (m *Mark) Took(since time.Time) {
	const few = 4
	m.made = time.Now()
	took := m.made.Sub(since)
	if m.cost == 0 {
		m.cost = took
	}
	m.cost += (took - m.cost) / few
}

// Set marks where a learner stands, whose state is in these rows.
func (m *Mark) Set(l *Learner, rows []tensor.Matrix) {
	all := 0
	for _, row := range rows {
		all += plain.Size(row)
	}
	m.rows = plain.Grow(m.rows, all)
	to := m.rows
	for _, row := range rows {
		n := plain.Size(row)
		plain.Read(l.Run.Device, to[:n], row)
		to = to[n:]
	}
	if m.bestOf != l.At.Best {
		m.best, m.bestOf = append(m.best[:0], l.best...), l.At.Best
	}
	m.course, m.updates = l.course, l.Optimizer.Steps()
}

// Return brings a learner back to where it was marked, and reports whether it was. It ends a run:
// what was learned since would be learned again.
func (m *Mark) Return(l *Learner, rows []tensor.Matrix) bool {
	from := m.rows
	if len(from) == 0 {
		return false
	}
	for _, row := range rows {
		n := plain.Size(row)
		plain.Write(l.Run.Device, row, from[:n])
		from = from[n:]
	}
	l.course = m.course
	l.best = m.best
	l.Optimizer.SetSteps(m.updates)
	return true
}
