package p3

import (
	"context"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Strategy has all nodes compute the first layer together.
var Strategy = train.Descriptor{
	Declaration: declaration, Deal: Deal, Processor: true,
	Check:    func(_ *recipe.Recipe, m *nn.Model, _ dataset.About) error { return Check(m) },
	Serve:    func(p peer.Peers) any { return Register(p) },
	Forecast: forecast.Hooks{Volume: Volume, Takes: needs},
	New: func(t *train.Trainer) (train.Method, error) {
		if t.Session.Alone() && !t.Recipe.Sharing.Deterministic {
			return newP3Alone(t), nil // a single node computes as several only if it promises their bits
		}
		return newP3(t), nil
	},
}

// Method is the method of p3: all nodes compute the first layer together, each in
// some columns of features. The rest is as in Batched.
type Method struct {
	*batched.Batched
	front     *Front
	columns   *Columns
	bring     func(ctx context.Context) error // them, once they fit
	resamples bool                            // each node samples the blocks of all
	inflight  int                             // steps under way at once
	older     []*older                        // of each learner
}

func newP3(t *train.Trainer) *Method {
	f := &Method{Batched: batched.New(t), inflight: Of(&t.Recipe.Sharing).Inflight}
	f.Layers = f
	return f
}

// p3Alone trains on one node that does not promise the bits of several: it computes whole
// rows, and keeps the older weights that several nodes would go on from.
type p3Alone struct {
	*batched.Batched
	rows  int
	older []*older // of each learner
}

// aloneRows computes groups from whole rows, and keeps older weights after each step.
type aloneRows struct {
	batched.FromRows

	method *p3Alone
}

func newP3Alone(t *train.Trainer) *p3Alone {
	p := &p3Alone{Batched: batched.New(t), rows: Of(&t.Recipe.Sharing).Inflight - 1}
	p.Layers = aloneRows{batched.NewFromRows(t), p}
	return p
}

// Rows implements Method.
func (p *p3Alone) Rows() int { return p.rows }

// Attach implements Method.
func (p *p3Alone) Attach(l *train.Learner) error {
	o, err := newOlder(l, p.rows)
	if err != nil {
		return err
	}
	p.older, l.Extras = append(p.older, o), append(l.Extras, o)
	return p.Batched.Attach(l)
}

// Done implements batched.layers.
func (a aloneRows) Done(_ context.Context, l *train.Learner, _ *slot.Slot) error {
	a.method.older[l.Index].keep(l.At.Step)
	return nil
}

// An underway is a slot's state of the first layer.
type underway struct {
	batch  *Batch
	others []resampled  // of other nodes, where their blocks are sampled here
	dealt  []deal.Group // of one of them, where it sends its blocks
}

// Of returns a slot's state of the first layer.
func (f *Method) Of(s *slot.Slot) *underway {
	if s.Own == nil {
		s.Own = &underway{batch: f.front.NewBatch()}
	}
	return s.Own.(*underway)
}

// Rows implements Method.
func (f *Method) Rows() int { return f.inflight - 1 }

// Attach implements Method.
func (f *Method) Attach(l *train.Learner) error {
	o, err := newOlder(l, f.Rows())
	if err != nil {
		return err
	}
	f.older = append(f.older, o)
	l.Extras = append(l.Extras, o)
	return f.Batched.Attach(l)
}

// Inflight implements Method.
func (f *Method) Inflight() int { return f.inflight }

// Open implements Method.
func (f *Method) Open(ctx context.Context) (err error) {
	t := f.Run
	if t.Foreign != nil {
		return &slot.Broken{Device: t.Foreign.Name(), Err: train.ErrFront}
	}
	work, layout := t.Session.Work, t.Session.Layout
	var source *Source
	var x *exchange.Exchange
	var tally *peer.Tally
	if s := t.Session; s.Alone() {
		source, err = Alone(t.Data.Features, t.Recipe.Sharing.Wire())
	} else {
		source, x, tally = t.Sharing.Served[Name].(*Source), s.Exchange, &s.Start
		err = source.Ready(t.Data.Features, t.Recipe.Sharing.Wire())
	}
	if err != nil {
		return err
	}
	memory := t.Options.Memory
	if memory > 0 {
		memory -= min(memory-1, budget.Program+t.WeightBytes()+t.Data.Features.Bytes())
	}
	columns, err := source.Columns(ctx, work, layout, memory, tally)
	if err != nil {
		return err
	}
	l := t.Learners[0] // the only one
	settings := Of(&t.Recipe.Sharing)
	pushed := settings.Pushed()
	f.columns = columns
	f.bring = func(ctx context.Context) error { return source.Bring(ctx, columns, work, tally) }
	f.resamples = !t.Session.Alone() && !pushed && t.Session.Replicated
	f.front, err = New(Options{
		Model: l.Model, Device: t.Device, Gradients: l.Gradients, Columns: columns, Exchange: x, Work: work,
		Deterministic: t.Recipe.Sharing.Deterministic, Resample: f.resamples, Inflight: f.inflight,
		Edges: t.Data.About.Edges, Fanouts: t.Recipe.Fanouts,
	})
	if err != nil {
		return err
	}
	if !t.Session.Alone() && !pushed && !f.resamples {
		t.Notes = append(t.Notes, "nodes lack edges, so blocks are sent to those that have none of them, as with p3.push=blocks, instead of p3.push=resample")
	}
	if f.inflight > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("p3.inflight=%d: first layers are computed with weights that are up to %d updates old, so gradients are not those of one machine", f.inflight, f.inflight-1))
	}
	f.Dealing = batched.NewDealing(t, t.Sharing.Dealer)
	f.SetSums(l, batched.NewSums(l, f.front.Rest())) // the others are whole on all nodes
	f.front.From(0, 0)                               // a step that is prepared for all epochs is of none
	return nil
}

