package train

import "github.com/hopmesh/hopmesh/engine/trained"

// A Mark is a place to which a learner can go back, without the rows of its weights and
// moments: who sets one keeps these.
type Mark struct {
	course  course
	best    []float32
	bestOf  *trained.Epoch // the epoch that best belongs to
	updates uint64
}

// Set marks where a learner stands.
func (m *Mark) Set(l *Learner) {
	if m.bestOf != l.At.Best {
		m.best, m.bestOf = append(m.best[:0], l.best...), l.At.Best
	}
	m.course, m.updates = l.course, l.Optimizer.Steps()
}

// Return brings a learner back to where it was marked. It ends a run: what was learned since
// would be learned again.
func (m *Mark) Return(l *Learner) {
	l.course = m.course
	l.best = m.best
	l.Optimizer.SetSteps(m.updates)
}
