package sample

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Options configures a sampler.
type Options struct {
	// Fanouts is the number of neighbours drawn per vertex, one number per hop from the
	// roots outwards; 0 means all.
	Fanouts []int
	// Each is the number drawn of each relation, of each hop, in place of Fanouts, which are their
	// sums; nil: neighbours are drawn whatever their relation.
	Each [][]int
	Form Form
	Seed uint64
	// Steady means that what is drawn of a vertex depends on the fan-out, and not on the
	// hop. Where all hops have one fan-out, a vertex then has the same neighbours in all
	// blocks of a batch, on whichever node they are drawn.
	Steady bool
	// Far draws the rows that a partial topology lacks. It is used by one sampler only.
	Far Far
	// Inverses knows the degrees of vertices whose edges are on other nodes, where the
	// form's weighting is Symmetric; nil: it is not needed.
	Inverses Inverses
}

// keyOf returns the key of a hop, given that of its step.
func keyOf(step keyed.Key, hop int, steady bool) keyed.Key {
	if steady {
		hop = 0
	}
	return step.With(uint64(hop))
}

// A Batch is the blocks of a mini-batch, the outermost first: the vertices of Blocks[0]
// are those whose features are read, and the targets of the last block are the roots. It
// reuses its memory, so blocks are valid until the next use.
type Batch struct {
	Blocks []Block
	// Away is the batch's memory in a Resident; nil if none filled it.
	Away Away

	vertices []uint32 // roots first, then hop by hop: those of each block are a prefix
}

// A Sampler draws mini-batches of neighbours. It is not safe for concurrent use; several
// may share a topology.
type Sampler struct {
	t       *Topology
	parts   []part // those of t, plus one for remote rows if t is partial
	o       Options
	seen    seen
	degrees *degrees // what the form needs
	valued  bool     // blocks have values
	fanouts []int    // by relation, of the hop under way; nil: one for all

	flocks  [4]flock
	distant distant
	ends    ends
	pruner  Pruner // nil: blocks are as they are drawn
	picker
}

// New returns a sampler. It computes what it must know of all edges here (self-loops,
// degrees), unless an earlier sampler did.
func New(t *Topology, o Options) *Sampler {
	o.Fanouts = checked(o.Fanouts)
	if err := o.checkEach(); err != nil {
		panic(err)
	}
	s := &Sampler{o: o, seen: newSeen(t.vertices)}
	s.use(t)
	return s
}

// use switches the sampler to a topology.
func (s *Sampler) use(t *Topology) {
	t = t.formed(s.o.Form)
	s.t, s.parts = t, t.parts
	if t.partial {
		s.parts = append(slices.Clone(t.parts), part{})
	}
	s.degrees = t.degreesOf(s.o.Form)
	s.valued = t.weighed || s.o.Form.Valued()
}

// Within makes the sampler draw from another topology of the same graph from now on: a
// restricted one or the whole. It allocates nothing if the topology is not partial and
// has been used before.
func (s *Sampler) Within(t *Topology) {
	if t.vertices != s.t.vertices {
		panic(fmt.Sprintf("sample: a sampler of %d vertices is to draw from %d", s.t.vertices, t.vertices))
	}
	s.use(t)
}

// Fan makes the sampler draw by other fan-outs from now on, and returns those of before. It is not
// for fan-outs by relation.
func (s *Sampler) Fan(fanouts []int) (before []int) {
	before, s.o.Fanouts = s.o.Fanouts, checked(fanouts)
	return before
}

// Prune has a pruner take entries out of each block that is drawn from now on; nil: none does.
func (s *Sampler) Prune(by Pruner) { s.pruner = by }

// checked returns a copy of valid fan-outs.
func checked(fanouts []int) []int {
	for _, k := range fanouts {
		if k < 0 || k > math.MaxInt32 {
			panic(fmt.Sprintf("sample: a fan-out of %d", k))
		}
	}
	return slices.Clone(fanouts)
}

// Sample draws the blocks of the roots, which must be distinct. A vertex's neighbours
// depend on the seed, the epoch, the step, the hop and the vertex alone. ctx cancels
// requests to other nodes.
func (s *Sampler) Sample(ctx context.Context, b *Batch, epoch, step uint64, roots []uint32) error {
	b.Blocks = b.Blocks[:0]
	if s.o.Form.EdgeFeatures > 0 && s.t.partial {
		return errEdgesElsewhere
	}
	if err := s.begin(b, roots); err != nil {
		return err
	}
	hops := len(s.o.Fanouts)
	b.Blocks = slices.Grow(b.Blocks, hops)[:hops]
	key := keyed.New(s.o.Seed, keyed.Neighbor).With(epoch).With(step)
	for h, fanout := range s.o.Fanouts {
		block := &b.Blocks[hops-1-h]
		s.fanouts = s.o.eachOf(h)
		var err error
		if s.t.partial {
			err = s.fetch(ctx, b.vertices, epoch, step, h, fanout)
		}
		if err == nil {
			err = s.hop(b, block, fanout, keyOf(key, h, s.o.Steady))
		}
		if err != nil {
			b.Blocks = b.Blocks[:0]
			return fmt.Errorf("sample: hop %d from %d roots: %w", h, len(roots), err)
		}
	}
	if s.degrees.inverse != nil && s.degrees.flat == nil {
		if err := s.normaliseAll(ctx, b); err != nil {
			b.Blocks = b.Blocks[:0]
			return fmt.Errorf("sample: the degrees of %d vertices: %w", len(b.vertices), err)
		}
	}
	for i := range b.Blocks {
		if s.pruner != nil {
			s.pruner.Prune(&b.Blocks[i], s.o.Form.Relations > 0)
		}
		switch block := &b.Blocks[i]; {
		case s.o.Form.Plain:
			block.bare(s.o.Form)
		case s.o.Form.Relations > 0:
			if block.Relate(s.o.Form); block.Related != nil {
				block.Related.describe(s.t.relations.from)
			}
		case s.o.Form.Along:
			block.follow(s.o.Form)
		}
	}
	return nil
}

// begin numbers the roots.
func (s *Sampler) begin(b *Batch, roots []uint32) error {
	for _, v := range roots {
		if int(v) >= s.t.vertices {
			return fmt.Errorf("sample: root %d is not a vertex of a graph of %d", v, s.t.vertices)
		}
	}
	b.vertices = append(b.vertices[:0], roots...)
	s.seen.begin()
	if v, ok := s.seen.first(b.vertices); !ok {
		return fmt.Errorf("sample: root %d occurs twice: the roots of a batch must be distinct", v)
	}
	return nil
}
