package sample

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// A Size is the size of a block.
type Size struct{ Targets, Sources, Entries int }

// A Counter finds how large the blocks of a mini-batch are, as a Sampler would draw them,
// without making them. It keeps the ids of the batch's vertices, and a set of them. It
// needs nothing of the whole graph, so that the first batch is counted as fast as the
// next. It is not safe for concurrent use.
type Counter struct {
	// Most is about how many entries and sources of all blocks together are counted one
	// by one; 0: all. Blocks beyond are returned as no larger than what is known of them,
	// and Cut reports so.
	Most int
	Cut  bool

	t        *Topology
	o        Options
	met      met
	vertices []uint32
	picker
	positions []uint32
	fanouts   []int // by relation, of the hop under way
	distant   []uint32
	drawn     Drawn

	known
}

// known is what a counter knows of the batch under way.
type known struct {
	total int // entries and sources of all blocks so far
	// The first vertices, all of whose neighbours have been met, and the entries of their
	// whole rows.
	followed, whole int
	// Of the last hop from such vertices alone: these, its fan-out and its entries.
	closed, limit, entries int
}

// NewCounter returns a counter of the batches that a sampler with these options draws.
func NewCounter(t *Topology, o Options) *Counter {
	o.Fanouts = checked(o.Fanouts)
	if err := o.checkEach(); err != nil {
		panic(err)
	}
	if o.Each != nil {
		t = t.formed(o.Form)
	}
	return &Counter{t: t, o: o, met: met{vertices: t.vertices}}
}

// Within makes the counter draw from another topology of the same graph from now on.
func (c *Counter) Within(t *Topology) {
	if t.vertices != c.t.vertices {
		panic(fmt.Sprintf("sample: a counter of %d vertices is to draw from %d", c.t.vertices, t.vertices))
	}
	if c.t = t; c.o.Each != nil {
		c.t = t.formed(c.o.Form)
	}
}

// Vertices returns the vertices of the last batch, roots first. They are valid until the
// next one is counted.
func (c *Counter) Vertices() []uint32 { return c.vertices }

// Count sets to to the sizes of the blocks of these roots, the outermost first. Rows that
// are on other nodes are requested in pieces.
func (c *Counter) Count(ctx context.Context, to []Size, epoch, step uint64, roots []uint32) ([]Size, error) {
	hops := len(c.o.Fanouts)
	to = slices.Grow(to[:0], hops)[:hops]
	if err := c.begin(roots); err != nil {
		return to[:0], err
	}
	key := keyed.New(c.o.Seed, keyed.Neighbor).With(epoch).With(step)
	for h, fanout := range c.o.Fanouts {
		targets := len(c.vertices)
		c.fanouts = c.o.eachOf(h)
		entries, err := 0, error(nil)
		if !c.Cut {
			entries, err = c.hop(ctx, epoch, step, h, fanout, keyOf(key, h, c.o.Steady))
		}
		if err == nil && entries > math.MaxInt32 {
			err = errTooMany
		}
		if err != nil {
			return to[:0], fmt.Errorf("sample: hop %d from %d roots: %w", h, len(roots), err)
		}
		to[hops-1-h] = Size{targets, len(c.vertices), entries}
		c.total += entries + len(c.vertices)
	}
	return to, nil
}

// begin notes the roots.
func (c *Counter) begin(roots []uint32) error {
	c.Cut, c.known = false, known{closed: -1}
	c.vertices = append(c.vertices[:0], roots...)
	c.met.begin()
	for _, v := range roots {
		if int(v) >= c.t.vertices {
			return fmt.Errorf("sample: root %d is not a vertex of a graph of %d", v, c.t.vertices)
		}
		if !c.met.add(v) {
			return fmt.Errorf("sample: root %d occurs twice: the roots of a batch must be distinct", v)
		}
	}
	return nil
}

// hop follows the drawn edges of all vertices that the batch has so far, and returns
// their number.
func (c *Counter) hop(ctx context.Context, epoch, step uint64, hop, fanout int, key keyed.Key) (entries int, err error) {
	targets, first := len(c.vertices), 0
	switch {
	case fanout == 0:
		first, entries = c.followed, c.whole
	case c.followed == targets && c.closed == targets && c.limit == fanout && c.fanouts == nil:
		return c.entries, nil
	}
	c.distant = c.distant[:0]
	most := piece(fanout)
	for i := first; i < targets; i++ {
		v := c.vertices[i]
		p := &c.t.parts[c.t.of(v)]
		if p.far != nil {
			c.distant = append(c.distant, v)
		} else {
			if c.o.Form.SelfLoops && !p.loops(v) {
				entries++
			}
			entries += c.row(p, v, fanout, key, i < c.followed)
		}
		if len(c.distant) == most || i == targets-1 && len(c.distant) > 0 {
			n, err := c.fetch(ctx, epoch, step, hop, fanout)
			if err != nil {
				return 0, err
			}
			entries += n
		}
		if i%group == 0 && c.beyond(entries) {
			return entries, nil
		}
	}
	if fanout == 0 {
		c.followed, c.whole = targets, entries
	} else if c.followed == targets {
		c.closed, c.limit, c.entries = targets, fanout, entries
	}
	return entries, nil
}

