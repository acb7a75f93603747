package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
)

// Wire is the version of what the nodes of a run say to each other, beside what packages
// below say. It comes first in the messages about memory, which are the first of all, and
// in greetings.
const Wire = 13

// A Greeting is what each node of a run tells the others when they meet.
type Greeting struct {
	Wire            uint32
	Recipe, Dataset [sha256.Size]byte // digests
	// Where the node stands, if it has a checkpoint; Tensors is the digest of its
	// numbers, Size that of its file.
	Have, Damaged        bool
	Edges                bool   // all of the graph's are here
	Foreign              bool   // it does not compute on its processor
	Epoch, Step, Updates uint64 // of all models
	Left                 uint64 // models that have yet to do the step
	Size                 uint64
	Tensors              [sha256.Size]byte
	Tuning               tuning
}

// tuning is deal.Tuning in numbers of a fixed size.
type tuning struct {
	Nodes, Slots, Epochs uint32
	Members              uint64
	Best                 float64
	Frozen               bool
	Seen                 [2]float64
}

// SetTuning sets what the node's dealer has learned.
func (g *Greeting) SetTuning(w deal.Tuning) {
	g.Tuning = tuning{Nodes: uint32(w.Nodes), Members: w.Members, Slots: uint32(w.Slots), Epochs: uint32(w.Epochs), Best: w.Best, Frozen: w.Frozen, Seen: w.Seen}
}

// DealTuning returns what the node's dealer has learned.
func (g *Greeting) DealTuning() deal.Tuning {
	w := g.Tuning
	return deal.Tuning{Nodes: int(w.Nodes), Members: w.Members, Slots: int(w.Slots), Best: w.Best, Epochs: int(w.Epochs), Frozen: w.Frozen, Seen: w.Seen}
}

// Greet sends this node's greeting to all others and returns theirs. It returns an Agreed
// error if they can't share the run; exact demands that all compute the same bits.
func (s *Session) Greet(ctx context.Context, mine Greeting, exact bool) ([]Greeting, error) {
	mine.Wire = Wire
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return nil, fmt.Errorf("encode where this node stands: %w", err)
	}
	messages, err := s.Exchange.Gather(ctx, exchange.Tag{Lane: exchange.LaneMessages}, message, &s.Start)
	if err != nil {
		return nil, fmt.Errorf("meet the other nodes of the job: %w", err)
	}
	all := make([]Greeting, len(messages))
	s.Replicated, s.Mixed = true, false
	for node, m := range messages {
		if err := all[node].read(m); err != nil {
			return nil, &Agreed{Err: fmt.Errorf("node %s %w", s.Name(node), err)}
		}
		s.Replicated = s.Replicated && all[node].Edges
		s.Mixed = s.Mixed || all[node].Foreign != all[0].Foreign
		if err := s.compatible(&all[0], &all[node], node, exact); err != nil {
			return nil, &Agreed{Err: err}
		}
	}
	return all, nil
}

// compatible returns an error if a node can't share the run with the first.
func (s *Session) compatible(first, of *Greeting, node int, exact bool) error {
	switch {
	case exact && of.Foreign != first.Foreign:
		return fmt.Errorf("node %s computes on %s and node %s on %s, which differ in the last digits, and a job with {deterministic} has the same bits everywhere: start all of its nodes with {agent.device} cpu, or the job without {deterministic}", s.Name(0), first.computes(), s.Name(node), of.computes())
	case !bytes.Equal(of.Recipe[:], first.Recipe[:]):
		return fmt.Errorf("node %s and node %s can't share this job, since each has another recipe of it: run the same version of hopmesh on both", s.Name(0), s.Name(node))
	case !bytes.Equal(of.Dataset[:], first.Dataset[:]):
		return fmt.Errorf("node %s and node %s can't share this job, since each has another content of the dataset of it: import the dataset anew", s.Name(0), s.Name(node))
	}
	return nil
}

// computes names what a node computes on.
func (g *Greeting) computes() string {
	if g.Foreign {
		return "a GPU"
	}
	return "its processor"
}

// GatherVersioned exchanges messages of all nodes, each sent behind the version. It fails,
// on all nodes alike, unless all have this one.
func (s *Session) GatherVersioned(ctx context.Context, tag exchange.Tag, message []byte) ([][]byte, error) {
	messages, err := s.Exchange.Gather(ctx, tag, append(binary.LittleEndian.AppendUint32(nil, Wire), message...), &s.Start)
	if err != nil {
		return nil, err
	}
	return s.unversioned(messages)
}

// unversioned returns what the nodes' messages hold behind the version.
func (s *Session) unversioned(messages [][]byte) ([][]byte, error) {
	bodies := make([][]byte, len(messages))
	for node, m := range messages {
		if err := checkWire(m); err != nil {
			return nil, &Agreed{Err: fmt.Errorf("node %s %w", s.Name(node), err)}
		}
		bodies[node] = m[binary.Size(uint32(Wire)):]
	}
	return bodies, nil
}

// checkWire returns an error unless a message begins with this version.
func checkWire(m []byte) error {
	if len(m) < 4 || binary.LittleEndian.Uint32(m) != Wire {
		return errors.New("speaks of training in another version: run the same version of hopmesh on all nodes of the job")
	}
	return nil
}

// read decodes what came from another node.
func (g *Greeting) read(m []byte) error {
	if err := checkWire(m); err != nil {
		return err
	}
	if n, err := binary.Decode(m, binary.LittleEndian, g); err != nil || n != len(m) {
		return fmt.Errorf("sent a malformed greeting (%d bytes)", len(m))
	}
	if w := g.Tuning; max(g.Epoch, g.Step, g.Left, uint64(w.Epochs), uint64(w.Slots), uint64(w.Nodes)) > math.MaxInt32 || !(min(w.Best, w.Seen[0], w.Seen[1]) >= 0 && max(w.Best, w.Seen[0], w.Seen[1]) <= math.MaxFloat64) {
		return fmt.Errorf("says that it stands at step %d of epoch %d", g.Step, g.Epoch)
	}
	return nil
}

// Compare orders greetings by how far their nodes have come.
func (g *Greeting) Compare(o *Greeting) int {
	return cmp.Or(cmp.Compare(g.Epoch, o.Epoch), cmp.Compare(g.Step, o.Step), cmp.Compare(o.Left, g.Left), cmp.Compare(g.Updates, o.Updates))
}

// Furthest returns the node that all go on from, or -1 if all begin. known is how many
// epochs of the run others know of: then none begins anew.
func (s *Session) Furthest(all []Greeting, known int) (int, error) {
	best, damaged := -1, -1
	for node := range all {
		switch g := &all[node]; {
		case g.Have && (best < 0 || g.Compare(&all[best]) > 0):
			best = node
		case g.Damaged && damaged < 0:
			damaged = node
		}
	}
	if best < 0 && damaged < 0 && known > 0 {
		return -1, &Agreed{Err: fmt.Errorf("%d epochs of this job are known, and no node that is here has what it had learnt: start the nodes that trained it, and then {train.resume}, or remove the job and start another", known)}
	}
	if best < 0 && damaged >= 0 {
		return -1, &Agreed{Err: fmt.Errorf("node %s has a checkpoint of this job that is not usable, and no other node has one: remove it to begin anew", s.Name(damaged))}
	}
	return best, nil
}
