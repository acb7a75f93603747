package frontier

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Frontier implements sample.Far, and its Inverses are sample.Inverses: it asks one
// question per hop and owner, and one for degrees, all owners at once. One goroutine uses
// it, that of its sampler; Tally and Kind, of what is asked, may be set between batches.
type Frontier struct {
	Tally *peer.Tally
	Kind  peer.Kind
	// Edges is how many the graph has; 0: it is not known. The rows of a hop have no more together,
	// however many answers bring them, since its vertices are distinct.
	Edges uint64

	peers  peer.Peers
	work   peer.Work
	layout peer.Layout
	owners []owner
	of     []int32 // owner of each requested vertex
}

// An owner is the questions to one node, in memory that is reused.
type owner struct {
	body  []byte // room for the fan-out, then the vertices
	asked int    // how many these are
	buf   []byte // of answers
	rows  rows
	ends  []float32 // 1/sqrt(degree) of the vertices
	next  int       // of rows: the next to weave in
}

// New returns a Frontier with which a sampler requests remote rows.
func New(peers peer.Peers, work peer.Work, l peer.Layout) *Frontier {
	return &Frontier{Kind: peer.Topology, peers: peers, work: work, layout: l, owners: make([]owner, l.Nodes)}
}

// Draw implements sample.Far.
func (f *Frontier) Draw(ctx context.Context, epoch, step uint64, hop, fanout int, vertices []uint32, to *sample.Drawn) error {
	if epoch > math.MaxUint32 || step > math.MaxUint32 || hop < 0 || hop > math.MaxInt32 || fanout < 0 || fanout > math.MaxInt32 {
		return fmt.Errorf("ask for rows of epoch %d, step %d, hop %d: the numbers are too large", epoch, step, hop)
	}
	if err := f.deal(vertices); err != nil {
		return err
	}
	q := peer.Query{Service: peer.Draws, Kind: f.Kind, Epoch: uint32(epoch), Step: uint32(step), Part: uint32(hop), Tally: f.Tally}
	err := f.askAll(ctx, func(ctx context.Context, n int) error { return f.ask(ctx, n, q, fanout) })
	if err != nil {
		return fmt.Errorf("ask for the rows of hop %d: %w", hop, err)
	}
	f.weave(to)
	return nil
}

// Inverses sets to to 1/sqrt(degree) of vertices, as sample.Inverses.
func (f *Frontier) Inverses(ctx context.Context, vertices []uint32, to []float32) error {
	if err := f.deal(vertices); err != nil {
		return err
	}
	q := peer.Query{Service: peer.Draws, Kind: f.Kind, Part: ends, Tally: f.Tally}
	err := f.askAll(ctx, func(ctx context.Context, n int) error { return f.askEnds(ctx, n, q) })
	if err != nil {
		return fmt.Errorf("ask for the degrees of %d vertices: %w", len(vertices), err)
	}
	for i, n := range f.of {
		o := &f.owners[n]
		to[i] = o.ends[o.next]
		o.next++
	}
	return nil
}

// deal sorts vertices by their owners.
func (f *Frontier) deal(vertices []uint32) error {
	for i := range f.owners {
		o := &f.owners[i]
		o.body, o.asked, o.next = append(o.body[:0], make([]byte, prefix)...), 0, 0
		o.rows.reset(f.Edges)
		o.ends = o.ends[:0]
	}
	f.of = slices.Grow(f.of[:0], len(vertices))
	for _, v := range vertices {
		if v >= f.layout.Vertices() {
			return fmt.Errorf("ask for the row of vertex %d: the graph has %d", v, f.layout.Vertices())
		}
		n := f.layout.Owner(v)
		if n == f.work.Self {
			return fmt.Errorf("ask for the row of vertex %d: its shard is this node's, and has no edges here", v)
		}
		o := &f.owners[n]
		o.body = binary.LittleEndian.AppendUint32(o.body, v)
		o.asked++
		f.of = append(f.of, int32(n))
	}
	return nil
}

// askAll asks all owners at once. The first failure cancels the others.
func (f *Frontier) askAll(ctx context.Context, ask func(ctx context.Context, n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for n := range f.owners {
		if f.owners[n].asked == 0 {
			continue
		}
		all.Go(func() {
			if err := ask(ctx, n); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// ask asks one owner, more than once if it is for very many rows. The fan-out is
// written before the vertices of a question, over those of the one before.
func (f *Frontier) ask(ctx context.Context, n int, q peer.Query, fanout int) error {
	o := &f.owners[n]
	for done := 0; done < o.asked; {
		some := min(o.asked-done, mostVertices)
		q.Body = o.body[4*done:][:prefix+4*some]
		q.Limit = limit(some, fanout)
		binary.LittleEndian.PutUint32(q.Body, uint32(fanout))
		answer, err := f.peers.Ask(ctx, n, q, o.buf)
		if err != nil {
			return err
		}
		o.buf = answer[:0]
		rows, err := o.rows.decode(answer, some, fanout, f.layout.Vertices())
		if err != nil {
			return fmt.Errorf("the answer of node %s is not usable: %w", f.work.Nodes[n], err)
		}
		done += rows
	}
	return nil
}

// askEnds asks one owner for degrees, more than once if it is for very many vertices.
func (f *Frontier) askEnds(ctx context.Context, n int, q peer.Query) error {
	o := &f.owners[n]
	for done := 0; done < o.asked; {
		some := min(o.asked-done, mostVertices)
		q.Body = o.body[4*done:][:prefix+4*some]
		q.Limit = 4 * some
		binary.LittleEndian.PutUint32(q.Body, 0)
		answer, err := f.peers.Ask(ctx, n, q, o.buf)
		if err != nil {
			return err
		}
		o.buf = answer[:0]
		if o.ends, err = decodeInverses(o.ends, answer, some); err != nil {
			return fmt.Errorf("the answer of node %s is not usable: %w", f.work.Nodes[n], err)
		}
		done += some
	}
	return nil
}

// weave puts the owners' rows into the order of the question.
func (f *Frontier) weave(to *sample.Drawn) {
	entries, weighted := 0, false
	for i := range f.owners {
		entries += len(f.owners[i].rows.Sources)
		weighted = weighted || f.owners[i].rows.weighted
	}
	to.Degrees = slices.Grow(to.Degrees[:0], len(f.of))
	to.Indptr = append(slices.Grow(to.Indptr[:0], len(f.of)+1), 0)
	to.Sources = slices.Grow(to.Sources[:0], entries)
	weights := to.Weights[:0]
	to.Weights = nil
	if weighted {
		weights = slices.Grow(weights, entries+1) // not nil, which means something else than empty
	}
	for _, n := range f.of {
		o := &f.owners[n]
		r := &o.rows
		from, end := r.Indptr[o.next], r.Indptr[o.next+1]
		to.Degrees = append(to.Degrees, r.Degrees[o.next])
		to.Sources = append(to.Sources, r.Sources[from:end]...)
		to.Indptr = append(to.Indptr, int64(len(to.Sources)))
		switch {
		case r.weighted:
			weights = append(weights, r.Weights[from:end]...)
		case weighted:
			weights = ones(weights, int(end-from))
		}
		o.next++
	}
	if weighted {
		to.Weights = weights
	}
}
