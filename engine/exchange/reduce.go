package exchange

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Number is an element of a sum.
type Number interface{ ~float32 | ~float64 }

// A Note is a node's message to all others beside the numbers of a sum.
type Note struct {
	Loss  float64 // of the rows it computed, summed
	Flags uint64  // up to the users
}

// noteSize is how many bytes of an answer are the note.
const noteSize = 16

func (n Note) append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, math.Float64bits(n.Loss))
	return binary.LittleEndian.AppendUint64(to, n.Flags)
}

func noteOf(b []byte) Note {
	return Note{Loss: math.Float64frombits(binary.LittleEndian.Uint64(b)), Flags: binary.LittleEndian.Uint64(b[8:])}
}

// A Round is one sum over all nodes.
type Round struct {
	Tag   Tag // but for its Lane
	Note  Note
	Tally *peer.Tally
	// Spans are, for each node, the rows that it contributes to a sum in the order of
	// the tree. nil: each node contributes one row, and rows are added up in the order
	// of nodes.
	Spans [][]Span
}

// rows returns how many rows a node contributes.
func (r *Round) rows(node int) int {
	if r.Spans == nil {
		return 1
	}
	return len(r.Spans[node])
}

// A share is the columns that one node adds up: whole runs of 16 numbers, so that no
// two nodes' shares have a cache line in common. It may be empty.
const shareUnit = 16

func share(columns, node, nodes int) (first, end int) {
	units := (columns + shareUnit - 1) / shareUnit
	return min(columns, units*node/nodes*shareUnit), min(columns, units*(node+1)/nodes*shareUnit)
}

// summing is the memory that Reduce keeps from one call to the next.
type summing struct {
	round
	rows   [][]byte
	pieces []piece
	notes  []Note
	sum    *offer // of this node's share
}

// Reduce sets to to the sum of all nodes' rows, the same bits on each of them, and
// returns the notes of all, which are valid until the next Reduce. Each node takes its
// share of the columns from all others, adds it up, and then takes the other shares'
// sums: each number crosses the network 2(N-1)/N times, in two rounds. Where rows are
// few and short, each node takes all of them and adds up all columns: one round. mine
// must not change until to is full; to may be mine[0] where there is one row. On failure
// to is unchanged, and others may still take mine: they learn from the plan that this
// node's run has ended.
func Reduce[T Number](ctx context.Context, x *Exchange, r Round, mine [][]T, to []T) ([]Note, error) {
	if err := checkRows(x, &r, mine, to); err != nil {
		return nil, err
	}
	s := &x.sums
	if x.work.Alone() && len(mine) == 1 {
		copy(to, mine[0])
		s.notes = append(s.notes[:0], r.Note)
		return s.notes, nil
	}
	s.rows = s.rows[:0]
	for _, row := range mine {
		s.rows = append(s.rows, raw(row))
	}
	var sum []byte
	var err error
	apart := !whole(len(x.work.Nodes), len(to)*sizeOf[T](), r.rows)
	if apart {
		err = reduceApart[T](ctx, s, &r, len(to))
	} else {
		sum, err = reduceWhole[T](ctx, s, &r, len(to))
	}
	clear(s.rows)
	if err != nil {
		return nil, fmt.Errorf("add up over all nodes at epoch %d, step %d: %w", r.Tag.Epoch, r.Tag.Step, err)
	}
	if apart {
		s.put(raw(to), len(to), sizeOf[T]())
	} else {
		copy(raw(to), sum)
	}
	return s.notes, nil
}

// reduceApart has each node add up its share. The sums stay in the round's memory.
func reduceApart[T Number](ctx context.Context, s *summing, r *Round, columns int) error {
	if err := s.takeRows(ctx, r, columns, sizeOf[T]()); err != nil {
		return err
	}
	if s.sum != nil {
		to := s.sum.rows[0]
		copy(to, addUp[T](s, r, len(to)))
	}
	if err := s.takeSums(ctx, r, columns, sizeOf[T]()); err != nil {
		return err
	}
	tag := r.Tag
	tag.Lane = LaneReduce
	return s.x.Withdraw(ctx, tag)
}

// reduceWhole has each node add up everything, and returns the sum.
func reduceWhole[T Number](ctx context.Context, s *summing, r *Round, columns int) ([]byte, error) {
	if err := s.takeWhole(ctx, r, columns*sizeOf[T]()); err != nil {
		return nil, err
	}
	return addUp[T](s, r, columns*sizeOf[T]()), nil
}

func checkRows[T Number](x *Exchange, r *Round, mine [][]T, to []T) error {
	if r.Spans != nil && len(r.Spans) != len(x.work.Nodes) {
		return fmt.Errorf("a sum over %d nodes is given the spans of %d", len(x.work.Nodes), len(r.Spans))
	}
	if want := r.rows(x.work.Self); len(mine) != want {
		return fmt.Errorf("this node brings %d rows to a sum in place of %d", len(mine), want)
	}
	for _, row := range mine {
		if len(row) != len(to) {
			return fmt.Errorf("a row of %d columns is brought to a sum of %d", len(row), len(to))
		}
	}
	return nil
}
