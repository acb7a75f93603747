// Package blocks makes the blocks of a pipeline's ways, from the edges of one shard after the
// other, and puts them onto a shelf.
package blocks

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
)

// Edges bring those of shards that a node lacks, one shard at a time.
type Edges interface {
	// Shard returns a topology that has the edges of a shard. It may be the same for many
	// shards; it is valid until the next call, and so are the shard's labels.
	Shard(ctx context.Context, shard int) (*sample.Topology, error)
	// Inverses implements sample.Inverses.
	Inverses(ctx context.Context, vertices []uint32, to []float32) error
}

// From is what blocks are made from, and where they go.
type From struct {
	Edges Edges  // nil: all are here
	Dir   string // of files; "": they stay in memory
	Spare uint64 // the most bytes that memory has room for if the disk is full
}

// A Maker makes blocks: first all of a way are drawn, then all are arranged. One goroutine uses
// it.
type Maker struct {
	Here *sample.Topology // has the edges of the shard that was last brought
	Done *shelf.Shelf     // of blocks that are arranged

	from    From
	sampler *sample.Sampler
	batch   sample.Batch // of one block at a time
	drawn   *shelf.Shelf // the blocks of the way

	// What a block is arranged in.
	arranged                    sample.Block
	order, place, rows, indices []int32
}

// New returns what makes blocks of a form from the edges of a topology, or those that are
// brought.
func New(topology *sample.Topology, form sample.Form, from From) *Maker {
	o := sample.Options{Fanouts: []int{0}, Form: form}
	if from.Edges != nil {
		o.Inverses = from.Edges.Inverses
	}
	return &Maker{
		Here: topology, Done: shelf.New(from.Dir, from.Spare), from: from, sampler: sample.New(topology, o),
		drawn: shelf.New(from.Dir, from.Spare),
	}
}

// Bring has the edges of a shard here.
func (m *Maker) Bring(ctx context.Context, shard int) error {
	if m.from.Edges == nil {
		return nil
	}
	topology, err := m.from.Edges.Shard(ctx, shard)
	if err != nil {
		return err
	}
	if topology != m.Here {
		m.Here = topology
		m.sampler.Within(topology)
	}
	return nil
}

// Draw makes the block of some vertices of the shard that is here.
func (m *Maker) Draw(ctx context.Context, vertices []uint32) (a At, err error) {
	if err = m.sampler.Sample(ctx, &m.batch, 0, 0, vertices); err == nil {
		a.block, err = shelf.PutBlock(m.drawn, &m.batch.Blocks[0])
	}
	return a, err
}

// Drawn ends drawing: blocks can be looked at and arranged.
func (m *Maker) Drawn() error { return m.drawn.Map() }

// Drawing begins to draw the blocks of another way, and forgets those of the last one.
func (m *Maker) Drawing() error {
	old := m.drawn
	m.drawn = shelf.New(m.from.Dir, m.from.Spare)
	return old.Close()
}

// Sources returns those of a block that was drawn.
func (m *Maker) Sources(a *At) []uint32 { return a.block.Get(m.drawn).Vertices }

// At is where a block is. Once it is arranged, its sources are in order: the targets, the others
// that are computed together with them, and the rest, each by their numbers.
type At struct {
	block  shelf.Block
	rows   shelf.Array[int32] // where each source has its row
	active int                // how many come before the rest
}

// Get returns a block that is arranged, where each source has its row, and how many sources come
// before the rest.
func (a *At) Get(s *shelf.Shelf) (b *sample.Block, rows []int32, active int) {
	return a.block.Get(s), shelf.Get(s, a.rows), a.active
}

// Arrange arranges a block that was drawn, and puts it onto the shelf with its transpose.
func (m *Maker) Arrange(a *At, row func(v uint32) int32, together func(v uint32) bool) (err error) {
	b := a.block.Get(m.drawn)
	own, order := b.Rows, m.order[:0]
	for i := range b.Cols {
		order = append(order, int32(i))
	}
	late := func(i int32) int {
		if together(b.Vertices[i]) {
			return 0
		}
		return 1
	}
	slices.SortFunc(order[own:], func(x, y int32) int {
		if c := cmp.Compare(late(x), late(y)); c != 0 {
			return c
		}
		return cmp.Compare(b.Vertices[x], b.Vertices[y])
	})
	of := &m.arranged
	of.CSR, of.Vertices = b.CSR, of.Vertices[:0]
	place, rows, indices := slices.Grow(m.place[:0], b.Cols)[:b.Cols], m.rows[:0], m.indices[:0]
	a.active = own
	for to, from := range order {
		v := b.Vertices[from]
		place[from], of.Vertices, rows = int32(to), append(of.Vertices, v), append(rows, row(v))
		if to >= own && late(from) == 0 {
			a.active++
		}
	}
	for _, source := range b.Indices {
		indices = append(indices, place[source])
	}
	m.order, m.place, m.rows, m.indices = order, place, rows, indices
	of.Indices = indices
	of.Transpose()
	if a.block, err = shelf.PutBlock(m.Done, of); err == nil {
		a.rows, err = shelf.Put(m.Done, rows)
	}
	return err
}

// End ends arranging: all blocks can be read from the shelf.
func (m *Maker) End() error { return errors.Join(m.drawn.Close(), m.Done.Map()) }

// Stop gives up what is not arranged.
func (m *Maker) Stop() error { return m.drawn.Close() }
