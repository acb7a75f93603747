package vicinity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Edges are in-edges of some remote vertices, in a vault. They are immutable.
type Edges struct {
	parts  []part // of each owner, as they came; the last are those that were here before
	layout *peer.Layout
	within []Range // where their sources lie; nil: anywhere
}

// A part is rows of some vertices.
type part struct {
	places Places
	table
}

// A table is rows of edges.
type table struct {
	indptr  []int64
	degrees []int32 // of the rows in the whole graph
	sources []int32
	weights []float32 // nil: all 1
}

// Len counts the vertices.
func (e *Edges) Len() (n int) {
	if e == nil {
		return 0
	}
	for i := range e.parts {
		n += e.parts[i].places.Len()
	}
	return n
}

// Bytes returns how long all arrays are, wherever they lie, and Index returns what finds
// them, which is always in memory.
func (e *Edges) Bytes() (n uint64) {
	if e == nil {
		return 0
	}
	for i := range e.parts {
		t := &e.parts[i].table
		n += 8*uint64(len(t.indptr)) + 4*uint64(len(t.degrees)+len(t.sources)+len(t.weights))
	}
	return n
}

// Index returns the memory of what finds rows.
func (e *Edges) Index() (n uint64) {
	if e == nil {
		return 0
	}
	for i := range e.parts {
		n += e.parts[i].places.Bytes()
	}
	return n
}

// Entries counts them.
func (e *Edges) Entries() (n int) {
	if e == nil {
		return 0
	}
	for i := range e.parts {
		n += len(e.parts[i].sources)
	}
	return n
}

// Row returns the in-edges of one of the vertices, and how many the graph has.
func (e *Edges) Row(v uint32) (sources []int32, weights []float32, degree int32, ok bool) {
	if e == nil {
		return nil, nil, 0, false
	}
	for _, i := range [2]int{e.layout.Owner(v), len(e.parts) - 1} {
		p := &e.parts[i]
		if at, ok := p.places.Of(v); ok {
			sources, weights, degree = p.at(at)
			return sources, weights, degree, true
		}
	}
	return nil, nil, 0, false
}

// at returns one row.
func (t *table) at(i int) (sources []int32, weights []float32, degree int32) {
	from, to := t.indptr[i], t.indptr[i+1]
	if t.weights != nil {
		weights = t.weights[from:to]
	}
	return t.sources[from:to], weights, t.degrees[i]
}

// Edges fetches in-edges of ascending remote vertices into a vault, from sources in some
// ranges; nil: from all. Edges of the same ranges that are already there are copied and not
// requested. On failure the edges that have come are returned with the error.
func (s *Source) Edges(ctx context.Context, in *Vault, vertices []uint32, within []Range, tally *peer.Tally, there ...*Edges) (*Edges, error) {
	before := slices.DeleteFunc(slices.Clone(there), func(e *Edges) bool {
		return e == nil || (e.within == nil) != (within == nil) || !slices.Equal(e.within, within)
	})
	var old []uint32
	asks := s.byOwner(vertices, func(v uint32) bool {
		_, _, _, ok := RowIn(before, v)
		if ok {
			old = append(old, v)
		}
		return ok
	})
	e := &Edges{parts: make([]part, len(asks)+1), layout: &s.layout, within: within}
	err := together(ctx, asks, func(ctx context.Context, node int) error {
		w := newWriting(in)
		err := s.askEdges(ctx, node, w, asks[node], within, tally)
		asked := asks[node][:w.degrees.n]
		t, failed := w.end()
		if failed == nil {
			e.parts[node] = part{NewPlaces(asked, s.layout.Vertices()), t}
		}
		return cmp.Or(err, failed)
	})
	w := newWriting(in)
	for _, v := range old {
		sources, weights, degree, _ := RowIn(before, v)
		if failed := w.row(sources, weights, degree); failed != nil {
			err = cmp.Or(err, failed)
			break
		}
	}
	t, failed := w.end()
	if failed == nil && !w.broken {
		e.parts[len(asks)] = part{NewPlaces(old, s.layout.Vertices()), t}
	}
	if err = cmp.Or(err, failed); err != nil { // a full disk fails all arrays, and one tells enough
		err = fmt.Errorf("bring edges of other nodes: %w", err)
	}
	return e, err
}

// RowIn returns the row of a vertex in the first Edges that have it.
func RowIn(all []*Edges, v uint32) (sources []int32, weights []float32, degree int32, ok bool) {
	for _, e := range all {
		if sources, weights, degree, ok = e.Row(v); ok {
			break
		}
	}
	return sources, weights, degree, ok
}

