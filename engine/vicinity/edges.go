package vicinity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Edges are in-edges of some vertices that are elsewhere. Nobody changes them.
type Edges struct {
	places
	table
	within []Range // where their sources lie; nil: anywhere
}

// A table is rows of edges.
type table struct {
	indptr  []int64
	degrees []int32 // how many entries the rows have in the graph
	sources []int32
	weights []float32 // nil: all 1
}

// Bytes is the memory that they take.
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

// Row is the in-edges of a vertex that is one of them, and how many the graph has.
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

// Edges brings in-edges of ascending vertices that are elsewhere, from sources in some
// ranges; nil: from all. What is there already, from the same ranges, is not asked for.
// Where it fails, those that have come are returned with the error.
func (s *Source) Edges(ctx context.Context, vertices []uint32, within []Range, tally *strategy.Tally, there ...*Edges) (*Edges, error) {
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

// come are those of ascending vertices whose edges are there or have come.
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

// edges puts together what came and what was there before.
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

// rowIn is the row of a vertex in the first that has it.
func rowIn(all []*Edges, v uint32) (sources []int32, weights []float32, degree int32, ok bool) {
	for _, e := range all {
		if sources, weights, degree, ok = e.Row(v); ok {
			break
		}
	}
	return sources, weights, degree, ok
}

// at is one row.
func (t *table) at(i int) (sources []int32, weights []float32, degree int32) {
	from, to := t.indptr[i], t.indptr[i+1]
	if t.weights != nil {
		weights = t.weights[from:to]
	}
	return t.sources[from:to], weights, t.degrees[i]
}

// byOwner lists, for each node, the vertices to ask it for.
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

// together asks all nodes of which something is wanted. The first error ends all.
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

// askEdges asks a node for all rows, in as many questions as it takes.
func (s *Source) askEdges(ctx context.Context, node int, t *table, vertices []uint32, within []Range, tally *strategy.Tally) error {
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
		answer, err = s.peers.Ask(ctx, node, strategy.Query{
			Service: strategy.Contexts, Kind: strategy.Shard, Body: q.append(nil), Limit: s.most.answer, Tally: tally,
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
