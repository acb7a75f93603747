package evaluate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A merger is what merging scores keeps from one evaluation to the next.
type merger struct {
	message []byte
}

// merge adds the scores of all other nodes, in the same way on each of them, and the
// traffic of the evaluation.
//
// What the score message itself takes can't be part of it, but is known: each node asks
// each other one for it, and the answer's size is the message's.
func (e *Evaluator) merge(ctx context.Context, r *Result) error {
	h := e.halo
	p := h.parcels
	e.merger.message = e.scorer.message(e.merger.message[:0], &h.nodes, r.Seconds, p.tally.Read())
	tag := exchange.Tag{Epoch: p.epoch, Step: p.step, Index: scoreMessage}
	all, err := h.nodes.Exchange.Gather(ctx, tag, e.merger.message, &p.tally)
	if err != nil {
		return fmt.Errorf("exchange the scores of the evaluation: %w", err)
	}
	others := uint64(len(all) - 1)
	for node, message := range all {
		if err := e.scorer.absorb(r, &h.nodes, e.data, node, message); err != nil {
			return fmt.Errorf("node %s sent malformed scores of the evaluation: %w", h.nodes.name(node), err)
		}
		r.Sent.Bytes[peer.Control] += others * uint64(peer.QueryFraming+peer.AnswerFraming+len(message))
		r.Sent.Requests[peer.Control] += others
	}
	return nil
}

// message appends the scores of this node for the others: the seconds it took, what it
// requested, the meters of each mark, the losses of its shards, in their order, and the
// pairs of the classes that it has compared.
func (s *scorer) message(to []byte, nodes *Nodes, seconds float64, sent peer.Counts) []byte {
	number := func(x float64) { to = binary.LittleEndian.AppendUint64(to, math.Float64bits(x)) }
	to = appendCost(to, seconds, sent)
	own := s.shardsOf(nodes, nodes.Work.Self)
	for mark := graph.Train; mark <= graph.Test; mark++ {
		to = s.of[mark].Export(to, own)
	}
	for shard := range s.losses {
		if nodes.owns(shard) {
			for mark := graph.Train; mark <= graph.Test; mark++ {
				number(s.losses[shard][mark])
			}
		}
	}
	return s.ranks.append(to)
}

// costBytes is the length of what appendCost appends.
const costBytes = 8 + 16*int(peer.Kinds)

// appendCost appends the seconds that a node's evaluation took, and what it requested.
func appendCost(to []byte, seconds float64, sent peer.Counts) []byte {
	to = binary.LittleEndian.AppendUint64(to, math.Float64bits(seconds))
	for k := range peer.Kinds {
		to = binary.LittleEndian.AppendUint64(to, sent.Bytes[k])
		to = binary.LittleEndian.AppendUint64(to, sent.Requests[k])
	}
	return to
}

// absorbCost adds what appendCost has appended on a node, which from begins with.
func (r *Result) absorbCost(from []byte) error {
	next := func() uint64 {
		x := binary.LittleEndian.Uint64(from)
		from = from[8:]
		return x
	}
	seconds := math.Float64frombits(next())
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0 {
		return fmt.Errorf("it took %g seconds", seconds)
	}
	r.Seconds = max(r.Seconds, seconds)
	var sent peer.Counts
	for k := range peer.Kinds {
		sent.Bytes[k], sent.Requests[k] = next(), next()
	}
	r.Sent.Add(sent)
	return nil
}

// messageBytes is the length of a node's message.
func (s *scorer) messageBytes(nodes *Nodes, node int) int {
	n, shards := costBytes, len(s.shardsOf(nodes, node))
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n += s.of[mark].Exported(shards) + 8*shards
	}
	return n + s.ranks.appended(node)
}

// absorb adds a node's message to r and to the scores. It returns an error if no node can
// have sent it. The scores of this node itself are there already.
func (s *scorer) absorb(r *Result, nodes *Nodes, d *dataset.Graph, node int, from []byte) error {
	if want := s.messageBytes(nodes, node); len(from) != want {
		return fmt.Errorf("%d bytes in place of %d", len(from), want)
	}
	if err := r.absorbCost(from); err != nil {
		return err
	}
	from = from[costBytes:]
	next := func() uint64 {
		x := binary.LittleEndian.Uint64(from)
		from = from[8:]
		return x
	}
	if node == nodes.Work.Self {
		return nil
	}
	shards := s.shardsOf(nodes, node)
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n := s.of[mark].Exported(len(shards))
		if err := s.of[mark].Merge(from[:n], shards, int(d.About.Vertices)); err != nil {
			return err
		}
		from = from[n:]
	}
	for _, shard := range shards {
		for mark := graph.Train; mark <= graph.Test; mark++ {
			s.losses[shard][mark] = math.Float64frombits(next())
		}
	}
	return s.ranks.absorb(node, from)
}
