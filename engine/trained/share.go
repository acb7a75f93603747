package trained

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Share is a node's part of an epoch, which it sends to all others at the end.
type Share struct {
	Rows         epoch.Rows
	Edges, Slots uint64
	Seen         uint64 // edges, where groups train in isolation
	Sent         peer.Counts
	Phases       epoch.Phases
	Seconds      float64
	Hash         [sha256.Size]byte // of all weights; zeros: others report it
	Unsound      uint64            // 1: a weight that this node trains, of a part of them, is not finite
	Schedule     uint64            // digest of the entry of the next epoch; 0: there is no schedule
}

// Differing is the error of nodes that did the same and came to different weights.
type Differing struct {
	Epoch int
	Nodes [2]string
	Model string // of a sweep: the name of the model
}

func (e *Differing) Error() string {
	return fmt.Sprintf("after epoch %d, node %s and node %s have different weights%s, though both made the same updates: one of them has faulty memory, or computes with other instructions than the other (see {doctor}): train on nodes of one kind, or without the one that is at fault", e.Epoch, e.Nodes[0], e.Nodes[1], e.Model)
}

// Sign sets the share's hash to that of all weights, in hex; "": others report it.
func (h *Share) Sign(hash string) error {
	b, err := hex.DecodeString(hash)
	if n := copy(h.Hash[:], b); err != nil || n != len(h.Hash) && n != 0 {
		return errors.New("the digest of the weights is not one in hex")
	}
	return nil
}

// Read parses the share of another node.
func (h *Share) Read(m []byte) error {
	if n, err := binary.Decode(m, binary.LittleEndian, h); err != nil || n != len(m) {
		return fmt.Errorf("sent a malformed epoch report (%d bytes)", len(m))
	}
	p := h.Phases
	for _, x := range []float64{h.Seconds, p.Sample, p.Gather, p.Compute, p.Reduce, p.Wait} {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return fmt.Errorf("says that it took %g s for an epoch, or a part of it", x)
		}
	}
	return nil
}

// Add adds one node's share to the epoch of all.
func (h *Share) Add(e *Epoch, nodes float64) {
	e.Rows.Add(h.Rows)
	e.Edges += h.Edges
	e.Slots = max(e.Slots, int(min(h.Slots, 1<<20)))
	e.Sent.Add(h.Sent)
	e.Seconds = max(e.Seconds, h.Seconds)
	e.Phases.AddShare(h.Phases, 1/nodes)
}
