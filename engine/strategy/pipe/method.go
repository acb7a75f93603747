package pipe

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/edges"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/input"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Pipe trains on the whole graph by stages of layers, Graph in one stage.
var (
	Pipe  = descriptor(Name)
	Graph = descriptor(GraphName)
)

func descriptor(name string) train.Descriptor {
	return train.Descriptor{
		Declaration: declaration(name), Deal: Deal, Processor: true, Isolated: true,
		Check: func(r *recipe.Recipe, m *nn.Model, _ dataset.About) error {
			settings := Of(&r.Sharing)
			if r.Model.Related() {
				return fmt.Errorf("%s does not train %s, whose edges have relations: choose another strategy, such as leap", name, r.Model.Named())
			}
			if r.Model.Along() {
				return fmt.Errorf("%s does not train %s, which computes a row for each edge: give {model.edges}=off for gat and gin, or choose another strategy, such as leap", name, r.Model.Named())
			}
			return cmp.Or(Check(m, &settings), checkWholeGraph(r))
		},
		Advice: func(r *recipe.Recipe) []budget.Advice {
			advice := []budget.Advice{"take a smaller {hidden}", "share the job among more nodes"} // there are no batches
			if s := Of(&r.Sharing); !s.Graph && s.Recompute == strategy.Off {
				advice = append([]budget.Advice{"leave out {pipe.recompute=off}"}, advice...)
			}
			return advice
		},
		New: func(t *train.Trainer) (train.Method, error) {
			return &Method{run: t, settings: Of(&t.Recipe.Sharing)}, nil
		},
	}
}

// Method is the method of pipe and graph: an epoch is one step of the whole graph,
// which a worker does. Slots have no seed vertices for this node.
type Method struct {
	train.Basic

	run      *train.Trainer
	l        *train.Learner // the only one
	settings Settings
	Worker   *Worker
	reads    *input.Reads
	// early is the weights at the start of the period under way, from a checkpoint;
	// nil: none.
	early []float32
	// predicted is the chosen arrangement with the seconds of an epoch; nil: nothing
	// was measured.
	predicted *arrange.Candidate
	tried     uint64 // what this node took at most to time layers, and for a trial
	// rows are all that stages train or keep a part of: first the weights, which
	// evaluation needs, then what only checkpoints hold. The first settled of them are
	// settled: each node has all of their columns.
	rows    []tensor.Matrix
	settled int
	told    string // this node's report on the last epoch's weights, where it does not have all
	marked  train.Mark
}

// Attach implements Method.
func (p *Method) Attach(l *train.Learner) error {
	p.l = l
	if !p.settings.Graph {
		l.Extras = append(l.Extras, &earlyWeights{p, l.Run.Device, l.Model})
	}
	return nil
}

// Open implements Method: it makes the worker.
func (p *Method) Open(ctx context.Context) error {
	t := p.l
	task := Task{
		Model: p.settings.Trains(t.Model), Device: t.Run.Device, Weights: t.Weights, Gradients: t.Gradients, Topology: t.Run.Data.Topology,
		Labels: t.Run.Data.Learnt, Loss: func(dz, z tensor.Matrix, labels []int32) float64 { return lossOf(t, dz, z, labels) },
	}
	layout := t.Run.Session.Layout
	if s := t.Run.Session; !s.Alone() {
		task.Exchange, task.Work = s.Exchange, s.Work
		brought := edges.New(t.Run.Data, s, t.Model.Form())
		defer brought.Drop()
		task.Blocks.Edges, task.Labels = brought, brought.Labels
	}
	task.Seed, task.Blocks.Dir, task.Blocks.Spare = t.Recipe.Seed, t.Run.Options.Dir, roomForPiped(t)
	if err := checkShards(&t.Recipe.Sharing, len(t.Run.Data.Shards)); err != nil {
		return err
	}
	if err := planPiped(ctx, t, &task, layout); err != nil {
		return err
	}
	p.reads = input.NewReads(t.Run.Data, t.Run.Device)
	task.Features = p.reads
	var err error
	if p.Worker, err = New(ctx, task); err != nil {
		return err
	}
	if full := p.Worker.blocks.Full(); full != nil {
		t.Run.Notes = append(t.Run.Notes, fmt.Sprintf("the edges of shards lie in memory, since the folder of the job has no room for them (%v): free some space there", full))
	}
	if full := p.Worker.past.Full(); full != nil {
		t.Run.Notes = append(t.Run.Notes, fmt.Sprintf("earlier rows lie in memory, since the folder of the job has no room for them (%v): free some space there", full))
	}
	if err := p.Worker.Meet(ctx, &t.Run.Session.Start); err != nil {
		return err
	}
	p.reads.Plan(p.Worker.Reads())
	return p.reads.Bring(ctx, t.Run.Session)
}

