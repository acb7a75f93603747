// Package evaluate computes exact results over the whole graph: predictions for every
// vertex, with all of its neighbours, and the scores of each part of the split. It works
// within a bound of memory, and alone or with the other nodes of a run; neither changes a
// bit of what it computes. See DESIGN.md.
package evaluate

import (
	"context"
	"errors"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Nodes is what evaluation needs of the nodes that share a run. Its zero value stands for
// one node that has the whole graph.
type Nodes struct {
	Exchange *exchange.Exchange
	Work     peer.Work
	Layout   peer.Layout
	Source   *gather.Source // of input features
}

// alone reports whether this node has the whole graph.
func (n *Nodes) alone() bool { return n.Work.Alone() }

// owns reports whether this node evaluates the vertices of a shard.
func (n *Nodes) owns(shard int) bool { return n.alone() || n.Layout.Owners[shard] == n.Work.Self }

// name is a node's.
func (n *Nodes) name(node int) string { return n.Work.Nodes[node] }

// A Moment numbers an evaluation among the messages of a run. Its step is one that no
// training step has: the epoch's steps plus the index of the model.
type Moment struct{ Epoch, Step int }

// An Evaluator scores the models of a run on all vertices. Where several nodes share the
// run, each scores those of its shards, and all of them return the same results.
type Evaluator struct {
	*Inference
	scorer scorer
	merger merger
	links  *links // where pairs are learnt; else nil
}

// New returns an evaluator of models of a task. Models are added to it; it forecasts its memory
// at once, and evaluates once it is open.
func New(d *dataset.Graph, nodes Nodes, of task.Spec) *Evaluator {
	e := &Evaluator{Inference: NewInference(d, nodes)}
	if d.Links != nil {
		e.links = &links{scorer: link.NewScorer(d.Links, of.Loss, link.Threads{Open: func(threads int) tensor.Device { return cpu.New(threads) }})}
		return e
	}
	e.scorer = newScorer(of)
	if of.Ranked() {
		e.scorer.ranks = newRanks(d, &e.halo.nodes, task.Named(of.Kind), e.scorer.task.Words())
		e.ranks = &e.scorer.ranks
	}
	return e
}

// Open makes it ready to run: see Inference.Open.
func (e *Evaluator) Open(device tensor.Device, work tensor.Arena, o Options) error {
	if e.links != nil {
		e.links.scorer.Threads(o.Threads)
	}
	return e.Inference.Open(device, work, o)
}

// Evaluate evaluates a model that was added. All nodes of the run call it for the same
// model at the same moment. Nothing is sent to other nodes, and no result returned, if
// fault, which is called once the logits have been read, returns an error.
func (e *Evaluator) Evaluate(ctx context.Context, v *View, at Moment, fault func() error) (r *Result, err error) {
	if e.links != nil {
		return e.evaluateLinks(ctx, v, at, fault)
	}
	start := time.Now()
	s, h := &e.scorer, e.halo
	s.begin(len(e.data.Shards))
	e.turn(v)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.dropFar()) // nobody else reads it
		}
		err = errors.Join(err, s.ranks.close())
	}()
	if !h.nodes.alone() {
		h.parcels.begin(ctx, at)
		defer func() {
			s.ranks.lend(h)
			err = errors.Join(err, h.end(ctx, err != nil))
		}()
		if err := h.meet(ctx, e.Inference); err != nil {
			return nil, err
		}
	}
	e.planned = e.plan(len(e.now.stages)) // nodes have said what they need
	if err := s.ranks.begin(e.planned.inFile, e.folder.dir); err != nil {
		return nil, err
	}
	if err := e.run(ctx, len(e.now.stages), func(first int, z tensor.Matrix) error { return e.scoreRows(ctx, first, z) }); err != nil {
		return nil, err
	}
	if err := fault(); err != nil {
		return nil, err
	}
	if err := s.ranks.finish(ctx, h, e.folder.dir, e.planned.inFile); err != nil {
		return nil, err
	}
	r = &Result{Seconds: time.Since(start).Seconds()}
	if !h.nodes.alone() {
		if err := e.merge(ctx, r); err != nil {
			return nil, err
		}
	}
	var m epoch.Metrics
	r.Train, m.Train = s.scores(graph.Train)
	r.Val, m.Val = s.scores(graph.Validation)
	r.Test, m.Test = s.scores(graph.Test)
	if !s.accurate {
		r.Metrics = &m
	}
	return r, nil
}

// scoreRows scores the logits of some rows, which are whole chunks.
func (e *Evaluator) scoreRows(ctx context.Context, first int, z tensor.Matrix) error {
	own := &e.halo.own
	for row := 0; row < z.Rows; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &own.spans[own.at(first+row)]
		n := own.end(first+row) - first - row
		if err := e.scorer.chunk(e.device, e.data, s.shard, int(s.first)+first+row-s.row, z.RowRange(row, n)); err != nil {
			return err
		}
		row += n
	}
	return nil
}
