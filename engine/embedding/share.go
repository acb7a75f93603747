package embedding

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// window is how many words of a node's parts are taken at once, so that nothing is allocated for
// what has not come. All nodes have the same.
const window = 2 << 20

// sharing takes the parts of other nodes.
type sharing struct {
	shared bool         // parts has those of all nodes
	heads  [2][][8]byte // of messages: their lengths
	takers []*taker
	wait   sync.WaitGroup
	// The context of all steps under one parent is made once.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
}

// A taker takes one message of one node.
type taker struct {
	t     *Table
	x     *exchange.Exchange
	node  int
	to    int // the message's number: an owner, whose shards' rows are here
	tag   exchange.Tag
	tally *peer.Tally
	head  [8]byte
	words []uint32
	err   error
	do    func() // take, bound once
}

// Share has all nodes know all parts of the step's gradient at the rows that they have. Each node calls it in each step, before
// anything in which all wait for all: then others have taken what it offers, and its memory may be
// used again.
func (t *Table) Share(ctx context.Context, x *exchange.Exchange, w peer.Work, tag exchange.Tag, tally *peer.Tally) error {
	tag.Lane = exchange.LaneLearnt
	t.offer(x, tag)
	if t.parent != ctx || t.ctx.Err() != nil {
		if t.cancel != nil {
			t.cancel(nil)
		}
		t.parent = ctx
		t.ctx, t.cancel = context.WithCancelCause(ctx)
	}
	if t.takers == nil {
		for _, to := range t.held.owners() {
			for node := range w.Nodes {
				k := &taker{t: t, node: node, to: to}
				k.do = k.run
				t.takers = append(t.takers, k)
			}
		}
	}
	for _, k := range t.takers {
		if k.node != w.Self {
			k.x, k.tag, k.tally = x, tag, tally
			t.wait.Add(1)
			go k.do()
		}
	}
	t.wait.Wait()
	for _, k := range t.takers {
		words := k.words
		if k.node == w.Self {
			words = t.mine[t.turn][k.to]
		} else if k.err != nil {
			if ctx.Err() == nil {
				return context.Cause(t.ctx) // the first one
			}
			return k.err
		}
		var err error
		if t.step.parts, err = t.partsOf(t.step.parts, words, k.to); err != nil {
			return fmt.Errorf("node %s sent a malformed message of gradients of learnt rows: %w", w.Nodes[k.node], err)
		}
	}
	t.shared = true
	return nil
}

// offer offers this node's parts to all others.
func (t *Table) offer(x *exchange.Exchange, tag exchange.Tag) {
	mine := t.mine[t.turn]
	if t.heads[t.turn] == nil {
		t.heads[t.turn] = make([][8]byte, len(mine))
	}
	for to, words := range mine {
		head := t.heads[t.turn][to][:]
		binary.LittleEndian.PutUint64(head, uint64(len(words)))
		tag.Index = t.index(to)
		x.Offer(tag, head)
		for some := range slices.Chunk(words, window) {
			tag.Index++
			x.Offer(tag, plain.Bytes(some))
		}
	}
}

// index returns the index of the offer of a message's length. Its windows follow.
func (t *Table) index(to int) uint32 {
	const indices = 1 << 24 // see exchange.Tag
	return uint32(to * (indices / t.held.messages()))
}

// run takes the parts of a node. The first taker that fails ends the others.
func (k *taker) run() {
	defer k.t.wait.Done()
	if k.err = k.take(k.t.ctx); k.err != nil {
		k.t.cancel(k.err)
	}
}

func (k *taker) take(ctx context.Context) error {
	const what = "take the gradients of learnt rows: %w"
	tag := k.tag
	tag.Index = k.t.index(k.to)
	if err := k.x.Take(ctx, k.node, peer.Gradient, tag, k.head[:], k.tally); err != nil {
		return fmt.Errorf(what, err)
	}
	k.words = k.words[:0]
	for left := binary.LittleEndian.Uint64(k.head[:]); left > 0; {
		n := int(min(left, window))
		at := len(k.words)
		if uint64(at) > k.t.mostWords() {
			return fmt.Errorf(what, fmt.Errorf("node %d has more of them than there are rows", k.node))
		}
		k.words = slices.Grow(k.words, n)[:at+n]
		tag.Index++
		if err := k.x.Take(ctx, k.node, peer.Gradient, tag, plain.Bytes(k.words[at:]), k.tally); err != nil {
			return fmt.Errorf(what, err)
		}
		left -= uint64(n)
	}
	return nil
}

// Sent returns how many questions it takes to have one node's parts on another, and their bytes with
// the answers': parts of so many groups, which have read so many rows of so many columns.
func Sent(groups, rows, columns int) (questions, bytes uint64) {
	words := uint64(head*groups) + uint64(rows)*uint64(1+columns)
	questions = 1 + (words+window-1)/window
	return questions, questions*(peer.QueryFraming+peer.AnswerFraming) + 8 + 4*words
}

// mostWords is how many words the parts of a node are at most.
func (t *Table) mostWords() uint64 {
	return uint64(max(1, t.o.Shards)) * (head + uint64(t.o.Vertices)*uint64(1+t.o.Columns))
}

// partsOf appends the parts that a message of a number consists of. They lie in the message.
func (t *Table) partsOf(to []part, message []uint32, number int) ([]part, error) {
	for before := len(to); len(message) > 0; {
		if len(to)-before == max(1, t.o.Shards) {
			return to, fmt.Errorf("there are more than %d parts", len(to)-before)
		}
		if len(message) < head {
			return to, errors.New("a part is cut short")
		}
		grain, n := message[0], uint64(message[1])
		rest := message[head:]
		if size := n * uint64(1+t.o.Columns); n > uint64(t.o.Vertices) || size > uint64(len(rest)) {
			return to, fmt.Errorf("a part of %d rows has %d words", n, len(rest))
		}
		p := part{grain: grain, vertices: rest[:n], gradient: floats(rest[n:][:n*uint64(t.o.Columns)])}
		for _, v := range p.vertices {
			if v >= uint32(t.o.Vertices) {
				return to, fmt.Errorf("there is no vertex %d among %d", v, t.o.Vertices)
			}
			if t.held != nil && t.held.to(v) != number {
				return to, fmt.Errorf("the row of vertex %d is another node's", v)
			}
		}
		to, message = append(to, p), rest[n*uint64(1+t.o.Columns):]
	}
	return to, nil
}