// Start implements Method: it takes the worker's memory.
func (p *Method) Start(context.Context) error {
	t := p.l
	if err := p.Worker.Open(); err != nil {
		return err
	}
	t.Run.Device.Zero(t.Gradients) // there are none of other nodes' columns
	p.rows = []tensor.Matrix{t.Weights}
	for _, m := range t.Optimizer.Moments() {
		p.rows = append(p.rows, m.Row)
	}
	if early := p.Worker.PeriodWeights(); !early.None() {
		p.rows = append(p.rows, early)
	}
	p.settled = len(p.rows) // all nodes begin with the same
	if row := p.Worker.PeriodWeights(); !row.None() && p.early != nil {
		t.Run.Device.Write32(row, p.early)
		p.Worker.Resumed()
	}
	return p.reads.Open()
}

// Close implements Method.
func (p *Method) Close() {
	if p.Worker == nil {
		return
	}
	p.Worker.Close()
	p.reads.Close()
}

// Needs implements Method: a trial is over before the worker takes its memory.
func (p *Method) Needs(n *train.Needs) { n.Add(budget.Graph, max(p.Bytes(), p.tried)) }

// See implements Method: a step's memory is the worker's.
func (p *Method) See(n *train.Needs, o *slot.Outline) { n.Slot = max(n.Slot, uint64(8*len(o.Roots))) }

// Prepare implements Method: the worker reads what it needs.
func (p *Method) Prepare(_ context.Context, _ *slot.Worker, s *slot.Slot, _ int) error {
	s.Forget()
	s.Groups = s.Groups[:0]
	return nil
}

// Look implements Method.
func (*Method) Look(context.Context, *slot.Looker, *slot.Outline, int) error { return nil }

// Bytes returns the memory of the worker, with features.
func (p *Method) Bytes() uint64 {
	entries := 0.0
	if p.reads.Data.Features.Sparse() {
		entries = p.reads.Data.Entries
	}
	n := p.Worker.Bytes(entries) + p.reads.Bytes()
	if p.marks() {
		n += uint64((2 + len(p.l.Optimizer.Moments())) * plain.Size(p.l.Weights))
	}
	return n
}

// Step implements Method: it trains on the whole graph.
func (p *Method) Step(ctx context.Context, t *train.Learner, s *slot.Slot, _ []*slot.Slot, rate float64) (loss float64, waited time.Duration, err error) {
	if wrong := t.Doubt(); wrong != "" {
		return 0, 0, t.Diverged(s, wrong) // all nodes began with the same
	}
	loss, err = p.Epoch(ctx, t, s, rate)
	return loss, p.Worker.Waited(), err
}

