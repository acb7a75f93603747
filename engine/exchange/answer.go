package exchange

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A question without a body asks for all that is offered under a tag. Otherwise its
// body selects the bytes of each row, after the head: the first and the end, 8 bytes
// each, little-endian. What follows in it, of sums alone, is what the node that asks
// offers to the one that it asks.
const columnsSize = 16

func putColumns(to []byte, first, end int) {
	binary.LittleEndian.PutUint64(to, uint64(first))
	binary.LittleEndian.PutUint64(to[8:], uint64(end))
}

// answer implements peer.Handler.
func (x *Exchange) answer(ctx context.Context, from int, q peer.Query, reply func(parts ...[]byte) error) error {
	t := tagOf(q)
	switch sum := t.Lane == LaneReduce || t.Lane == LaneSum; {
	case len(q.Body) == 0 || len(q.Body) == columnsSize:
	case !sum || len(q.Body) < columnsSize || len(q.Body) > columnsSize+swapBytes:
		return fmt.Errorf("%w: %d bytes are not a question for columns", peer.ErrRefused, len(q.Body))
	}
	o, err := x.await(ctx, t)
	if err != nil {
		return err
	}
	defer x.leave(o)
	if len(q.Body) > columnsSize {
		if err := x.sums.brought(from, t, q.Body[columnsSize:]); err != nil {
			return err
		}
	}
	x.mu.Lock()
	parts, err := x.cut(o, q)
	x.mu.Unlock()
	if err != nil {
		return err
	}
	err = reply(*parts...)
	x.mu.Lock()
	clear(*parts)
	x.slips = append(x.slips, parts)
	x.mu.Unlock()
	return err
}

// cut returns the parts of an offer that a question asks for, in a slice that is
// reused. The caller holds the lock.
func (x *Exchange) cut(o *offer, q peer.Query) (*[][]byte, error) {
	first, end, whole := uint64(0), uint64(0), len(q.Body) == 0
	if !whole {
		first, end = binary.LittleEndian.Uint64(q.Body), binary.LittleEndian.Uint64(q.Body[8:])
	}
	if first > end {
		return nil, fmt.Errorf("%w: columns from byte %d to %d are none", peer.ErrRefused, first, end)
	}
	if o.withdrawn && (whole || first < end) {
		return nil, fmt.Errorf("%w: what was offered for %s is withdrawn", peer.ErrRefused, o.tag)
	}
	var parts *[][]byte
	if n := len(x.slips); n > 0 {
		parts, x.slips = x.slips[n-1], x.slips[:n-1]
	} else {
		parts = new([][]byte)
	}
	*parts = append((*parts)[:0], o.head)
	bytes := len(o.head)
	for _, row := range o.rows {
		if !whole && end > uint64(len(row)) {
			return nil, fmt.Errorf("%w: columns up to byte %d are asked for, of rows of %d", peer.ErrRefused, end, len(row))
		}
		if !whole {
			row = row[first:end]
		}
		*parts = append(*parts, row)
		bytes += len(row)
	}
	if bytes > q.Limit {
		return nil, fmt.Errorf("%w: %d bytes are asked for at most, and %d are offered for %s", peer.ErrRefused, q.Limit, bytes, o.tag)
	}
	return parts, nil
}