// writing writes a table to a vault.
type writing struct {
	indptr           array[int64]
	degrees, sources array[int32]
	weights          array[float32]
	weighted, broken bool
}

func newWriting(in *Vault) *writing {
	w := &writing{indptr: array[int64]{in: in}, degrees: array[int32]{in: in}, sources: array[int32]{in: in}, weights: array[float32]{in: in}}
	_ = w.indptr.add([]int64{0}) // which waits
	return w
}

// row appends a row.
func (w *writing) row(sources []int32, weights []float32, degree int32) error {
	err := cmp.Or(w.weigh(weights, len(sources)), w.sources.add(sources), w.degrees.add([]int32{degree}))
	err = cmp.Or(err, w.indptr.add([]int64{int64(w.sources.n)}))
	w.broken = w.broken || err != nil
	return err
}

// weigh appends weights of n sources that follow, all 1 where there are none.
func (w *writing) weigh(weights []float32, n int) error {
	if weights == nil && !w.weighted {
		return nil
	}
	if !w.weighted {
		w.weighted = true
		if err := w.ones(w.sources.n); err != nil {
			return err
		}
	}
	if weights == nil {
		return w.ones(n)
	}
	return w.weights.add(weights)
}

func (w *writing) ones(n int) error {
	for ; n > 0; n-- {
		if err := w.weights.add([]float32{1}); err != nil {
			return err
		}
	}
	return nil
}

// end returns the table.
func (w *writing) end() (t table, err error) {
	errs := make([]error, 4)
	t.indptr, errs[0] = w.indptr.end()
	t.degrees, errs[1] = w.degrees.end()
	t.sources, errs[2] = w.sources.end()
	if t.weights, errs[3] = w.weights.end(); !w.weighted {
		t.weights = nil
	}
	return t, cmp.Or(errs...)
}

// byOwner lists, for each node, the vertices to request from it.
func (s *Source) byOwner(vertices []uint32, have func(v uint32) bool) [][]uint32 {
	asks := make([][]uint32, max(1, len(s.work.Nodes)))
	for _, v := range vertices {
		if !have(v) {
			node := s.layout.Owner(v)
			asks[node] = append(asks[node], v)
		}
	}
	return asks
}

// errFault ends questions beside one that panics. Who waits for them panics, too.
var errFault = errors.New("a question beside it has ended by a fault")

// together asks all nodes that have something to ask. The first error or panic cancels all.
func together(ctx context.Context, asks [][]uint32, ask func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running mapped.Group
	for node := range asks {
		if len(asks[node]) > 0 {
			running.Go(func() {
				err := errFault
				defer func() {
					if err != nil {
						cancel(err)
					}
				}()
				err = ask(ctx, node)
			})
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// mostVertices bounds the vertices of a question.
const mostVertices = 1 << 18

// askEdges requests all rows of a node, in as many questions as it takes.
func (s *Source) askEdges(ctx context.Context, node int, to *writing, vertices []uint32, within []Range, tally *peer.Tally) error {
	if s.peers == nil || node == s.work.Self {
		return fmt.Errorf("the edges of vertex %d should be here and are not", vertices[0])
	}
	most := max(1, (s.most.question-EntryBytes-RunBytes*len(within))/RunBytes)
	var answer []byte
	var t table
	for len(vertices) > 0 {
		runs := runsOf(vertices[:min(len(vertices), mostVertices)])
		runs = runs[:min(len(runs), most)]
		q := question{within: within, runs: runs}
		var err error
		answer, err = s.peers.Ask(ctx, node, peer.Query{
			Service: peer.Contexts, Kind: peer.Shard, Body: q.append(nil), Limit: s.most.answer, Tally: tally,
		}, answer[:0])
		if err != nil {
			return err
		}
		asked := 0
		for _, r := range runs {
			asked += int(r.End - r.First)
		}
		t.indptr, t.degrees, t.sources, t.weights = append(t.indptr[:0], 0), t.degrees[:0], t.sources[:0], nil
		n, err := t.read(answer, vertices[:asked], within, s.layout.Vertices())
		if err == nil && s.relations > 0 {
			err = t.checkRelations(s.relations)
		}
		if err == nil && !s.related {
			err = t.checkDistinct()
		}
		if sum := uint64(to.sources.n + len(t.sources)); err == nil && s.edges > 0 && sum > s.edges {
			err = fmt.Errorf("its rows have %d edges with those before, of a graph of %d", sum, s.edges)
		}
		if err != nil {
			return fmt.Errorf("the answer of node %s is wrong: %w", s.work.Nodes[node], err)
		}
		for i := range n {
			if err := to.row(t.at(i)); err != nil {
				return err
			}
		}
		vertices = vertices[n:]
	}
	return nil
}
