package vicinity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Edges are in-edges of some remote vertices. They are immutable.
type Edges struct {
	places
	table
	within []Range // where their sources lie; nil: anywhere
}

// A table is rows of edges.
type table struct {
	indptr  []int64
	degrees []int32 // of the rows in the whole graph
	sources []int32
	weights []float32 // nil: all 1
}

// Bytes returns the memory that they take.
func (e *Edges) Bytes() uint64 {
	if e == nil {
		return 0
	}
	return e.places.bytes() + e.table.bytes()
}

// Entries counts them.
func (e *Edges) Entries() int {
	if e == nil {
		return 0
	}
	return len(e.sources)
}

func (t *table) bytes() uint64 {
	return 8*uint64(cap(t.indptr)) + 4*uint64(cap(t.degrees)+cap(t.sources)+cap(t.weights))
}

// Row returns the in-edges of one of the vertices, and how many the graph has.
func (e *Edges) Row(v uint32) (sources []int32, weights []float32, degree int32, ok bool) {
	if e == nil {
		return nil, nil, 0, false
	}
	i, ok := e.of(v)
	if !ok {
		return nil, nil, 0, false
	}
	from, to := e.indptr[i], e.indptr[i+1]
	if e.weights != nil {
		weights = e.weights[from:to]
	}
	return e.sources[from:to], weights, e.degrees[i], true
}

// Edges fetches in-edges of ascending remote vertices, from sources in some ranges;
// nil: from all. Edges of the same ranges that are already there are not requested. On
// failure the edges that have come are returned with the error.
func (s *Source) Edges(ctx context.Context, vertices []uint32, within []Range, tally *peer.Tally, there ...*Edges) (*Edges, error) {
	before := slices.DeleteFunc(slices.Clone(there), func(e *Edges) bool { return e == nil || !slices.Equal(e.within, within) })
	asks := s.byOwner(vertices, func(v uint32) bool {
		_, _, _, ok := rowIn(before, v)
		return ok
	})
	tables := make([]table, len(asks))
	err := together(ctx, asks, func(ctx context.Context, node int) error {
		return s.askEdges(ctx, node, &tables[node], asks[node], within, tally)
	})
	if err != nil {
		err = fmt.Errorf("bring edges of other nodes: %w", err)
		vertices = s.come(vertices, tables, before)
	}
	return s.edges(vertices, within, tables, before), err
}

// come returns those of ascending vertices whose edges are there or have come.
func (s *Source) come(vertices []uint32, tables []table, before []*Edges) (some []uint32) {
	next := make([]int, len(tables))
	for _, v := range vertices {
		if _, _, _, ok := rowIn(before, v); !ok {
			node := s.layout.Owner(v)
			if next[node]++; next[node] > len(tables[node].degrees) {
				continue
			}
		}
		some = append(some, v)
	}
	return some
}

// edges joins fetched edges and earlier ones.
func (s *Source) edges(vertices []uint32, within []Range, tables []table, before []*Edges) *Edges {
	e := &Edges{places: newPlaces(slices.Clone(vertices), s.layout.Vertices()), within: within}
	weighted, entries := slices.ContainsFunc(before, func(e *Edges) bool { return e.weights != nil }), 0
	for i := range tables {
		weighted = weighted || tables[i].weights != nil
		entries += len(tables[i].sources)
	}
	e.indptr = append(make([]int64, 0, len(vertices)+1), 0)
	e.degrees, e.sources = make([]int32, 0, len(vertices)), make([]int32, 0, entries)
	if weighted {
		e.weights = make([]float32, 0, entries)
	}
	next := make([]int, len(tables))
	for _, v := range vertices {
		sources, weights, degree, ok := rowIn(before, v)
		if !ok {
			node := s.layout.Owner(v)
			sources, weights, degree = tables[node].at(next[node])
			next[node]++
		}
		e.sources = append(e.sources, sources...)
		if weighted && weights == nil {
			weights = slices.Repeat([]float32{1}, len(sources))
		}
		e.weights = append(e.weights, weights...)
		e.indptr, e.degrees = append(e.indptr, int64(len(e.sources))), append(e.degrees, degree)
	}
	return e
}

// rowIn returns the row of a vertex in the first Edges that have it.
func rowIn(all []*Edges, v uint32) (sources []int32, weights []float32, degree int32, ok bool) {
	for _, e := range all {
		if sources, weights, degree, ok = e.Row(v); ok {
			break
		}
	}
	return sources, weights, degree, ok
}

// at returns one row.
func (t *table) at(i int) (sources []int32, weights []float32, degree int32) {
	from, to := t.indptr[i], t.indptr[i+1]
	if t.weights != nil {
		weights = t.weights[from:to]
	}
	return t.sources[from:to], weights, t.degrees[i]
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

// together asks all nodes that have something to ask. The first error cancels all.
func together(ctx context.Context, asks [][]uint32, ask func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for node := range asks {
		if len(asks[node]) > 0 {
			running.Go(func() {
				if err := ask(ctx, node); err != nil {
					cancel(err)
				}
			})
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// askEdges requests all rows of a node, in as many questions as it takes.
func (s *Source) askEdges(ctx context.Context, node int, t *table, vertices []uint32, within []Range, tally *peer.Tally) error {
	t.indptr = append(t.indptr[:0], 0)
	if s.peers == nil || node == s.work.Self {
		return fmt.Errorf("the edges of vertex %d should be here and are not", vertices[0])
	}
	most := max(1, (s.most.question-EntryBytes-RunBytes*len(within))/RunBytes)
	var answer []byte
	for len(vertices) > 0 {
		runs := runsOf(vertices)
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
		n, err := t.read(answer, vertices[:asked], within, s.layout.Vertices())
		if err != nil {
			*t = table{}
			return fmt.Errorf("the answer of node %s is wrong: %w", s.work.Nodes[node], err)
		}
		vertices = vertices[n:]
	}
	return nil
}