// beyond reports whether more is known than is to be counted.
func (c *Counter) beyond(entries int) bool {
	c.Cut = c.Most > 0 && c.total+entries+len(c.vertices) > c.Most
	return c.Cut
}

// piece returns how many remote rows are requested at a time.
func piece(fanout int) int {
	const rows, entries = 1 << 12, 1 << 18
	if fanout == 0 {
		return rows
	}
	return max(1, min(rows, entries/fanout))
}

// row follows the drawn edges of a vertex, whose rows are here, unless all its neighbours
// are known. It returns their number.
func (c *Counter) row(p *part, v uint32, fanout int, key keyed.Key, known bool) int {
	from, to := p.indptr[v-p.first], p.indptr[v-p.first+1]
	if c.fanouts != nil && p.weights != nil { // forecasts may know no relations
		return c.rowEach(p.indices[from:to], p.weights[from:to], c.fanouts, key.With(uint64(v)))
	}
	degree := int(to - from)
	kept := degree
	if fanout > 0 {
		kept = min(degree, fanout)
	}
	if known {
		return kept
	}
	sources := p.indices[from:to]
	if kept == degree {
		c.meet(sources)
		return kept
	}
	c.positions = slices.Grow(c.positions[:0], kept)[:kept]
	c.without(c.positions, uint32(degree), key.With(uint64(v)))
	for _, at := range c.positions {
		if u := uint32(sources[at]); c.met.add(u) {
			c.vertices = append(c.vertices, u)
		}
	}
	return kept
}

// fetch follows the drawn edges of the remote vertices that were put aside.
func (c *Counter) fetch(ctx context.Context, epoch, step uint64, hop, fanout int) (entries int, err error) {
	if c.o.Far == nil {
		return 0, errNobody
	}
	if err := c.o.Far.Draw(ctx, epoch, step, hop, fanout, c.distant, &c.drawn); err != nil {
		return 0, err
	}
	if n := len(c.distant); len(c.drawn.Degrees) != n || len(c.drawn.Indptr) != n+1 {
		return 0, fmt.Errorf("%d rows were asked for, and %d came", n, len(c.drawn.Degrees))
	}
	c.distant = c.distant[:0]
	c.meet(c.drawn.Sources)
	entries = len(c.drawn.Sources)
	if c.o.Form.SelfLoops {
		for _, degree := range c.drawn.Degrees {
			if degree&OwnLoop == 0 {
				entries++
			}
		}
	}
	return entries, nil
}

// meet adds the vertices that are new to the batch.
func (c *Counter) meet(sources []int32) {
	for _, u := range sources {
		if c.met.add(uint32(u)) {
			c.vertices = append(c.vertices, uint32(u))
		}
	}
}

// met is the set of a batch's vertices: a table, or a bit for each vertex of the graph
// once that is smaller. So it never takes more than a few bytes for each vertex of the
// batch.
type met struct {
	vertices int
	bits     []uint64
	table    []uint32 // open-addressed: the vertex plus one, or 0; at most half of it is used
	used     int
	shift    uint // of the hash, to get a place
}

// begin removes all vertices.
func (m *met) begin() {
	clear(m.bits)
	clear(m.table)
	m.used = 0
	if m.bits == nil && m.table == nil {
		m.resize(leastSlots)
	}
}

// resize replaces the table, or the table by bits.
func (m *met) resize(places int) {
	old := m.table
	m.used = 0
	if 4*places >= m.vertices/8 {
		m.table, m.bits = nil, make([]uint64, (m.vertices+63)/64)
	} else {
		m.table, m.shift = make([]uint32, places), 64
		for ; places > 1; places /= 2 {
			m.shift--
		}
	}
	for _, v := range old {
		if v > 0 {
			m.add(v - 1)
		}
	}
}

// add adds a vertex, and reports whether it is new.
func (m *met) add(v uint32) bool {
	if m.bits != nil {
		word, bit := &m.bits[v/64], uint64(1)<<(v%64)
		old := *word
		*word = old | bit
		return old&bit == 0
	}
	mask := uint32(len(m.table) - 1)
	for at := uint32(uint64(v+1) * 0x9e3779b97f4a7c15 >> m.shift); ; at++ {
		switch m.table[at&mask] {
		case v + 1:
			return false
		case 0:
			m.table[at&mask] = v + 1
			if m.used++; 2*m.used > len(m.table) {
				m.resize(2 * len(m.table))
			}
			return true
		}
	}
}
