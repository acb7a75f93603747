package census

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// sharedAt is the message with which nodes exchange what they have counted: after those by
// which they meet, and before those by which they measure the network.
var sharedAt = exchange.Tag{Step: 4, Lane: exchange.LaneMessages}

// Begin returns the census of a graph of which nodes have some edges each: so many are of
// each shard. Nothing else is counted before Share.
func Begin(firsts []uint32, edges []int) *Census { return &Census{Firsts: firsts, Edges: edges} }

// Share counts the shards that this node owns, for blocks of a form, and exchanges the
// counts, those of some shapes among them. All nodes call it at once.
func (c *Census) Share(ctx context.Context, x *exchange.Exchange, work peer.Work, t *sample.Topology, form sample.Form, shapes []*arrange.Shape, tally *peer.Tally) error {
	var several []*arrange.Shape
	for _, s := range shapes {
		if s.Ways() > 1 {
			several = append(several, s)
		}
	}
	owned := make([][]int, len(work.Nodes))
	for shard, node := range work.Owners {
		owned[node] = append(owned[node], shard)
	}
	mine := newSharing(c, several)
	k := newCounter(t, form)
	mine.sources, mine.entries = k.wholes(c.Firsts, owned[work.Self])
	for i, s := range several {
		if ctx.Err() != nil {
			return fmt.Errorf("count what ways have: %w", context.Cause(ctx))
		}
		mine.of[i] = k.of(s, owned[work.Self])
	}
	messages, err := x.Gather(ctx, sharedAt, mine.encode(owned[work.Self]), tally)
	if err != nil {
		return fmt.Errorf("exchange what is counted of the graph: %w", err)
	}
	all := newSharing(c, several)
	for node, message := range messages {
		if err := all.read(message, owned[node]); err != nil {
			return fmt.Errorf("node %s %w", work.Nodes[node], err)
		}
	}
	all.bound()
	c.Sources, c.Entries, c.shapes = all.sources, all.entries, nil
	for i, s := range several {
		c.keep(s, all.of[i])
	}
	return nil
}

// sharing are the counts that are exchanged.
type sharing struct {
	census           *Census
	shapes           []*arrange.Shape
	sources, entries []int // of each shard
	of               []*Counts
}

// newSharing returns zeros.
func newSharing(c *Census, shapes []*arrange.Shape) *sharing {
	t := &sharing{census: c, shapes: shapes, sources: make([]int, len(c.Edges)), entries: make([]int, len(c.Edges))}
	for _, s := range shapes {
		of := newCounts(s)
		of.Least = newCounts(s).Mirrors
		t.of = append(t.of, of)
	}
	return t
}

// ways returns those that have some shards, which ascend.
func ways(s *arrange.Shape, shards []int) (all []int) {
	for _, shard := range shards {
		if way := s.WayOf(shard); len(all) == 0 || all[len(all)-1] != way {
			all = append(all, way)
		}
	}
	return all
}

// encode returns the message about some shards.
func (t *sharing) encode(shards []int) (to []byte) {
	add := func(numbers ...int) {
		for _, n := range numbers {
			to = binary.AppendUvarint(to, uint64(n))
		}
	}
	for _, shard := range shards {
		add(t.sources[shard], t.entries[shard])
	}
	for i, s := range t.shapes {
		for _, shard := range shards {
			for _, half := range t.of[i].Halves[shard] {
				add(half.Vertices, half.Sources, half.Entries)
			}
		}
		for _, way := range ways(s, shards) {
			add(t.of[i].Mirrors[way]...)
		}
	}
	return to
}

var errCounts = errors.New("sent malformed counts of its shards: run the same version of hopmesh on all nodes of the job")

// read adds what a message says of some shards. It is checked so that no number is larger
// than the graph, whoever sends it.
func (t *sharing) read(message []byte, shards []int) error {
	wrong, c := false, t.census
	next := func(most int) int {
		n, size := binary.Uvarint(message)
		if size <= 0 || n > uint64(most) {
			wrong, message = true, nil
			return 0
		}
		message = message[size:]
		return int(n)
	}
	total := int(c.Firsts[len(c.Firsts)-1])
	for _, shard := range shards {
		t.sources[shard], t.entries[shard] = next(total), next(c.Edges[shard]+c.Vertices(shard))
	}
	for i, s := range t.shapes {
		for _, shard := range shards {
			halves := &t.of[i].Halves[shard]
			for half := range halves {
				halves[half] = Size{next(c.Vertices(shard)), next(total), next(c.Edges[shard] + c.Vertices(shard))}
			}
			wrong = wrong || halves[0].Vertices+halves[1].Vertices != c.Vertices(shard)
		}
		for _, way := range ways(s, shards) {
			of, least := t.of[i].Mirrors[way], t.of[i].Least[way]
			for chunk := range of {
				first, end := s.Chunk(chunk)
				n := next(int(end - first))
				of[chunk], least[chunk] = of[chunk]+n, max(least[chunk], n)
			}
		}
	}
	if wrong || len(message) > 0 {
		return errCounts
	}
	return nil
}

// bound has no way mirror more vertices of a chunk than that has, though several nodes may
// have counted the same.
func (t *sharing) bound() {
	for i, s := range t.shapes {
		for _, of := range t.of[i].Mirrors {
			for chunk := range of {
				first, end := s.Chunk(chunk)
				of[chunk] = min(of[chunk], int(end-first))
			}
		}
	}
}
