package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A load is the work of one node in one step.
type load struct {
	groups []group
	slots  int
	// rows of features, each once as far as they are requested once.
	local, remote int
	counts        peer.Counts // of what it asks others for before it computes
	sight         Sight
}

// sample draws the blocks of some seed vertices.
func (l *load) sample(ctx context.Context, s *sample.Sampler, to *sample.Batch, step int, seeds []uint32) error {
	if l.sight != nil {
		if err := l.sight.Within(s, seeds); err != nil {
			return err
		}
	}
	return s.Sample(ctx, to, looked, uint64(step), seeds)
}

// A group is the sizes of seed vertices that are computed together.
type group struct {
	roots, inputs int
	grain         int     // the shard of its seed vertices, where sums are those of shards
	words         []int32 // of its pairs, where these are learnt
	blocks        []nn.Size
	seeds         []uint32
}

// rows returns the rows that are computed: the sources of all blocks.
func (l *load) rows() (n int) {
	for _, g := range l.groups {
		if len(g.blocks) == 0 {
			n += g.inputs
		}
		for _, b := range g.blocks {
			n += b.Sources
		}
	}
	return n
}

// edges returns the entries of all blocks.
func (l *load) edges() (n int) {
	for _, g := range l.groups {
		for _, b := range g.blocks {
			n += b.Entries
		}
	}
	return n
}

// A counter counts the work of virtual nodes, in memory that is reused.
type counter struct {
	words    int // of a target; 0: 1
	sampler  *sample.Sampler
	row      float64 // bytes of a row of features on the wire
	weighted bool    // edges have weights, or come with relations in their place
	rooted   bool    // entries are divided by roots of degrees
	loops    bool    // blocks have an edge of each target to itself, which nobody is asked for

	left   func() uint64 // memory that this process may take
	sizes  *sample.Counter
	learnt bool // rows of vertices are, and nobody is asked for them
	wary   bool // of batches that there may be no room for
	groups []deal.Group
	batch  sample.Batch
	union  []uint32
	asked  []int
	pairs  *pairing // of the step; nil: vertices are learnt
}

// A look is how a strategy's steps are counted.
type look struct {
	dealer  deal.Dealer
	asking  gather.Options
	sharded bool  // a node has the edges of the shards that it holds, and no others
	sight   Sight // what groups see that ask for nothing; nil: all
}

// step counts a step of a node.
func (c *counter) step(ctx context.Context, m *mesh, look *look, batch []uint32, step, node int) (*load, error) {
	l, o := &load{sight: look.sight}, look.asking
	c.groups = look.dealer.Deal(c.groups, c.dealt(batch), node)
	c.union = c.union[:0]
	for i := range c.groups {
		g := &c.groups[i]
		if i == 0 || g.Slot != c.groups[i-1].Slot {
			l.slots++
		}
		if len(g.Roots) == 0 {
			l.groups = append(l.groups, group{})
			continue
		}
		roots, words := c.roots(g.Roots)
		if err := c.room(ctx, step, roots); err != nil {
			return nil, err
		}
		if err := l.sample(ctx, c.sampler, &c.batch, step, roots); err != nil {
			return nil, fmt.Errorf("sample step %d for node %d of %d: %w", step+1, node+1, m.layout.Nodes, err)
		}
		sizes := group{roots: len(roots), grain: g.Grain, seeds: slices.Clone(roots), words: words}
		for _, b := range c.batch.Blocks {
			sizes.blocks = append(sizes.blocks, nn.Size{Targets: b.Rows, Sources: b.Cols, Entries: b.Entries()})
		}
		inputs := roots
		if len(c.batch.Blocks) > 0 {
			inputs = c.batch.Blocks[0].Vertices
		}
		sizes.inputs = len(inputs)
		l.groups = append(l.groups, sizes)
		if look.sight != nil {
			l.local += len(inputs)
			continue
		}
		if c.pairs == nil {
			c.askLabels(l, m, node, roots)
		}
		if look.sharded {
			c.askEdges(l, m, node)
		}
		switch {
		case o.Apart || o.Repeated:
			c.askRows(l, m, node, inputs, o.Apart)
		default:
			c.union = append(c.union, inputs...)
		}
	}
	if o.Repeated && !o.Apart {
		c.send(l)
	}
	if !o.Apart && !o.Repeated {
		slices.Sort(c.union)
		c.askRows(l, m, node, slices.Compact(c.union), true)
	}
	return l, nil
}

// look finds out whether there is room for a whole batch. Where there is, there is room for
// any part of it.
func (c *counter) look(ctx context.Context, batch []uint32) error {
	c.wary = true
	roots, _ := c.roots(c.dealt(batch))
	err := c.room(ctx, 0, roots)
	if _, is := errors.AsType[*budget.Short](err); is {
		return nil
	}
	c.wary = false
	return err
}

