package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A message of scores is what a node has judged: how long it took, what it asked for,
// what each mark's judge has counted, and the losses of its shards, in their order.

// message makes that of this node.
func (t *trainer) message(to []byte, seconds float64, sent strategy.Counts) []byte {
	number := func(x float64) { to = binary.LittleEndian.AppendUint64(to, math.Float64bits(x)) }
	number(seconds)
	for k := range strategy.Kinds {
		to = binary.LittleEndian.AppendUint64(to, sent.Bytes[k])
		to = binary.LittleEndian.AppendUint64(to, sent.Requests[k])
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		to = t.judges.of[mark].Export(to)
	}
	for shard := range t.judges.losses {
		if t.shared.owns(shard) {
			for mark := graph.Train; mark <= graph.Test; mark++ {
				number(t.judges.losses[shard][mark])
			}
		}
	}
	return to
}

// messageBytes is how long the message of a node is.
func (t *trainer) messageBytes(node int) int {
	n := 8 + 16*int(strategy.Kinds)
	for mark := graph.Train; mark <= graph.Test; mark++ {
		n += t.judges.of[mark].Exported()
	}
	for _, owner := range t.shared.layout.Owners {
		if owner == node {
			n += 8 * int(graph.Test-graph.Train+1)
		}
	}
	return n
}

// absorb adds what a node says to e and to the judges. What was judged here is there
// already.
func (t *trainer) absorb(e *Eval, node int, from []byte) error {
	if want := t.messageBytes(node); len(from) != want {
		return fmt.Errorf("it has %d bytes in place of %d", len(from), want)
	}
	next := func() uint64 {
		x := binary.LittleEndian.Uint64(from)
		from = from[8:]
		return x
	}
	seconds := math.Float64frombits(next())
	if !isNumber(seconds) || seconds < 0 {
		return fmt.Errorf("it took %g seconds", seconds)
	}
	e.Seconds = max(e.Seconds, seconds)
	var sent strategy.Counts
	for k := range strategy.Kinds {
		sent.Bytes[k], sent.Requests[k] = next(), next()
	}
	e.Sent.Add(sent)
	if node == t.shared.work.Self {
		return nil
	}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		j := t.judges.of[mark]
		if err := j.Merge(from[:j.Exported()], int(t.data.about.Vertices)); err != nil {
			return err
		}
		from = from[j.Exported():]
	}
	for shard, owner := range t.shared.layout.Owners {
		if owner == node {
			for mark := graph.Train; mark <= graph.Test; mark++ {
				t.judges.losses[shard][mark] = math.Float64frombits(next())
			}
		}
	}
	return nil
}

// mergeScores merges what all nodes have judged, in the same way on each of them.
//
// What the message itself takes can't be said in it, but is known: it is asked for by
// each node of each other, and its size is that of the answer.
func (t *trainer) mergeScores(ctx context.Context, e *Eval) error {
	h := t.shared.halo
	if t.recipe.Metric == ROCAUC {
		if err := t.exchangeLogits(); err != nil {
			return err
		}
	}
	h.message = t.message(h.message[:0], e.Seconds, h.tally.Read())
	tag := exchange.Tag{Epoch: h.under.epoch, Step: h.under.step, Index: scoreMessage}
	all, err := t.shared.exchange.Gather(ctx, tag, h.message, &h.tally)
	if err != nil {
		return fmt.Errorf("exchange the scores of the evaluation: %w", err)
	}
	others := uint64(len(all) - 1)
	for node, message := range all {
		if err := t.absorb(e, node, message); err != nil {
			return fmt.Errorf("what node %s says of the evaluation can't be: %w", t.shared.work.Nodes[node], err)
		}
		e.Sent.Bytes[strategy.Control] += others * uint64(strategy.QueryFraming+strategy.AnswerFraming+len(message))
		e.Sent.Requests[strategy.Control] += others
	}
	return nil
}
