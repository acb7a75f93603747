package train

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// meet has each node tell each owner which of its rows it wants, once a run: first how
// many, to all, then which, to the owner alone.
func (h *halo) meet(ctx context.Context) error {
	if h.met {
		return nil
	}
	counts, err := h.counts(ctx)
	if err != nil {
		return err
	}
	self, what := h.shared.work.Self, len(h.stages)+whichRows
	asked := make([][]byte, len(counts))
	for node, n := range counts {
		if node == self {
			continue
		}
		ids := make([]byte, 0, 4*h.of(node))
		for _, v := range h.ids[h.from[node]:h.from[node+1]] {
			ids = binary.LittleEndian.AppendUint32(ids, v)
		}
		h.offer(parcel{what: what, to: node, row: 4}, ids)
		asked[node] = make([]byte, 4*n)
		t := h.takers[node]
		t.parcel, t.kind, t.to = parcel{what: what, to: self, row: 4}, strategy.Topology, asked[node]
	}
	if err := h.take(); err != nil {
		return err
	}
	for node, ids := range asked {
		if h.wanted[node], err = h.own.decode(ids); err != nil {
			return fmt.Errorf("node %s wants rows for the evaluation: %w", h.shared.work.Nodes[node], err)
		}
	}
	h.met = true
	return nil
}

// counts says how many rows each node wants of this one.
func (h *halo) counts(ctx context.Context) ([]int, error) {
	nodes := len(h.shared.work.Nodes)
	mine := make([]byte, 0, 4*nodes)
	for node := range nodes {
		mine = binary.LittleEndian.AppendUint32(mine, uint32(h.of(node)))
	}
	tag := exchange.Tag{Epoch: h.under.epoch, Step: h.under.step, Index: meetMessage}
	all, err := h.shared.exchange.Gather(ctx, tag, mine, &h.tally)
	if err != nil {
		return nil, fmt.Errorf("exchange how many rows each node needs for the evaluation: %w", err)
	}
	counts := make([]int, nodes)
	for node, message := range all {
		if counts[node], err = h.count(message); err != nil {
			return nil, fmt.Errorf("node %s wants rows for the evaluation: %w", h.shared.work.Nodes[node], err)
		}
	}
	return counts, nil
}

// count is how many rows here a node's message says that it wants.
func (h *halo) count(message []byte) (int, error) {
	if nodes := len(h.shared.work.Nodes); len(message) != 4*nodes {
		return 0, fmt.Errorf("it says of how many nodes how many in %d bytes, and there are %d nodes", len(message), nodes)
	}
	n := binary.LittleEndian.Uint32(message[4*h.shared.work.Self:])
	if uint64(n) > uint64(h.own.rows) {
		return 0, fmt.Errorf("%d of this node, which has %d", n, h.own.rows)
	}
	return int(n), nil
}

// decode is the rows of the vertices that a node has named, which ascend.
func (e *extent) decode(ids []byte) ([]uint32, error) {
	rows, near, last := make([]uint32, 0, len(ids)/4), 0, -1
	for ; len(ids) > 0; ids = ids[4:] {
		v := binary.LittleEndian.Uint32(ids)
		row, ok := 0, false
		if len(e.spans) > 0 {
			row, ok = e.find(v, &near)
		}
		if !ok {
			return nil, fmt.Errorf("vertex %d is not of this node's", v)
		}
		if row <= last {
			return nil, fmt.Errorf("vertex %d is named out of order", v)
		}
		last = row
		rows = append(rows, uint32(row))
	}
	return rows, nil
}

// features brings those of the halo, if they are not here yet.
func (h *halo) features(ctx context.Context) error {
	if h.places != nil {
		return nil
	}
	if err := h.gather(ctx, &h.far, h.ids); err != nil {
		return err
	}
	h.places = h.far.Places[0]
	return nil
}

// drop forgets them.
func (h *halo) drop() {
	if h != nil {
		h.far, h.places = gather.Rows{}, nil
	}
}

// gather brings the features of some vertices.
func (h *halo) gather(ctx context.Context, to *gather.Rows, vertices []uint32) error {
	h.sets[0] = vertices
	err := h.shared.source.Gather(ctx, to, h.sets[:], h.under.epoch, h.under.step, gather.Options{}, &h.tally)
	if err != nil {
		return fmt.Errorf("bring the features that the evaluation reads: %w", err)
	}
	return nil
}
