package pipe

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Own returns which columns of all weights this node trains: those of its stage. It only
// has the gradients of these, and other stages' weights are as of the last Settle.
func (w *Worker) Own() (from, to int) { return w.from, w.to }

// Parted reports whether some node trains only some of the weights.
func (w *Worker) Parted() bool { return w.parted }

func parted(s *arrange.Seats, nodes int) bool { return s.Stages > 1 || len(s.Members(0)) < nodes }

// tag returns the tag of what a member of a stage offers once in an epoch.
func (w *Worker) tag(lane uint8, stage, member int) exchange.Tag {
	t := w.net.Stamp(w.epoch)
	t.Lane, t.Index = lane, uint32(stage*w.net.Nodes()+member)
	return t
}

// Settle distributes rows, of which each node has its own columns, so that all nodes have
// all columns. The rows are numbered from first on. Each number may be settled once after
// an epoch. All nodes call it with as many rows, and exchange some message before they
// settle again.
func (w *Worker) Settle(ctx context.Context, first int, rows []tensor.Matrix, tally *peer.Tally) error {
	if !w.Parted() {
		return nil
	}
	w.net.Within(ctx)
	w.net.Tally = tally
	for i, row := range rows {
		if err := w.settle(first+i, row); err != nil {
			w.net.Abandon(err)
			return fmt.Errorf("distribute the weights of all stages: %w", err)
		}
	}
	return nil
}

// settle distributes one row: each member of a stage sends a share of its columns.
func (w *Worker) settle(number int, row tensor.Matrix) error {
	for stage := range w.Seats.Stages {
		from, to := arrange.Columns(w.Model, w.Cuts[stage], w.Cuts[stage+1])
		members := w.Seats.Members(stage)
		for member, node := range members {
			first, end := shareOf(to-from, member, len(members))
			mine := w.ways != nil && stage == w.stage
			if end == first || mine && node != w.Work.Self {
				continue
			}
			part := row.View(0, 1, from+first, end-first)
			tag := w.tag(exchange.LaneSettled, stage, member)
			tag.Index += uint32(number * w.Seats.Stages * w.net.Nodes())
			if mine {
				w.net.Offer(tag, w.settling.given(number, part))
				continue
			}
			w.settling.fetch(&w.net, node).Start(tag, plain.Of(part))
		}
	}
	for _, f := range w.settling.fetches {
		if err := f.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// settling is the buffers and fetches of Settle.
type settling struct {
	fetches map[int]*traffic.Fetch // by node
	gives   [][]byte               // by row: what others take
}

// given returns a copy of this node's part of a row. Others may still read it when the
// row has changed.
func (s *settling) given(number int, part tensor.Matrix) []byte {
	for len(s.gives) <= number {
		s.gives = append(s.gives, nil)
	}
	if s.gives[number] == nil {
		s.gives[number] = plain.Room(plain.Size(part))
	}
	copy(s.gives[number], plain.Of(part))
	return s.gives[number]
}

// fetch returns the fetch of a node's share.
func (s *settling) fetch(w *traffic.Traffic, node int) *traffic.Fetch {
	if s.fetches == nil {
		s.fetches = make(map[int]*traffic.Fetch)
	}
	if s.fetches[node] == nil {
		s.fetches[node] = w.NewFetch(node, peer.Model)
	}
	return s.fetches[node]
}

// openDigest returns that of the weights, which the stage before has begun.
func openDigest(w *Worker) *traffic.Digest {
	if w.stage == 0 {
		return traffic.NewDigest(nil)
	}
	return traffic.NewDigest(w.net.NewFetch(w.Seats.Node(w.stage-1, w.ways[0].number), peer.Control))
}

// Digest returns the digest of all weights on nodes of the last stage, and nil on others.
// own is this node's part of them.
func (w *Worker) Digest(ctx context.Context, own []byte, tally *peer.Tally) (sum []byte, err error) {
	if w.ways == nil {
		return nil, nil
	}
	w.net.Within(ctx)
	w.net.Tally = tally
	if err := w.digest.Begin(w.tag(exchange.LaneDigest, w.stage-1, w.ways[0].number)); err != nil {
		w.net.Abandon(err)
		return nil, err
	}
	if w.last() {
		return w.digest.End(own), nil
	}
	w.net.Offer(w.tag(exchange.LaneDigest, w.stage, w.ways[0].number), w.digest.Pause(own))
	return nil, nil
}

// Shares reports whether all nodes have the gradients of all stages once an epoch has ended.
func (w *Worker) Shares() bool { return w.shared.Any() }

// conclude returns the sum of the losses of all nodes, and the words of all. Where nodes share
// gradients it sets those of other stages.
func (w *Worker) conclude(ctx context.Context, mine ending.Word) (sum float64, all ending.Word, err error) {
	if from, to := w.Own(); to > from && !w.Device.Finite(w.Gradients.View(0, 1, from, to-from)) {
		mine |= ending.Unsound
	}
	if w.Exchange == nil {
		return w.loss, mine, nil
	}
	defer w.net.Since(time.Now())
	messages, err := w.Exchange.Gather(ctx, w.net.Stamp(w.epoch), w.shared.Message(w.loss, mine, w.Gradients), w.net.Tally)
	if err != nil {
		return 0, 0, fmt.Errorf("add up the losses: %w", err)
	}
	for node, m := range messages {
		to := w.shared.Of(node, w.Gradients)
		loss, word, rows, err := ending.Read(m, len(to))
		if err != nil {
			return 0, 0, fmt.Errorf("node %s %w", w.Work.Nodes[node], err)
		}
		sum += loss
		all |= word
		copy(to, rows)
	}
	return sum, all, nil
}
