package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// links is what an evaluation of pairs keeps: the embeddings of all vertices, which nodes
// exchange, so that each of them scores all pairs and comes to the same.
type links struct {
	scorer *link.Scorer
	rows   []float32
	w      []float64 // the decoder's weights
}

// LinkBytes returns what the evaluation of pairs takes of memory beside inference; 0: vertices
// are evaluated.
func (e *Evaluator) LinkBytes() uint64 {
	if e.links == nil {
		return 0
	}
	nodes := 1
	if !e.halo.nodes.alone() {
		nodes = len(e.halo.nodes.Work.Nodes)
	}
	return PairBytes(&e.data.About, e.halo.own.rows, nodes, e.links.scorer)
}

// PairBytes is LinkBytes of a node that has so many of a graph's vertices.
func PairBytes(about *dataset.About, own, nodes int, scorer *link.Scorer) uint64 {
	row := 4 * uint64(about.Classes)
	bytes := row * about.Vertices
	if nodes > 1 {
		bytes += exchange.RowBytes(row*uint64(own), bytes, nodes)
	}
	return bytes + scorer.Bytes()
}

// evaluateLinks is Evaluate where pairs are learnt.
func (e *Evaluator) evaluateLinks(ctx context.Context, v *View, at Moment, fault func() error) (r *Result, err error) {
	start := time.Now()
	h := e.halo
	e.turn(v)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.dropFar()) // nobody else reads it
		}
	}()
	if !h.nodes.alone() {
		h.parcels.begin(ctx, at)
		defer func() { err = errors.Join(err, h.end(ctx, err != nil)) }()
		if err := h.meet(ctx, e.Inference); err != nil {
			return nil, err
		}
	}
	e.planned = e.plan(len(e.now.stages)) // nodes have said what they need
	columns := e.data.About.Classes
	n := int(e.data.About.Vertices) * columns
	e.links.rows = slices.Grow(e.links.rows[:0], n)[:n] // the same each time
	rows := e.links.rows
	if err := e.run(ctx, len(e.now.stages), func(first int, z tensor.Matrix) error { return e.readRows(ctx, rows, first, z) }); err != nil {
		return nil, err
	}
	if err := fault(); err != nil {
		return nil, err
	}
	r = &Result{}
	if !h.nodes.alone() {
		tag := exchange.Tag{Epoch: h.parcels.epoch, Step: h.parcels.step, Index: linkMessage}
		if err := exchange.GatherRows(ctx, h.nodes.Exchange, tag, &h.nodes.Layout, rows, columns, &h.parcels.tally); err != nil {
			return nil, fmt.Errorf("exchange the embeddings of the evaluation: %w", err)
		}
	}
	w := e.links.weightsOf(e.device, v)
	r.Metrics = new(epoch.Metrics)
	for _, part := range []struct {
		mark    graph.Mark
		scores  *Scores
		metrics *map[string]float64
	}{{graph.Train, &r.Train, &r.Metrics.Train}, {graph.Validation, &r.Val, &r.Metrics.Val}, {graph.Test, &r.Test, &r.Metrics.Test}} {
		of, err := e.links.scorer.Part(ctx, part.mark, rows, columns, w)
		if err != nil {
			return nil, err
		}
		if *part.scores = (Scores{Count: of.Count, Loss: of.Loss}); of.Count > 0 {
			*part.metrics = task.OfPairs(&of, &e.data.Links.Spec, e.data.Links.Ranks != 0 && part.mark != graph.Train)
		}
	}
	if r.Seconds = time.Since(start).Seconds(); !h.nodes.alone() {
		err = e.exchangeCost(ctx, r)
	}
	return r, err
}

// weightsOf reads the weights of a model's decoder, of which there may be none.
func (l *links) weightsOf(device tensor.Device, v *View) []float64 {
	if l.w = slices.Grow(l.w[:0], v.model.Added())[:v.model.Added()]; len(l.w) > 0 {
		device.Read(l.w, v.model.AddedOf(v.weights))
	}
	return l.w
}

// readRows copies some rows of this node to their places among those of all vertices.
func (e *Evaluator) readRows(ctx context.Context, to []float32, first int, z tensor.Matrix) error {
	own := &e.halo.own
	for row := 0; row < z.Rows; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &own.spans[own.at(first+row)]
		n := own.end(first+row) - first - row
		v := int(s.first) + first + row - s.row
		e.device.Read32(to[v*z.Cols:(v+n)*z.Cols], z.RowRange(row, n))
		row += n
	}
	return nil
}

// exchangeCost adds up what the evaluation took on all nodes. This message's own size is known.
func (e *Evaluator) exchangeCost(ctx context.Context, r *Result) error {
	h := e.halo
	message := appendCost(nil, r.Seconds, h.parcels.tally.Read())
	tag := exchange.Tag{Epoch: h.parcels.epoch, Step: h.parcels.step, Index: costMessage}
	all, err := h.nodes.Exchange.Gather(ctx, tag, message, nil)
	if err != nil {
		return fmt.Errorf("exchange what the evaluation took: %w", err)
	}
	others := uint64(len(all) - 1)
	for node, of := range all {
		if len(of) != costBytes {
			return fmt.Errorf("node %s sent %d bytes on what the evaluation took, in place of %d", h.nodes.name(node), len(of), costBytes)
		}
		if err := r.absorbCost(of); err != nil {
			return fmt.Errorf("node %s sent malformed figures of the evaluation: %w", h.nodes.name(node), err)
		}
		r.Sent.Bytes[peer.Control] += others * uint64(peer.QueryFraming+peer.AnswerFraming+costBytes)
		r.Sent.Requests[peer.Control] += others
	}
	return nil
}