// Start implements Method: it gets this node's columns.
func (f *Method) Start(ctx context.Context) error { return f.bring(ctx) }

// Needs implements Method.
func (f *Method) Needs(n *train.Needs) { n.Add(budget.Graph, f.columns.Bytes()) }

// BeginSteps implements Method.
func (f *Method) BeginSteps(epoch, step int) { f.front.From(uint32(epoch), step) }

// EndSteps implements Method.
func (f *Method) EndSteps() { f.front.Stop() }

// Close implements Method.
func (f *Method) Close() {
	if f.front != nil {
		f.front.Close()
	}
	f.Batched.Close()
}

// Prepare implements Method. It also computes the part of the first layer that can be
// computed before the step, with the other nodes.
func (f *Method) Prepare(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	p := &f.Run.Phases
	defer pprof.SetGoroutineLabels(p.Other)
	pprof.SetGoroutineLabels(p.Sample)
	start := time.Now()
	if err := f.Draw(ctx, h, s, epoch); err != nil {
		return err
	}
	if err := f.resample(ctx, h, s, epoch); err != nil {
		return fmt.Errorf("epoch %d, step %d, what other nodes draw: %w", epoch, s.Step+1, err)
	}
	sampled := time.Now()
	pprof.SetGoroutineLabels(p.Gather)
	if err := f.Ahead(ctx, h, s, epoch); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, s.Step+1, err)
	}
	s.Sampling, s.Gathering = sampled.Sub(start), time.Since(sampled)
	return nil
}

// Ahead does what Prepare does beyond sampling: it needs the blocks of the slot alone.
func (f *Method) Ahead(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	of := f.Of(s)
	of.batch.Begin()
	f.expect(of, s)
	place := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		of.batch.Add(g.Grain, g.Roots, g.Batch.Blocks)
		g.Place = place
		place++
	}
	of.add()
	return f.front.Ahead(ctx, of.batch, Hand{Device: h.Device, Scratch: h.Scratch, Rows: s.Rows}, s.Step, train.DropKey(f.Run.Recipe.Seed, epoch, s.Step), &s.Tally)
}

// Begin implements batched.layers: it sends this step and the later ones, and adds this up.
func (f *Method) Begin(ctx context.Context, l *train.Learner, s *slot.Slot, later []*slot.Slot) error {
	if err := f.send(ctx, l, s); err != nil {
		return err
	}
	for _, s := range later {
		if err := f.send(ctx, l, s); err != nil {
			return err
		}
	}
	batch := f.Of(s).batch
	l.At.Under.Behind = max(l.At.Under.Behind, l.At.Step-batch.Version())
	if err := f.front.Sums(batch); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
	}
	return nil
}

// send puts a step under way, if it is not. Which weights it is sent with depends on
// the step alone.
func (f *Method) send(ctx context.Context, l *train.Learner, s *slot.Slot) error {
	batch := f.Of(s).batch
	if batch.Sent() {
		return nil
	}
	weights, version := f.older[l.Index].Of(s.Step, l.At.Step)
	if err := f.front.Send(ctx, batch, uint32(l.At.Epoch), l.Key(s), weights, version); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
	}
	return nil
}

// End implements batched.layers: all nodes get the same gradients of the first layer.
func (f *Method) End(ctx context.Context, l *train.Learner, s *slot.Slot) (time.Duration, error) {
	err := f.front.Back(ctx, f.Of(s).batch, uint32(l.At.Epoch))
	if err != nil {
		err = fmt.Errorf("epoch %d, step %d: %w", l.At.Epoch, s.Step+1, err)
	}
	return f.front.Waited(), err
}