// room returns an error if there may be no room to draw the blocks of some seed vertices.
func (c *counter) room(ctx context.Context, step int, roots []uint32) error {
	if !c.wary {
		return nil
	}
	const (
		entry  = 16 // bytes of an entry with its transpose and value, and of a source in blocks and tables
		source = 40
	)
	has := c.left()
	c.sizes.Most = int(min(has/entry, math.MaxInt))
	sizes, err := c.sizes.Count(ctx, nil, looked, uint64(step), roots)
	if err != nil {
		return err
	}
	needs := uint64(0)
	for _, z := range sizes {
		needs += uint64(entry*z.Entries + source*z.Sources)
	}
	if c.sizes.Cut || needs > has {
		return short(max(needs, has+1), has, "draws a batch to count it")
	}
	return nil
}

// askRows counts the rows that a node lacks of some vertices; sent closes a round of
// questions.
func (c *counter) askRows(l *load, m *mesh, node int, vertices []uint32, sent bool) {
	if len(c.asked) != m.layout.Nodes {
		c.asked = make([]int, m.layout.Nodes)
	}
	shard := 0
	for _, v := range vertices {
		if v < m.layout.Firsts[shard] || v >= m.layout.Firsts[shard+1] {
			shard = m.layout.Shard(v)
		}
		if c.learnt || m.holds[node][shard] {
			l.local++
			continue
		}
		l.remote++
		c.asked[m.layout.Owners[shard]]++
	}
	if sent {
		c.send(l)
	}
}

// send counts the questions of a round for rows of features, each by its vertex.
func (c *counter) send(l *load) {
	for owner, n := range c.asked {
		if n == 0 {
			continue
		}
		requests := gather.Questions(n, c.row)
		l.counts.Requests[peer.Feature] += uint64(requests)
		l.counts.Bytes[peer.Feature] += uint64(float64(requests*(peer.QueryFraming+peer.AnswerFraming)) + float64(n)*(4+c.row))
		c.asked[owner] = 0
	}
}

// askLabels counts the questions for the labels of seed vertices that the node lacks: one
// to each owner.
func (c *counter) askLabels(l *load, m *mesh, node int, roots []uint32) {
	asked := make([]int, m.layout.Nodes)
	for _, v := range roots {
		if shard := m.layout.Shard(v); !m.holds[node][shard] {
			asked[m.layout.Owners[shard]]++
		}
	}
	for _, n := range asked {
		if n > 0 {
			l.counts.Requests[peer.Topology]++
			l.counts.Bytes[peer.Topology] += uint64(peer.QueryFraming + 4*n + peer.AnswerFraming + 4*n*max(1, c.words))
		}
	}
}

// askEdges counts the questions for the rows of a group's targets whose edges the node
// lacks: of each hop and owner one.
func (c *counter) askEdges(l *load, m *mesh, node int) {
	asked, entries := make([]int, m.layout.Nodes), make([]int, m.layout.Nodes)
	for i := range c.batch.Blocks {
		b := &c.batch.Blocks[i]
		for t, v := range b.Vertices[:b.Rows] {
			shard := m.layout.Shard(v)
			if m.holds[node][shard] {
				continue
			}
			first, end := b.Indptr[t], b.Indptr[t+1]
			if c.loops && first < end && b.Indices[first] == int32(t) {
				first++
			}
			asked[m.layout.Owners[shard]]++
			entries[m.layout.Owners[shard]] += int(end - first)
		}
		for owner, n := range asked {
			if n > 0 {
				l.counts.Requests[peer.Topology]++
				l.counts.Bytes[peer.Topology] += uint64(frontier.Bytes(n, entries[owner], c.weighted))
			}
		}
		clear(asked)
		clear(entries)
	}
	if c.rooted {
		c.askDegrees(l, m, node)
	}
}

// askDegrees counts the questions for the degrees of a group's vertices whose edges the
// node lacks: of each owner one.
func (c *counter) askDegrees(l *load, m *mesh, node int) {
	if len(c.batch.Blocks) == 0 {
		return
	}
	asked := make([]int, m.layout.Nodes)
	for _, v := range c.batch.Blocks[0].Vertices {
		if shard := m.layout.Shard(v); !m.holds[node][shard] {
			asked[m.layout.Owners[shard]]++
		}
	}
	for _, n := range asked {
		if n > 0 {
			l.counts.Requests[peer.Topology]++
			l.counts.Bytes[peer.Topology] += uint64(frontier.InverseBytes(n))
		}
	}
}
