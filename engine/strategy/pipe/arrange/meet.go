package arrange

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Meet completes the mirrors of this node's ways by those of other nodes: first all tell how
// many rows of each way theirs mirror, then the nodes of a stage tell each other which. All
// nodes call it at once, and the tag is for it alone.
func (m *Mirrors) Meet(ctx context.Context, x *exchange.Exchange, work peer.Work, seats *Seats, tag exchange.Tag, tally *peer.Tally) error {
	stage, mine := seats.Of(work.Self)
	messages, err := x.Gather(ctx, tag, m.encode(mine), tally)
	if err != nil {
		return fmt.Errorf("exchange how many rows ways mirror: %w", err)
	}
	tag.Lane = exchange.LaneMirror
	t := &meeting{m, x, tag, tally}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for node, message := range messages {
		of, ways := seats.Of(node)
		numbers, err := m.read(message, len(ways))
		if err != nil {
			cancel(fmt.Errorf("node %s %w", work.Nodes[node], err))
			break
		}
		if node == work.Self || of != stage || mine == nil {
			continue
		}
		t.offer(mine, ways)
		all.Go(func() {
			if err := t.take(ctx, node, mine, ways, numbers); err != nil {
				cancel(fmt.Errorf("take the rows that the ways of node %s mirror: %w", work.Nodes[node], err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// A meeting is the state of Meet.
type meeting struct {
	mirrors *Mirrors
	x       *exchange.Exchange
	at      exchange.Tag
	tally   *peer.Tally
}

// tag returns that of the mirrors of one way that another owns.
func (t *meeting) tag(way, other int) exchange.Tag {
	at := t.at
	at.Index = uint32(way*t.mirrors.shape.Ways() + other)
	return at
}

// within returns the range of a way's mirrors that another way owns.
func (m *Mirrors) within(way, other int) []uint32 {
	first, _ := m.From(way, other, 0)
	end := first
	for position := range m.shape.Positions() {
		if a, b := m.From(way, other, position); b > a {
			end = b
		}
	}
	return m.Of[way][first:end]
}

// offer lets another node take what this one's ways mirror of its ways.
func (t *meeting) offer(mine, ways []int) {
	for _, way := range mine {
		for _, other := range ways {
			if ids := t.mirrors.within(way, other); len(ids) > 0 {
				t.x.Offer(t.tag(way, other), plain.Bytes(ids))
			}
		}
	}
}

// take takes what another node's ways mirror of this one's: so many rows.
func (t *meeting) take(ctx context.Context, node int, mine, ways []int, numbers [][]int) error {
	const window = 8 << 20 // vertices
	for i, way := range ways {
		all := 0
		for _, own := range mine {
			all += numbers[i][own]
		}
		ids := make([]uint32, all)
		t.mirrors.Of[way] = ids
		for _, own := range mine {
			some := ids[:numbers[i][own]]
			ids = ids[len(some):]
			for first := 0; first < len(some); first += window {
				part := plain.Bytes(some[first:min(first+window, len(some))])
				if err := t.x.TakePart(ctx, node, peer.Topology, t.tag(way, own), 4*first, part, t.tally); err != nil {
					return err
				}
			}
			if !t.ascend(some, own) {
				return errors.New("they do not ascend among that way's vertices: run the same version of hopmesh on all nodes of the job")
			}
		}
	}
	return nil
}

// ascend reports whether vertices are a way's, in their order.
func (t *meeting) ascend(ids []uint32, way int) bool {
	first, end, _, _ := t.mirrors.shape.Of(way)
	for _, v := range ids {
		if v < first || v >= end {
			return false
		}
		first = v + 1
	}
	return true
}

// encode returns the message about how many rows of each way some ways mirror.
func (m *Mirrors) encode(ways []int) (to []byte) {
	for _, way := range ways {
		for other := range m.shape.Ways() {
			to = binary.AppendUvarint(to, uint64(len(m.within(way, other))))
		}
	}
	return to
}

// read decodes the message of a node of so many ways: by its ways, then by all.
func (m *Mirrors) read(message []byte, ways int) (numbers [][]int, err error) {
	for range ways {
		of := make([]int, m.shape.Ways())
		for other := range of {
			first, end, _, _ := m.shape.Of(other)
			n, size := binary.Uvarint(message)
			if size <= 0 || n > uint64(end-first) {
				return nil, errMirrors
			}
			of[other], message = int(n), message[size:]
		}
		numbers = append(numbers, of)
	}
	if len(message) > 0 {
		return nil, errMirrors
	}
	return numbers, nil
}

var errMirrors = errors.New("sent a malformed list of how many rows its ways mirror: run the same version of hopmesh on all nodes of the job")
