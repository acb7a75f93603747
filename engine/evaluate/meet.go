package evaluate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// meet exchanges, once a run, which rows each node needs of each owner: first how many, with
// all nodes, then which, with the owner alone. Where blocks need 1/sqrt(degree) of sources,
// the owner says what those of these rows are, as the weaver has them.
func (h *halo) meet(ctx context.Context, i *Inference) error {
	if h.met {
		return nil
	}
	counts, err := h.counts(ctx)
	if err != nil {
		return err
	}
	if err := i.admit(counts); err != nil {
		return err
	}
	self, what := h.nodes.Work.Self, len(h.parcels.stages)+whichRows
	asked := make([][]byte, len(counts))
	for node, n := range counts {
		if node == self {
			continue
		}
		ids := make([]byte, 0, 4*h.of(node))
		for _, v := range h.ids[h.from[node]:h.from[node+1]] {
			ids = binary.LittleEndian.AppendUint32(ids, v)
		}
		h.parcels.offer(parcel{what: what, to: node, row: 4}, ids)
		asked[node] = make([]byte, 4*n)
		t := h.parcels.takers[node]
		t.parcel, t.kind, t.to = parcel{what: what, to: self, row: 4}, peer.Topology, asked[node]
	}
	if err := h.parcels.take(); err != nil {
		return err
	}
	for node, ids := range asked {
		if h.wanted[node], err = h.own.decode(ids); err != nil {
			return fmt.Errorf("node %s asks for rows for the evaluation: %w", h.nodes.name(node), err)
		}
	}
	if i.weaver.rows.Rooted() {
		if err := h.bringRoots(i.weaver); err != nil {
			return err
		}
	}
	h.met = true
	return nil
}

// bringRoots gives the nodes what they need to know of the degrees of vertices here, and
// takes the same of them.
func (h *halo) bringRoots(w *weaver) error {
	what, near := len(h.parcels.stages)+roots, 0
	for node, rows := range h.wanted {
		given := make([]float32, len(rows))
		for at, row := range rows {
			v := h.own.vertex(int(row), &near)
			given[at] = positive(w.inverse[near][v-h.own.spans[near].first])
		}
		h.parcels.offer(parcel{what: what, to: node, row: 4}, plain.Bytes(given))
	}
	h.roots = make([]float32, len(h.ids))
	for node, t := range h.parcels.takers {
		t.parcel, t.kind = parcel{what: what, to: h.nodes.Work.Self, row: 4}, peer.Topology
		t.to = plain.Bytes(h.roots[h.from[node]:h.from[node+1]])
	}
	if err := h.parcels.take(); err != nil {
		return err
	}
	for at, f := range h.roots {
		if !(f >= 0 && f <= math.MaxFloat32) {
			return fmt.Errorf("vertex %d, of another node, has a degree whose root is 1/%g", h.ids[at], f)
		}
	}
	return nil
}

// counts returns how many rows each node needs of this one.
func (h *halo) counts(ctx context.Context) ([]int, error) {
	nodes := len(h.nodes.Work.Nodes)
	mine := make([]byte, 0, 4*nodes)
	for node := range nodes {
		mine = binary.LittleEndian.AppendUint32(mine, uint32(h.of(node)))
	}
	tag := exchange.Tag{Epoch: h.parcels.epoch, Step: h.parcels.step, Index: meetMessage}
	all, err := h.nodes.Exchange.Gather(ctx, tag, mine, &h.parcels.tally)
	if err != nil {
		return nil, fmt.Errorf("exchange how many rows each node needs for the evaluation: %w", err)
	}
	counts := make([]int, nodes)
	for node, message := range all {
		if counts[node], err = h.count(message); err != nil {
			return nil, fmt.Errorf("node %s asks for rows for the evaluation: %w", h.nodes.name(node), err)
		}
	}
	return counts, nil
}

// count returns how many rows of this node another one needs, by its message.
func (h *halo) count(message []byte) (int, error) {
	if nodes := len(h.nodes.Work.Nodes); len(message) != 4*nodes {
		return 0, fmt.Errorf("its message has %d bytes for %d nodes, in place of %d", len(message), nodes, 4*nodes)
	}
	n := binary.LittleEndian.Uint32(message[4*h.nodes.Work.Self:])
	if uint64(n) > uint64(h.own.rows) {
		return 0, fmt.Errorf("%d rows of this node, which has %d", n, h.own.rows)
	}
	return int(n), nil
}

// features brings the features of the halo, if they are not here yet.
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
func (h *halo) drop() { h.far, h.places = gather.Rows{}, nil }

// gather brings the features of some vertices.
func (h *halo) gather(ctx context.Context, to *gather.Rows, vertices []uint32) error {
	h.sets[0] = vertices
	err := h.nodes.Source.Gather(ctx, to, h.sets[:], h.parcels.epoch, h.parcels.step, gather.Options{}, &h.parcels.tally)
	if err != nil {
		return fmt.Errorf("bring the features that the evaluation reads: %w", err)
	}
	return nil
}
