package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// sums add up the gradient of a step: over the nodes, and over its grains where they
// are added up one by one.
type sums interface {
	// begin begins a step: spans are those of all nodes, or nil where there are no grains.
	begin(spans [][]exchange.Span, self int)
	// grain takes the gradient of a shard's grain. They ascend, as all dealers deal them.
	grain(shard int)
	// total sets the gradient to the sum over all, and returns the notes of all nodes.
	total(ctx context.Context, r exchange.Round) ([]exchange.Note, error)
}

// newSums is nil where there is nothing to add up beside what a pass adds up itself.
func (t *learner) newSums() sums {
	var x *exchange.Exchange
	if t.piped != nil {
		return nil // it adds up by itself
	}
	if t.shared != nil {
		x = t.shared.exchange
	} else if !t.recipe.Sharing.Deterministic {
		return nil
	}
	if t.local != nil {
		return t.local.average
	}
	parts := []p3.Range{{First: 0, Count: t.gradients.Cols}}
	if t.front != nil {
		parts = t.front.Rest() // the others are whole on all nodes
	}
	if t.device.Type() == tensor.F64 {
		return newAdder(x, t.gradients, parts, t.device.Read, t.device.Write, t.faultNow)
	}
	return newAdder(x, t.gradients, parts, t.device.Read32, t.device.Write32, t.faultNow)
}

// An adder is sums in the device's own numbers.
type adder[T exchange.Number] struct {
	exchange  *exchange.Exchange // nil where one node does it all
	gradients tensor.Matrix
	parts     []p3.Range // of the gradients, that are added up
	from      func(to []T, m tensor.Matrix)
	to        func(m tensor.Matrix, from []T)
	fault     func() error // of the device: what was read is told to nobody then

	row    []T    // what this node brings, and then the sum
	mine   [1][]T // row
	summer *exchange.Summer[T]
	spans  [][]exchange.Span
}

func newAdder[T exchange.Number](x *exchange.Exchange, gradients tensor.Matrix, parts []p3.Range, from func([]T, tensor.Matrix), to func(tensor.Matrix, []T), fault func() error) *adder[T] {
	n := 0
	for _, p := range parts {
		n += p.Count
	}
	return &adder[T]{
		exchange: x, gradients: gradients, parts: parts, from: from, to: to, fault: fault,
		row: make([]T, n), summer: exchange.NewSummer[T](n),
	}
}

// read sets a row to the parts of the gradients.
func (a *adder[T]) read(row []T) {
	for _, p := range a.parts {
		a.from(row[:p.Count], a.gradients.View(0, 1, p.First, p.Count))
		row = row[p.Count:]
	}
}

// write is the reverse.
func (a *adder[T]) write(row []T) {
	for _, p := range a.parts {
		a.to(a.gradients.View(0, 1, p.First, p.Count), row[:p.Count])
		row = row[p.Count:]
	}
}

func (a *adder[T]) begin(spans [][]exchange.Span, self int) {
	a.spans = spans
	if spans != nil {
		a.summer.Begin(spans[self])
	}
}

func (a *adder[T]) grain(shard int) { a.read(a.summer.Row(shard)) }

func (a *adder[T]) total(ctx context.Context, r exchange.Round) ([]exchange.Note, error) {
	a.mine[0] = a.row
	mine := a.mine[:]
	if a.spans == nil {
		a.read(a.row)
	} else {
		mine = a.summer.Sums()
	}
	if err := a.fault(); err != nil {
		return nil, err
	}
	if a.exchange == nil {
		if len(mine) != 1 {
			return nil, fmt.Errorf("the grains of one node add up to %d sums", len(mine))
		}
		a.write(mine[0])
		return nil, nil
	}
	r.Spans = a.spans
	notes, err := exchange.Reduce(ctx, a.exchange, r, mine, a.row)
	if err != nil {
		return nil, err
	}
	a.write(a.row)
	return notes, nil
}