// Epoch makes the update of an epoch, and returns its loss.
func (p *Method) Epoch(ctx context.Context, t *train.Learner, s *slot.Slot, rate float64) (float64, error) {
	if p.marks() && p.Resumes(t) {
		p.marked.Set(t, p.rows)
	}
	var mine ending.Word
	if p.rests(t.At.Epoch) && (t.Run.Wants() || t.Run.Asked.Load() != nil) {
		mine = ending.Settle
	} else if p.rests(t.At.Epoch) && p.marks() {
		mine = map[bool]ending.Word{true: ending.Mark, false: ending.Late}[p.marked.Due()]
	}
	loss, said, err := p.Worker.Epoch(ctx, t.At.Epoch, t.Key(s), mine, &s.Tally)
	if err != nil {
		return loss, fmt.Errorf("epoch %d: %w", t.At.Epoch, err)
	}
	s.Gathered += p.reads.Rows
	t.At.Under.Edges += uint64(p.Worker.Edges())
	if !train.IsNumber(loss) {
		return loss, t.Diverged(s, "the loss")
	}
	if said&ending.Unsound != 0 {
		return loss, t.Diverged(s, "the sum of the gradients")
	}
	if from, to := p.Worker.Own(); p.Worker.Shares() {
		t.Optimizer.Step(t.Weights, t.Gradients, rate)
		p.settled = len(p.rows) // each node has made all updates
	} else {
		t.Optimizer.StepColumns(t.Weights, t.Gradients, from, to-from, rate)
		p.settled = 0
	}
	if err := p.settleAfter(ctx, t, said, &s.Tally); err != nil {
		return loss, fmt.Errorf("epoch %d: %w", t.At.Epoch, err)
	}
	return loss, nil
}

// lossOf returns the loss of rows that the pipeline outputs, as a part of the mean over
// all training vertices.
func lossOf(t *train.Learner, dz, z tensor.Matrix, labels []int32) float64 {
	return t.Task.Loss(t.Run.Device, dz, z, labels, 1/float64(len(t.Run.Data.Training)))
}

// checkWholeGraph returns an error if a recipe trains on batches or on sampled
// neighbors.
func checkWholeGraph(r *recipe.Recipe) error {
	name := r.Sharing.Strategy
	switch {
	case r.Batch > 0:
		return fmt.Errorf("{batch} %d: the strategy %s trains on the whole graph in each step: leave it out, or take another {strategy}", r.Batch, name)
	case slices.ContainsFunc(r.Fanouts, func(k int) bool { return k > 0 }):
		return fmt.Errorf("{fanout}: the strategy %s trains with all neighbours: leave it out, or take another {strategy}", name)
	case r.BF16:
		return errors.New("{train.products}=bf16: pipelines are computed in f32: leave it out, or take another {strategy}")
	}
	return nil
}

// Settle makes so many of the rows whole, on all nodes.
func (p *Method) Settle(ctx context.Context, rows int, tally *peer.Tally) error {
	began := time.Now()
	if rows <= p.settled {
		return nil
	}
	if err := p.Worker.Settle(ctx, p.settled, p.rows[p.settled:rows], tally); err != nil {
		return err
	}
	if p.settled = rows; rows == len(p.rows) {
		p.marked.Took(began)
	}
	return nil
}

// settleAfter settles the rows that are needed after a step, which all nodes decide
// alike. If none are, nodes exchange a digest of their weights.
func (p *Method) settleAfter(ctx context.Context, t *train.Learner, said ending.Word, tally *peer.Tally) (err error) {
	rows := 0
	switch {
	case said&ending.Settle != 0:
		t.Run.Together, rows = true, len(p.rows)
	case said&(ending.Mark|ending.Late) == ending.Mark, t.At.Epoch == t.Recipe.Epochs:
		rows = len(p.rows)
	case t.Run.Evaluates(t.At.Epoch):
		rows = 1
	}
	if err := p.Settle(ctx, rows, tally); err != nil || p.Whole(t) {
		return err
	}
	p.told, err = p.Digest(ctx, t, tally)
	return err
}

// Finish implements Method: it makes all rows whole.
func (p *Method) Finish(ctx context.Context) error { return p.Settle(ctx, len(p.rows), nil) }