// Done implements batched.layers.
func (f *Method) Done(ctx context.Context, l *train.Learner, s *slot.Slot) error {
	if err := f.front.Done(ctx, f.Of(s).batch); err != nil {
		return err
	}
	f.older[l.Index].keep(l.At.Step)
	return nil
}

// Forward implements batched.layers.
func (f *Method) Forward(l *train.Learner, s *slot.Slot, g *slot.Group) tensor.Matrix {
	return l.Pass.ForwardFrom(g.Batch.Blocks, g.Outermost(), f.Of(s).batch.Sum(g.Place))
}

// Backward implements batched.layers.
func (f *Method) Backward(l *train.Learner, s *slot.Slot, g *slot.Group, dz tensor.Matrix) {
	l.Pass.BackwardTo(f.Of(s).batch.Error(g.Place), dz)
}

// Finite implements batched.layers.
func (f *Method) Finite(_ *train.Learner, s *slot.Slot) bool { return f.front.Finite(f.Of(s).batch) }

// Stage implements batched.layers: of the stages it knows the first alone.
func (f *Method) Stage(l *train.Learner, s *slot.Slot, g *slot.Group) string {
	if l.Run.Device.Finite(f.Of(s).batch.Sum(g.Place)) {
		return ""
	}
	return l.Model.Stages()[0].Name
}

// olderPrefix begins the names of older weights in a checkpoint. It is followed by how
// many updates older they are.
const olderPrefix = "older."

// older keeps the first layer's weights as they were before the last updates, where
// several steps of p3 are under way. A step is sent with the weights after all but the
// last p3.inflight - 1 of the steps before it in its epoch. The first steps of an epoch
// are sent with the weights that it begins with, since nothing is under way between
// epochs. In an uninterrupted run these are the current weights when the step is sent.
// A resumed run sends the steps under way again, with the same weights: so these are
// part of checkpoints, and the run learns the same bits as an uninterrupted one.
type older struct {
	device  tensor.Device
	weights tensor.Matrix   // the current ones
	rows    []tensor.Matrix // those before the update of a step, by that step; as long as the weights
	params  []nn.Param      // the kept ones
}

// newOlder returns an older with so many rows: none where steps wait for each other.
func newOlder(l *train.Learner, rows int) (*older, error) {
	front, err := l.Model.Front()
	if err != nil {
		return nil, err
	}
	d := l.Run.Device
	o := &older{device: d, weights: l.Weights}
	for _, term := range front.Terms {
		o.params = append(o.params, term.Param)
	}
	for range rows {
		row := l.Run.Kept.Alloc(d.Type(), 1, l.Model.Size())
		d.Zero(row)
		o.rows = append(o.rows, row)
	}
	return o, nil
}

// Count returns by how many updates a step's weights may be older: fewer at the start
// of an epoch.
func (o *older) Count(step int) int {
	return min(step, len(o.rows))
}

// keep copies the weights before the update of a step.
func (o *older) keep(step int) {
	if len(o.rows) == 0 {
		return
	}
	row := o.before(step)
	for _, p := range o.params {
		n := p.Rows * p.Cols
		o.device.Combine(row.View(0, 1, p.Offset, n), 1, o.weights.View(0, 1, p.Offset, n), 0, tensor.Matrix{})
	}
}

// before returns the weights before the update of one of the last steps, in the params
// that are kept.
func (o *older) before(step int) tensor.Matrix { return o.rows[step%len(o.rows)] }

// Of returns the weights that a step is sent with, when so many of its epoch are done,
// and their version.
func (o *older) Of(step, done int) (weights tensor.Matrix, version int) {
	version = max(0, step-len(o.rows))
	if version < done {
		return o.before(version), version
	}
	return o.weights, done
}

// Sections returns the older weights of the steps under way, after so many steps of an
// epoch.
func (o *older) Sections(done int) (all []checkpoint.Section) {
	for back := 1; back <= o.Count(done); back++ {
		all = append(all, checkpoint.Row(olderName(back), o.device, o.before(done-back), o.params))
	}
	return all
}

func olderName(back int) string { return fmt.Sprintf("%s%d.", olderPrefix, back) }

// Read reads them from a checkpoint.
func (o *older) Read(f *checkpoint.File, done int) (rows [][]float32, err error) {
	for back := 1; back <= o.Count(done); back++ {
		row, err := f.Row(olderName(back), o.params, o.weights.Cols)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Adopt goes on from older weights of a checkpoint.
func (o *older) Adopt(rows [][]float32, done int) {
	for i, row := range rows {
		o.device.Write32(o.before(done-1-i), row)
	}
}

// MaxBytes is the size of all older weights.
func (o *older) MaxBytes() uint64 {
	return uint64(len(o.rows) * o.weights.Cols * o.weights.Type.Bytes())
}
