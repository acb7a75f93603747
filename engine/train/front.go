package train

import (
	"context"
	"fmt"
	"time"

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
	columns   *p3.Columns
	seed      uint64
	resamples bool // each node draws the blocks of all

	inflight int     // steps under way at once
	queue    []*slot // those after the one in hand that are ready to be under way
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
	if t.foreign != nil {
		return &Broken{Device: t.foreign.Name(), err: errFront}
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
	settings := &t.recipe.Sharing.P3
	front := &front{columns: columns, seed: t.recipe.Seed, inflight: max(1, settings.Inflight)}
	if t.shared != nil {
		front.resamples = !settings.Pushed() && t.shared.replicated
	}
	front.Front, err = p3.New(p3.Options{
		Model: l.model, Device: t.device, Gradients: l.gradients, Columns: columns, Exchange: x, Work: work,
		Deterministic: t.recipe.Sharing.Deterministic, Resample: front.resamples, Inflight: front.inflight,
	})
	if err != nil {
		return err
	}
	t.front = front
	if t.shared != nil && !settings.Pushed() && !front.resamples {
		t.notes = append(t.notes, "nodes lack edges, so blocks are sent to those that have none of them, as with p3.push=blocks, instead of p3.push=resample")
	}
	if front.inflight > 1 {
		t.notes = append(t.notes, fmt.Sprintf("p3.inflight=%d: first layers are computed with weights that are up to %d updates old, so gradients are not those of one machine", front.inflight, front.inflight-1))
	}
	return nil
}

// next returns the slot of the next step, and how long that was waited for. The steps
// that are to be under way when it is computed are ready then, too.
func (t *trainer) next(ctx context.Context, step int) (s *slot, waited time.Duration, err error) {
	f := t.front
	if f == nil {
		return t.batches.next(ctx)
	}
	for n := len(f.queue); n < f.inflight && step+n < t.batches.steps; n++ {
		s, wait, err := t.batches.next(ctx)
		waited += wait
		if err != nil {
			return nil, waited, err
		}
		f.queue = append(f.queue, s)
	}
	s = f.queue[0]
	f.queue = f.queue[:copy(f.queue, f.queue[1:])]
	return s, waited, nil
}

// stop ends what is under way, when an epoch ends or is interrupted.
func (f *front) stop() {
	if f == nil {
		return
	}
	f.Stop()
	f.queue = f.queue[:0]
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
	f.addOthers(s)
	return f.Ahead(ctx, s.front, p3.Hand{Device: h.device, Scratch: h.scratch, Rows: s.rows}, s.step, dropKey(f.seed, epoch, s.step), &s.tally)
}

// begin computes the sums that a step's groups go on from, after those of the steps that
// are to be under way meanwhile have been sent.
func (f *front) begin(ctx context.Context, t *learner, s *slot) error {
	if err := f.send(ctx, t, s); err != nil {
		return err
	}
	for _, later := range f.queue {
		if err := f.send(ctx, t, later); err != nil {
			return err
		}
	}
	t.at.Under.Behind = max(t.at.Under.Behind, t.at.Step-s.front.Version())
	if err := f.Sums(s.front); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
	}
	return nil
}

// send has a step be under way, if it is not. Which weights it is sent with depends on
// the step alone.
func (f *front) send(ctx context.Context, t *learner, s *slot) error {
	if s.front.Sent() {
		return nil
	}
	weights, version := t.weights, t.at.Step
	if t.older != nil {
		weights, version = t.older.of(s.step, t.at.Step)
	}
	if err := f.Send(ctx, s.front, uint32(t.at.Epoch), t.key(s), weights, version); err != nil {
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
