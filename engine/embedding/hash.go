package embedding

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A digest is that of weights and of all rows of a table whose rows are on some nodes each, as a node
// that has all would make it: the owner of each stretch of shards goes on from the state of the digest
// before them.
type digest struct {
	t         *Table
	x         *exchange.Exchange
	tag       exchange.Tag
	tally     *peer.Tally
	stretches []stretch
	states    [][]byte // before each stretch, and at the end; nil: not known yet
	size      int      // of a state
}

// A stretch is shards of one owner that follow each other.
type stretch struct{ owner, first, end int }

// Hash returns the hex SHA-256 of weights and all rows, as trained.Hash does. All nodes call it at the
// end of an epoch. A node that has other weights than the first owner, or other rows of the node
// before it than that one, returns another hash.
func Hash(ctx context.Context, t *Table, x *exchange.Exchange, tag exchange.Tag, weights []float32, tally *peer.Tally) (string, error) {
	sum, err := hashOf(ctx, t, x, tag, weights, tally)
	if err != nil {
		return "", fmt.Errorf("add up the digest of learnt rows: %w", err)
	}
	return hex.EncodeToString(sum), nil
}

func hashOf(ctx context.Context, t *Table, x *exchange.Exchange, tag exchange.Tag, weights []float32, tally *peer.Tally) ([]byte, error) {
	tag.Lane = exchange.LaneLearnt
	d := &digest{t: t, x: x, tag: tag, tally: tally}
	for shard, owner := range t.held.layout.Owners {
		if n := len(d.stretches); n > 0 && d.stretches[n-1].owner == owner {
			d.stretches[n-1].end++
			continue
		}
		d.stretches = append(d.stretches, stretch{owner, shard, shard + 1})
	}
	d.states = make([][]byte, len(d.stretches)+1)
	of := sha256.New()
	of.Write(plain.Bytes(weights))
	begin, err := stateOf(of)
	if err != nil {
		return nil, err
	}
	d.size = len(begin)
	if d.maker(0) == t.held.self {
		d.offer(0, begin)
	}
	for i, s := range d.stretches {
		if s.owner != t.held.self {
			continue
		}
		after, err := d.extend(ctx, i)
		if err != nil {
			return nil, err
		}
		d.offer(i+1, after)
	}
	same, err := d.agrees(ctx, begin)
	if err != nil {
		return nil, err
	}
	last, err := d.state(ctx, len(d.stretches))
	if err != nil {
		return nil, err
	}
	if of, err = digestOf(last); err != nil {
		return nil, err
	}
	if !same {
		of.Write(begin)
		of.Write(plain.Bytes(t.rows))
	}
	return of.Sum(nil), nil
}

// agrees reports whether this node's weights are those of the first owner, and its rows of the node
// before it those of that node.
func (d *digest) agrees(ctx context.Context, begin []byte) (bool, error) {
	first, err := d.state(ctx, 0)
	if err != nil {
		return false, err
	}
	same, h := bytes.Equal(first, begin), d.t.held
	for i, s := range d.stretches {
		if s.owner == h.self || Second(s.owner, h.layout.Nodes) != h.self {
			continue
		}
		mine, err := d.extend(ctx, i)
		if err != nil {
			return false, err
		}
		of, err := d.state(ctx, i+1)
		if err != nil {
			return false, err
		}
		same = same && bytes.Equal(mine, of)
	}
	return same, nil
}

// maker returns the node that offers a state.
func (d *digest) maker(i int) int { return d.stretches[max(0, i-1)].owner }

// offer offers a state that this node has made.
func (d *digest) offer(i int, state []byte) {
	d.states[i] = state
	tag := d.tag
	tag.Index = uint32(i)
	d.x.Offer(tag, state)
}

// state returns a state, which it takes from its maker.
func (d *digest) state(ctx context.Context, i int) ([]byte, error) {
	if d.states[i] != nil {
		return d.states[i], nil
	}
	tag, state := d.tag, make([]byte, d.size)
	tag.Index = uint32(i)
	if err := d.x.Take(ctx, d.maker(i), peer.Control, tag, state, d.tally); err != nil {
		return nil, err
	}
	d.states[i] = state
	return state, nil
}

// extend returns the state after a stretch, by this node's rows.
func (d *digest) extend(ctx context.Context, i int) ([]byte, error) {
	before, err := d.state(ctx, i)
	if err != nil {
		return nil, err
	}
	of, err := digestOf(before)
	if err != nil {
		return nil, err
	}
	for shard := d.stretches[i].first; shard < d.stretches[i].end; shard++ {
		of.Write(plain.Bytes(d.t.shardRows(shard)))
	}
	return stateOf(of)
}

// stateOf returns the state of a digest.
func stateOf(of hash.Hash) ([]byte, error) {
	return of.(encoding.BinaryMarshaler).MarshalBinary()
}

// digestOf returns a digest in a state, which may be another node's.
func digestOf(state []byte) (hash.Hash, error) {
	of := sha256.New()
	if err := of.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("the state that came is not one of a digest: %w", err)
	}
	return of, nil
}
