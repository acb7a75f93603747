package train

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A share is what a node did of an epoch, as it tells all others at its end.
type share struct {
	Rows, Remote, Edges, Slots uint64
	Seen                       uint64 // edges, where groups train in isolation
	Bytes, Requests            [strategy.Kinds]uint64
	Phases                     Phases
	Seconds                    float64
	Hash                       [sha256.Size]byte // of all weights; zeros: others tell it
	Unsound                    uint64            // 1: a weight that it trains, where each trains some, is not finite
}

// Differing says that nodes did the same and came to different weights.
type Differing struct {
	Epoch int
	Nodes [2]string
	Model string // of a sweep: which of its models, in words
}

func (e *Differing) Error() string {
	return fmt.Sprintf("after epoch %d, node %s and node %s have different weights%s, though both made the same updates: one of them has faulty memory, or computes with other instructions than the other (see `hopmesh doctor`): train on nodes of one kind, or without the one that is at fault", e.Epoch, e.Nodes[0], e.Nodes[1], e.Model)
}

// agree makes of what this node did of an epoch what all nodes did, the same on each of
// them.
func (t *learner) agree(ctx context.Context, e *Epoch) error {
	s := t.shared
	mine := share{
		Rows: e.Rows, Remote: e.Remote, Edges: e.Edges, Slots: uint64(e.Slots),
		Bytes: e.Sent.Bytes, Requests: e.Sent.Requests, Phases: e.Phases, Seconds: e.Seconds,
	}
	if t.isolated != nil {
		mine.Seen = t.isolated.seen.edges
	}
	if err := mine.sign(e.Hash); err != nil {
		return err
	}
	if !t.piped.settledAll() && !t.sound() {
		mine.Unsound = 1
	}
	// The message can't count itself: its size is known.
	others := uint64(len(s.work.Nodes) - 1)
	mine.Requests[strategy.Control] += others
	mine.Bytes[strategy.Control] += others * uint64(strategy.QueryFraming+strategy.AnswerFraming+binary.Size(&mine))
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return fmt.Errorf("encode what this node did of epoch %d: %w", e.Epoch, err)
	}
	tag := exchange.Tag{Epoch: uint32(e.Epoch), Step: uint32(e.Steps), Lane: exchange.LaneMessages, Index: uint32(t.index)}
	messages, err := s.exchange.Gather(ctx, tag, message, nil)
	if err != nil {
		return fmt.Errorf("exchange what each node did of epoch %d: %w", e.Epoch, err)
	}
	e.Rows, e.Remote, e.Edges, e.Slots, e.Sent, e.Phases, e.Seconds = 0, 0, 0, 0, strategy.Counts{}, Phases{}, 0
	seen, unsound, told := uint64(0), false, -1
	var first [sha256.Size]byte
	for node, m := range messages {
		var of share
		if err := of.read(m); err != nil {
			return fmt.Errorf("node %s %w", s.name(node), err)
		}
		seen, unsound = seen+of.Seen, unsound || of.Unsound > 0
		switch {
		case of.Hash == [sha256.Size]byte{}:
		case told < 0: // the same of all, unless devices are mixed
			told, first = node, of.Hash
			e.Hash = hex.EncodeToString(first[:])
		case of.Hash != first && !s.mixed:
			d := &Differing{Epoch: e.Epoch, Nodes: [2]string{s.name(told), s.name(node)}}
			if model := t.called(); model != "" {
				d.Model = " of " + model
			}
			return &agreed{d}
		}
		of.add(e, float64(len(messages)))
	}
	if unsound {
		return t.diverged(nil, "a weight")
	}
	e.Strategy, e.Why = s.strategy, s.why
	if t.piped != nil {
		e.Predicted = t.piped.predicted
	}
	if t.isolated != nil {
		e.see(t.isolated, seen, t.at.Last.Seen)
	}
	return nil
}

func (h *share) sign(hash string) error {
	b, err := hex.DecodeString(hash)
	if n := copy(h.Hash[:], b); err != nil || n != len(h.Hash) && n != 0 {
		return errors.New("the digest of the weights is none")
	}
	return nil
}

// read reads what came from another node.
func (h *share) read(m []byte) error {
	if n, err := binary.Decode(m, binary.LittleEndian, h); err != nil || n != len(m) {
		return fmt.Errorf("tells in %d bytes what it did of an epoch, which is not what that takes", len(m))
	}
	p := h.Phases
	for _, x := range []float64{h.Seconds, p.Sample, p.Gather, p.Compute, p.Reduce, p.Wait} {
		if !isNumber(x) || x < 0 {
			return fmt.Errorf("says that it took %g s for an epoch, or a part of it", x)
		}
	}
	return nil
}

// add adds one node's share to the epoch of all.
func (h *share) add(e *Epoch, nodes float64) {
	e.Rows += h.Rows
	e.Remote += h.Remote
	e.Edges += h.Edges
	e.Slots = max(e.Slots, int(min(h.Slots, 1<<20)))
	e.Sent.Add(strategy.Counts{Bytes: h.Bytes, Requests: h.Requests})
	e.Seconds = max(e.Seconds, h.Seconds)
	e.Phases.Sample += h.Phases.Sample / nodes
	e.Phases.Gather += h.Phases.Gather / nodes
	e.Phases.Compute += h.Phases.Compute / nodes
	e.Phases.Reduce += h.Phases.Reduce / nodes
	e.Phases.Wait += h.Phases.Wait / nodes
}