// Whole implements Method: always, where this node trains all.
func (p *Method) Whole(*train.Learner) bool { return !p.Worker.Parted() || p.settled > 0 }

// Complete implements Method.
func (p *Method) Complete(*train.Learner) bool {
	return !p.Worker.Parted() || p.settled == len(p.rows)
}

func (p *Method) marks() bool { return p.Worker.Parted() && p.run.Options.Dir != "" } // else they are of no use

// Back implements Method.
func (p *Method) Back(l *train.Learner) {
	if !p.Complete(l) && p.marked.Return(l, p.rows) {
		p.settled = len(p.rows)
	}
}

// Hash implements Method.
func (p *Method) Hash(*train.Learner) string { return p.told }

// Report implements Method.
func (p *Method) Report(_ *train.Learner, e *trained.Epoch, _ train.Share) {
	e.Predicted = p.predicted.Record()
}

// Digest returns the hash of all weights, of which each stage has a part; "" on nodes
// that leave it to others to report.
func (p *Method) Digest(ctx context.Context, t *train.Learner, tally *peer.Tally) (string, error) {
	from, to := p.Worker.Own()
	own := t.Host[from:to]
	if to > from {
		t.Run.Device.Read32(own, t.Weights.View(0, 1, from, to-from))
	}
	sum, err := p.Worker.Digest(ctx, plain.Bytes(own), tally)
	return hex.EncodeToString(sum), err
}

// Resumes implements Method. A run can't resume before stages have settled, nor where
// nodes keep rows or gradients of earlier epochs, which are in no checkpoint.
func (p *Method) Resumes(l *train.Learner) bool {
	return p.Complete(l) && (l.Done() || p.rests(l.At.Epoch-1+l.At.Step))
}

// rests reports whether a run can resume after so many epochs, as far as rows and
// gradients of earlier epochs go.
func (p *Method) rests(done int) bool {
	s := &p.settings
	if s.Chained() && done > 0 {
		return false
	}
	switch s.Halo {
	case Previous:
		return done%Fresh == 0
	case Skip:
		return done%(s.Age+1) == 0
	}
	return true
}

// SavesFirst implements Method.
func (p *Method) SavesFirst() bool {
	s := &p.settings
	return s.Chained() || s.Halo != Exact && s.Halo != Sampled
}

// Gathers implements Method.
func (p *Method) Gathers() bool { return p.Worker.Parted() && p.rests(1) }

// earlyPrefix begins the names of a period's first weights in a checkpoint.
const earlyPrefix = "early."

// earlyWeights adds to checkpoints the weights at the start of a pipeline's period
// under way. The rows that its epochs see of other chunks are computed from them.
type earlyWeights struct {
	piped  *Method
	device tensor.Device
	model  *nn.Model
}

// Sections returns the weights, if there are periods.
func (e *earlyWeights) Sections(int) []checkpoint.Section {
	if e.piped.Worker == nil || e.piped.Worker.PeriodWeights().None() {
		return nil
	}
	return []checkpoint.Section{checkpoint.Row(earlyPrefix, e.device, e.piped.Worker.PeriodWeights(), e.model.Params())}
}

// Read reads them from a checkpoint, if it has any.
func (e *earlyWeights) Read(f *checkpoint.File, _ int) ([][]float32, error) {
	if !f.Has(earlyPrefix + e.model.Params()[0].Name) {
		return nil, nil
	}
	row, err := f.Row(earlyPrefix, e.model.Params(), e.model.Size())
	return [][]float32{row}, err
}

// Adopt hands them to the worker, which is opened later.
func (e *earlyWeights) Adopt(rows [][]float32, _ int) {
	if e.piped.early = nil; len(rows) > 0 {
		e.piped.early = rows[0]
	}
}

// MaxBytes is the size of all weights.
func (e *earlyWeights) MaxBytes() uint64 { return 4 * uint64(e.model.Size()) }
