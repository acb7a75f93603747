package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// piped is what a run has that trains by pipe or graph: an epoch is one step of the
// whole graph, which a worker does, and slots have no roots for this node. A nil piped is
// of a run that trains otherwise.
type piped struct {
	worker *pipe.Worker
	reads  *reads
	// early is the weights that a checkpoint has told of, with which the period under
	// way began; nil: none has.
	early []float32
	// predicted is what an epoch takes, as far as the plan knew; nil: nothing was measured.
	predicted *pipe.Prediction
	// rows are all that stages train, or keep, a part of each: the weights first, which is
	// what judging takes, and then what only a checkpoint has beside them. So many of them
	// are settled: this node has all of their columns, and so have all.
	rows    []tensor.Matrix
	settled int
	told    string // what this node tells of the weights of the last epoch, where it has not all
}

// newPiped is nil where there is no pipeline.
func (t *learner) newPiped() *piped {
	if !strategy.Piped(t.recipe.Sharing.Strategy) {
		return nil
	}
	return &piped{}
}

// openPiped makes the worker.
func (t *learner) openPiped(ctx context.Context) error {
	p := t.piped
	if p == nil {
		return nil
	}
	task := pipe.Task{
		Model: t.model, Device: t.device, Weights: t.weights, Gradients: t.gradients, Topology: t.data.topology,
		Labels: t.data.learnt, Loss: t.lossOf,
	}
	layout := newAlone(t.data, false).layout
	if s := t.shared; s != nil {
		if !s.replicated {
			return &agreed{fmt.Errorf("the strategy %s has each node know all edges, and some node has no memory for them: give it more, or take another --strategy", s.strategy)}
		}
		layout, task.Exchange, task.Work = s.layout, s.exchange, s.work
	}
	if err := t.recipe.Sharing.CheckShards(len(t.data.shards)); err != nil {
		return err
	}
	task.Seed = t.recipe.Seed
	if err := t.planPiped(ctx, &task, layout); err != nil {
		return err
	}
	p.reads = &reads{data: t.data, device: t.device}
	task.Features = p.reads
	var err error
	if p.worker, err = pipe.New(ctx, task); err != nil {
		return err
	}
	p.reads.plan(p.worker)
	return p.reads.bring(ctx, t)
}

// start takes the worker's memory, once there is room for it.
func (p *piped) start(t *learner) error {
	if p == nil {
		return nil
	}
	if err := p.worker.Open(); err != nil {
		return err
	}
	t.device.Zero(t.gradients) // of others' columns there are none
	p.rows = []tensor.Matrix{t.weights}
	for _, m := range t.optimizer.Moments() {
		p.rows = append(p.rows, m.Row)
	}
	if early := p.worker.PeriodWeights(); !early.None() {
		p.rows = append(p.rows, early)
	}
	p.settled = len(p.rows) // all nodes begin with the same
	if row := p.worker.PeriodWeights(); !row.None() && p.early != nil {
		t.device.Write32(row, p.early)
		p.worker.Resumed()
	}
	return p.reads.open()
}

func (p *piped) close() {
	if p == nil || p.worker == nil {
		return
	}
	p.worker.Close()
	p.reads.close()
}

// bytes is the memory of all that it takes, features included.
func (p *piped) bytes() uint64 {
	if p == nil {
		return 0
	}
	entries := 0.0
	if p.reads.data.features.Sparse() {
		entries = p.reads.data.entries
	}
	return p.worker.Bytes(entries) + p.reads.bytes()
}

// step trains on the whole graph, and is learner.step's.
func (p *piped) step(ctx context.Context, t *learner, s *slot, rate float64) (loss float64, waited time.Duration, err error) {
	if wrong := t.doubt(); wrong != "" {
		return 0, 0, t.diverged(s, wrong) // all nodes began with the same
	}
	loss, err = p.epoch(ctx, t, s, rate)
	return loss, p.worker.Waited(), err
}

func (p *piped) epoch(ctx context.Context, t *learner, s *slot, rate float64) (float64, error) {
	var mine pipe.Word
	if t.rests(t.at.Epoch) && (t.wants() || t.asked.Load() != nil) {
		mine = pipe.Settle
	}
	loss, said, err := p.worker.Epoch(ctx, t.at.Epoch, t.key(s), mine, &s.tally)
	if err != nil {
		return loss, fmt.Errorf("epoch %d: %w", t.at.Epoch, err)
	}
	s.gathered += p.reads.rows
	t.at.Under.Edges += uint64(p.worker.Edges())
	if !isNumber(loss) {
		return loss, t.diverged(s, "the loss")
	}
	if said&pipe.Unsound != 0 {
		return loss, t.diverged(s, "the sum of the gradients")
	}
	from, to := p.worker.Own()
	t.optimizer.StepColumns(t.weights, t.gradients, from, to-from, rate)
	p.settled = 0
	if err := p.settleAfter(ctx, t, said, &s.tally); err != nil {
		return loss, fmt.Errorf("epoch %d: %w", t.at.Epoch, err)
	}
	return loss, nil
}

// lossOf is the loss of rows that the pipeline answers, of the mean over all training
// vertices.
func (t *learner) lossOf(dz, z tensor.Matrix, labels []int32) float64 {
	return t.loss(dz, z, labels, 1/float64(len(t.data.training)))
}

// learnt sets the labels of the vertices from first on: graph.NoLabel where nothing is
// learnt.
func (d *data) learnt(labels []int32, first uint32) {
	marks := make([]graph.Mark, len(labels))
	d.known(labels, marks, int(first))
	for i, mark := range marks {
		if mark != graph.Train {
			labels[i] = graph.NoLabel
		}
	}
}

// checkPiped says in a sentence what a recipe can't have beside pipe or graph.
func (r *Recipe) checkPiped() error {
	name := r.Sharing.Strategy
	switch {
	case !strategy.Piped(name):
		return nil
	case r.Batch > 0:
		return fmt.Errorf("--batch %d: the strategy %s trains on the whole graph in each step: leave it out, or take another --strategy", r.Batch, name)
	case r.sampled():
		return fmt.Errorf("--fanout: the strategy %s trains with all neighbours: leave it out, or take another --strategy", name)
	case r.BF16:
		return errors.New("--set train.products=bf16: pipelines are computed in f32: leave it out, or take another --strategy")
	}
	return nil
}

// sampled says whether neighbours are drawn.
func (r *Recipe) sampled() bool {
	for _, k := range r.Fanouts {
		if k > 0 {
			return true
		}
	}
	return false
}
