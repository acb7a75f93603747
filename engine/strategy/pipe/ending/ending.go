// Package ending is the message with which a node of a pipeline ends an epoch: its part of the
// loss, what all must hear, and, where weights are few, the gradients of its stage.
package ending

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A Word is what nodes say to all others at the end of an epoch, besides their losses.
type Word uint8

// The words, which are bits.
const (
	// Unsound: the sum of some stage's gradients is not finite.
	Unsound Word = 1 << iota
	// Some node wants all to have all weights now, for a checkpoint or a train.Mark; Late: not yet.
	Settle
	Mark
	Late
	words
)

// Bytes is the length of a message without gradients.
const Bytes = 8 + 1

// Append adds a message to b.
func Append(b []byte, loss float64, word Word, gradients []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(loss))
	return append(append(b, byte(word)), gradients...)
}

// Read parses a message with so many bytes of gradients.
func Read(b []byte, gradients int) (loss float64, word Word, rest []byte, err error) {
	if len(b) != Bytes+gradients || b[8] >= byte(words) {
		return 0, 0, nil, fmt.Errorf("sent a malformed end of an epoch (%d bytes): run the same version of hopmesh on all nodes of the job", len(b))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), Word(b[8]), b[Bytes:], nil
}

// Few reports whether gradients go along with the word that ends an epoch of a model on so many
// vertices. They are then few beside the rows that travel in each epoch. All nodes make the updates of
// all stages: a lost node takes nothing with it, and nobody waits for weights.
func Few(m *nn.Model, vertices int) bool {
	const (
		share = 64      // of the numbers of one layer's rows
		most  = 1 << 18 // weights, so that a message stays short
	)
	stages := m.Stages()
	return m.Size() <= most && m.Size() <= vertices*stages[len(stages)-1].In/share
}

// Shared is which gradients nodes send along with their words. With the zero value they send none.
type Shared struct {
	parts   []part // by node; nil: none
	self    int
	message []byte // of this node, used again
}

// A part is a range of columns.
type part struct{ from, to int }

// Share returns what the nodes of stages send along: the first member of each its columns, if they are
// few.
func Share(m *nn.Model, shape *arrange.Shape, seats *arrange.Seats, cuts []int, w peer.Work, number tensor.Type) Shared {
	s := Shared{self: w.Self}
	if !Few(m, int(shape.Firsts[len(shape.Firsts)-1])) {
		return s
	}
	s.parts = make([]part, len(w.Nodes))
	for stage := range seats.Stages {
		p := &s.parts[seats.Members(stage)[0]]
		p.from, p.to = arrange.Columns(m, cuts[stage], cuts[stage+1])
	}
	own := s.parts[s.self]
	s.message = make([]byte, 0, Bytes+(own.to-own.from)*number.Bytes())
	return s
}

// Any reports whether any are sent.
func (s *Shared) Any() bool { return s.parts != nil }

// Of returns the columns of a row of gradients that a node sends along; nil: none.
func (s *Shared) Of(node int, row tensor.Matrix) []byte {
	if s.parts == nil || s.parts[node].from == s.parts[node].to {
		return nil
	}
	p := s.parts[node]
	return plain.Of(row.View(0, 1, p.from, p.to-p.from))
}

// Message returns what this node ends an epoch with. It is valid until the next one.
func (s *Shared) Message(loss float64, word Word, gradients tensor.Matrix) []byte {
	s.message = Append(s.message[:0], loss, word, s.Of(s.self, gradients))
	return s.message
}
