package batched

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// sums add up the gradient of a step over the nodes, and over its grains where they are
// added up one by one.
type sums interface {
	// Begin begins a step: spans are those of all nodes, or nil where there are no
	// grains.
	Begin(spans [][]exchange.Span, self int)
	// Grain adds the gradient of a shard's grain. Shards ascend, as all dealers deal
	// them.
	Grain(shard int)
	// Total sets the gradient to the sum over all, and returns the notes of all nodes.
	Total(ctx context.Context, r exchange.Round) ([]exchange.Note, error)
}

// allOf returns the parts of a gradient that cover all of it.
func allOf(l *train.Learner) []exchange.Range {
	return []exchange.Range{{First: 0, Count: l.Gradients.Cols}}
}

// NewSums returns sums over some parts of the gradient; nil where a pass adds up all
// there is.
func NewSums(t *train.Learner, parts []exchange.Range) sums {
	if t.Run.Session.Alone() && !t.Recipe.Sharing.Deterministic {
		return nil
	}
	x := t.Run.Session.Exchange
	if t.Run.Device.Type() == tensor.F64 {
		return newAdder(x, t.Gradients, parts, t.Run.Device.Read, t.Run.Device.Write, t.Fault)
	}
	return newAdder(x, t.Gradients, parts, t.Run.Device.Read32, t.Run.Device.Write32, t.Fault)
}

// An adder implements sums in the device's own numbers.
type adder[T exchange.Number] struct {
	exchange  *exchange.Exchange
	gradients tensor.Matrix
	parts     []exchange.Range // of the gradients, that are added up
	from      func(to []T, m tensor.Matrix)
	to        func(m tensor.Matrix, from []T)
	fault     func() error // of the device: then nothing that was read is sent

	row    []T    // this node's part, then the sum
	mine   [1][]T // row
	summer *exchange.Summer[T]
	spans  [][]exchange.Span
}

func newAdder[T exchange.Number](x *exchange.Exchange, gradients tensor.Matrix, parts []exchange.Range, from func([]T, tensor.Matrix), to func(tensor.Matrix, []T), fault func() error) *adder[T] {
	n := 0
	for _, p := range parts {
		n += p.Count
	}
	return &adder[T]{
		exchange: x, gradients: gradients, parts: parts, from: from, to: to, fault: fault,
		row: make([]T, n), summer: exchange.NewSummer[T](n),
	}
}

// Read sets a row to the parts of the gradients.
func (a *adder[T]) Read(row []T) {
	for _, p := range a.parts {
		a.from(row[:p.Count], a.gradients.View(0, 1, p.First, p.Count))
		row = row[p.Count:]
	}
}

// write sets the parts of the gradients to a row.
func (a *adder[T]) write(row []T) {
	for _, p := range a.parts {
		a.to(a.gradients.View(0, 1, p.First, p.Count), row[:p.Count])
		row = row[p.Count:]
	}
}

func (a *adder[T]) Begin(spans [][]exchange.Span, self int) {
	a.spans = spans
	if spans != nil {
		a.summer.Begin(spans[self])
	}
}

func (a *adder[T]) Grain(shard int) { a.Read(a.summer.Row(shard)) }

func (a *adder[T]) Total(ctx context.Context, r exchange.Round) ([]exchange.Note, error) {
	a.mine[0] = a.row
	mine := a.mine[:]
	if a.spans == nil {
		a.Read(a.row)
	} else {
		mine = a.summer.Sums()
	}
	if err := a.fault(); err != nil {
		return nil, err
	}
	r.Spans = a.spans
	notes, err := exchange.Reduce(ctx, a.exchange, r, mine, a.row)
	if err != nil {
		return nil, err
	}
	a.write(a.row)
	return notes, nil
}
