package train

import (
	"context"
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// averaging are the sums of a run whose models differ.
type averaging interface {
	sums
	// next says whether models are averaged by the next total, which else only tells the
	// notes.
	next(due bool)
}

// An averager averages in the device's own numbers.
type averager[T exchange.Number] struct {
	exchange  *exchange.Exchange
	states    []tensor.Matrix
	optimizer *nn.Optimizer
	from      func(to []T, m tensor.Matrix)
	to        func(m tensor.Matrix, from []T)
	fault     func() error // as an adder's

	row   []T // what this node brings, and then the average
	mine  [1][]T
	nodes T     // that learn
	idle  []int // the others
	out   bool  // this is one of those
	due   bool
}

func newAverager[T exchange.Number](l *local, o *nn.Optimizer, from func([]T, tensor.Matrix), to func(tensor.Matrix, []T), fault func() error) *averager[T] {
	return &averager[T]{
		exchange: l.shared.exchange, states: l.states, optimizer: o, from: from, to: to, fault: fault,
		row: make([]T, len(l.states)*l.states[0].Cols), nodes: T(l.models()), idle: l.idle, out: slices.Contains(l.idle, l.shared.work.Self),
	}
}

func (a *averager[T]) next(due bool) { a.due = due }

// begin implements sums: there are no grains, since the models that learn from them differ.
func (a *averager[T]) begin([][]exchange.Span, int) {}

// grain implements sums.
func (a *averager[T]) grain(int) {}

// total implements sums: it sets the model that is here to the average of those of all
// nodes that learn. Its updates are their mean, rounded to the nearest number, since models have met more or
// fewer slots without roots. They travel in the flags of the notes, above those of trainer.reduce.
// Where something went wrong on a node, the model stays as it is.
func (a *averager[T]) total(ctx context.Context, r exchange.Round) ([]exchange.Note, error) {
	r.Note.Flags |= a.optimizer.Steps() << 1
	row := a.row[:0]
	if a.due {
		row = a.row
		a.read(row)
	}
	if err := a.fault(); err != nil {
		return nil, err
	}
	a.mine[0] = row
	notes, err := exchange.Reduce(ctx, a.exchange, r, a.mine[:], row)
	if err != nil || !a.due {
		return notes, err
	}
	updates, nodes := uint64(0), uint64(a.nodes)
	for node, note := range notes {
		if note.Flags&unsound != 0 {
			return notes, nil
		}
		if !slices.Contains(a.idle, node) {
			updates += note.Flags >> 1
		}
	}
	n := a.states[0].Cols
	for i, m := range a.states {
		a.to(m, row[i*n:][:n])
	}
	a.optimizer.SetSteps((updates + nodes/2) / nodes)
	return notes, nil
}

// read sets a row to this node's part of the average.
func (a *averager[T]) read(row []T) {
	if a.out {
		clear(row)
		return
	}
	n := a.states[0].Cols
	for i, m := range a.states {
		a.from(row[i*n:][:n], m)
	}
	for i := range row {
		row[i] /= a.nodes
	}
}
