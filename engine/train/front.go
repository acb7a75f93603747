package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// A front is the first layer where p3 trains: all nodes compute it together, each in
// some columns of features. Without one each node gathers whole rows.
type front struct {
	*p3.Front
	columns *p3.Columns
	seed    uint64
}

// openFront brings this node's columns where p3 trains. One node that does it all has
// them, too, if it is to come to the bits of several.
func (t *trainer) openFront(ctx context.Context) (err error) {
	by := t.recipe.Sharing.Strategy
	if t.shared != nil {
		by = t.shared.strategy // which may have been chosen
	}
	if by != strategy.P3 || t.shared == nil && !t.recipe.Sharing.Deterministic {
		return nil
	}
	work, layout := strategy.Work{Nodes: []string{"this node"}}, newAlone(t.data, false).layout
	var source *p3.Source
	var x *exchange.Exchange
	var tally *strategy.Tally
	if s := t.shared; s == nil {
		source, err = p3.Alone(t.data.features, t.recipe.Sharing.Wire)
	} else {
		work, layout, source, x, tally = s.work, s.layout, s.columns, s.exchange, &s.start
		err = source.Ready(t.data.features, t.recipe.Sharing.Wire)
	}
	if err != nil {
		return err
	}
	memory := t.options.Memory
	if memory > 0 {
		memory -= min(memory-1, atHome+t.weightBytes()+t.data.features.Bytes())
	}
	columns, err := source.Bring(ctx, work, layout, memory, tally)
	if err != nil {
		return err
	}
	l := t.learners[0] // there are no others
	f, err := p3.New(p3.Options{
		Model: l.model, Device: t.device, Weights: l.weights, Gradients: l.gradients, Columns: columns,
		Exchange: x, Work: work, Deterministic: t.recipe.Sharing.Deterministic,
	})
	if err != nil {
		return err
	}
	t.front = &front{f, columns, t.recipe.Seed}
	return nil
}

// key is that of a step's dropout.
func (t *learner) key(s *slot) keyed.Key { return dropKey(t.recipe.Seed, t.at.Epoch, s.step) }

func dropKey(seed uint64, epoch, step int) keyed.Key {
	return keyed.New(seed, keyed.Dropout).With(uint64(epoch)).With(uint64(step))
}

// ahead is what of a slot's first layer can be computed before its step, with that of
// other nodes.
func (f *front) ahead(ctx context.Context, h *hand, s *slot, epoch int) error {
	if s.front == nil {
		s.front = f.NewBatch()
	}
	s.front.Begin()
	place := 0
	for i := range s.groups {
		g := &s.groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		s.front.Add(g.Grain, g.Roots, g.batch.Blocks)
		g.place = place
		place++
	}
	return f.Ahead(ctx, s.front, p3.Hand{Device: h.device, Scratch: h.scratch, Rows: s.rows}, s.step, dropKey(f.seed, epoch, s.step), &s.tally)
}

// begin computes the sums that a step's groups go on from.
func (f *front) begin(ctx context.Context, t *learner, s *slot) error {
	if err := f.Sums(ctx, s.front, uint32(t.at.Epoch), t.key(s)); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
	}
	return nil
}

// end sets the gradients of its weights, on all nodes alike.
func (f *front) end(ctx context.Context, t *learner, s *slot) error {
	if err := f.Back(ctx, s.front, uint32(t.at.Epoch)); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
	}
	return nil
}

// forward is the pass of a group, from its features or from its sum.
func (t *learner) forward(s *slot, g *group) tensor.Matrix {
	if t.front == nil {
		return t.pass.Forward(g.batch.Blocks, g.input)
	}
	return t.pass.ForwardFrom(g.batch.Blocks, g.outermost(), s.front.Sum(g.place))
}

// backward is that of forward.
func (t *learner) backward(s *slot, g *group, dz tensor.Matrix) {
	if t.front == nil {
		t.pass.Backward(dz)
		return
	}
	t.pass.BackwardTo(s.front.Error(g.place), dz)
}

// stageOf is the first stage, if the sum that a group goes on from is not finite: of
// those after it nothing is known.
func (f *front) stageOf(t *learner, s *slot, g *group) string {
	if t.device.Finite(s.front.Sum(g.place)) {
		return ""
	}
	return t.model.Stages()[0].Name
}

// forecast is what the pass of a group takes that begins with its sum: bytes of an
// arena, and beside it.
func (f *front) forecast(t *learner, s *slot, g *group) (arena, beside int) {
	d := dry.New(tensor.F32)
	rows, others := d.Arena(), d.Arena()
	p := t.model.NewPass(d, rows)
	p.Train = true
	p.Weights = others.Alloc(tensor.F32, 1, t.model.Size())
	p.Gradients = p.Weights
	sum := others.Alloc(tensor.F32, s.front.Targets(g.place), f.Cols())
	p.BackwardTo(sum, p.ForwardFrom(g.batch.Blocks, g.outermost(), sum))
	return rows.Peak(), d.Beside()
}
