package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Bounds of a batch.
const (
	batchEdges  = 1 << 14
	batchFloats = 1 << 16
)

// A model defines how edges are drawn and the properties of vertices. Its methods are
// safe for concurrent use.
type model interface {
	// draw writes edges, starting with the edge number first.
	draw(first uint64, src, dst []uint32)
	class(vertex uint64) int
	community(vertex uint64) int
}

// source is a graph that is generated while it is read.
type source struct {
	meta     graph.Meta
	model    model
	features features
	labels   []int32
	splits   [][]graph.Mark
	notes    []string

	share, of uint64 // which batches are generated
}

var _ graph.Source = (*source)(nil)

// New returns a generated graph. Labels and the split are computed here, edges and
// features each time they are read.
func New(o Options) (graph.Source, error) {
	if g, err := o.typed(); err != nil {
		return nil, err
	} else if g != nil {
		return g, nil
	}
	o, like, err := o.resolve()
	if err != nil {
		return nil, err
	}
	s := shared(o)
	if o.Classes > 0 {
		s.labels = make([]int32, o.Vertices)
		inParallel(len(s.labels), func(v int) { s.labels[v] = int32(s.model.class(uint64(v))) })
		s.splits = [][]graph.Mark{split(o, like)}
		s.features.class = func(v uint64) int { return int(s.labels[v]) }
	}
	s.notes = notes(o, like)
	return s, nil
}

// A part is a share of a graph that has the features of any vertices.
type part struct{ *source }

// Share returns one of several equal shares of the edges and features of a generated graph.
// It has no labels and no splits, and its method FeaturesOf yields the features of any
// vertices.
func Share(o Options, share, of int) (graph.Source, error) {
	if typedShapeOf(o.Preset) != nil {
		return nil, errTyped
	}
	o, _, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if of < 1 || share < 0 || share >= of {
		return nil, fmt.Errorf("there is no share %d of %d", share, of)
	}
	s := shared(o)
	s.share, s.of = uint64(share), uint64(of)
	if o.Classes > 0 {
		s.features.class = s.model.class
	}
	return part{s}, nil
}

var errTyped = errors.New("a graph with types is drawn by one node")

// shared returns what the graph and its shares have in common.
func shared(o Options) *source {
	ids := newPermutation(uint64(o.Vertices), key(o.Seed, forIDs))
	s := &source{
		of:   1,
		meta: graph.Meta{Format: o.Kind, Vertices: o.Vertices, Edges: o.Edges, Features: o.Features, Classes: o.Classes},
		features: features{columns: o.Features, noise: key(o.Seed, forNoise),
			prototypes: key(o.Seed, forPrototypes), parts: key(o.Seed, forCommunityParts)},
	}
	if o.Kind == "rmat" {
		s.model = newRMAT(o, ids)
	} else {
		s.model = newSBM(o, ids)
		s.features.community = s.model.community
	}
	return s
}

// split marks exact shares of the vertices.
func split(o Options, like shape) []graph.Mark {
	marks := make([]graph.Mark, o.Vertices)
	order := newPermutation(uint64(o.Vertices), key(o.Seed, forSplits))
	train := uint64(math.Round(float64(o.Vertices) * like.train))
	validation := train + uint64(math.Round(float64(o.Vertices)*like.validation))
	inParallel(len(marks), func(v int) {
		switch place := order.of(uint64(v)); {
		case place < train:
			marks[v] = graph.Train
		case place < validation:
			marks[v] = graph.Validation
		default:
			marks[v] = graph.Test
		}
	})
	return marks
}

func notes(o Options, like shape) []string {
	note := fmt.Sprintf("The graph is synthetic (%s, seed %d); its accuracy says nothing about any real graph.", o.Kind, o.Seed)
	if like.real != "" {
		note = fmt.Sprintf("The graph is synthetic, shaped like %s; its accuracy says nothing about the real graph.", like.real)
	}
	if o.Edges == 0 {
		return []string{note}
	}
	drawn := "Edges are drawn one by one, so some are drawn twice or more and count once when they are merged."
	if o.Kind == "sbm" {
		drawn += " Each stands there in both directions."
	}
	return []string{note, drawn}
}

// inParallel calls do for each number below n, on all processors.
func inParallel(n int, do func(int)) {
	workers := max(1, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				do(i)
			}
		})
	}
	running.Wait()
}

func (s *source) Meta() graph.Meta       { return s.meta }
func (s *source) Labels() []int32        { return s.labels }
func (s *source) Targets() graph.Columns { return graph.Columns{} }
func (s *source) Splits() [][]graph.Mark { return s.splits }
func (s *source) IDs() graph.IDs         { return graph.IDs{} }
func (s *source) Notes() []string        { return s.notes }
func (s *source) Close() error           { return nil }

// Edges generates the edges in batches of batchEdges.
func (s *source) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	buffer := func() graph.EdgeBatch {
		n := min(batchEdges, s.meta.Edges)
		return graph.EdgeBatch{Src: make([]uint32, n), Dst: make([]uint32, n)}
	}
	fill := func(i uint64, b graph.EdgeBatch) graph.EdgeBatch {
		first := (i*s.of + s.share) * batchEdges
		n := min(batchEdges, s.meta.Edges-first)
		b.Src, b.Dst = b.Src[:n], b.Dst[:n]
		s.model.draw(first, b.Src, b.Dst)
		return b
	}
	return inOrder(ctx, s.batches((s.meta.Edges+batchEdges-1)/batchEdges), buffer, fill, yield)
}

// Features generates rows in batches of batchFloats numbers, or single rows if they are
// longer.
func (s *source) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	columns := s.meta.Features
	if columns == 0 {
		return context.Cause(ctx)
	}
	vertices := uint64(s.meta.Vertices)
	rows := min(max(1, uint64(batchFloats/columns)), vertices)
	buffer := func() graph.FeatureBatch {
		return graph.FeatureBatch{Dense: make([]float32, int(rows)*columns)}
	}
	fill := func(i uint64, b graph.FeatureBatch) graph.FeatureBatch {
		first := (i*s.of + s.share) * rows
		b.First, b.Dense = uint32(first), b.Dense[:int(min(rows, vertices-first))*columns]
		s.features.fill(first, b.Dense)
		return b
	}
	return inOrder(ctx, s.batches((vertices+rows-1)/rows), buffer, fill, yield)
}

// FeaturesOf generates the rows of the vertices of which wanted reports true, whichever share
// they are in. wanted is called from several goroutines.
func (s part) FeaturesOf(ctx context.Context, wanted func(vertex uint32) bool, yield func(graph.FeatureBatch) error) error {
	columns, vertices := s.meta.Features, uint64(s.meta.Vertices)
	if columns == 0 {
		return context.Cause(ctx)
	}
	rows := min(max(1, uint64(batchFloats/columns)), vertices)
	buffer := func() graph.FeatureBatch {
		return graph.FeatureBatch{Vertices: make([]uint32, 0, rows), Dense: make([]float32, int(rows)*columns)}
	}
	fill := func(i uint64, b graph.FeatureBatch) graph.FeatureBatch {
		b.Vertices, b.Dense = b.Vertices[:0], b.Dense[:0]
		for v := i * rows; v < min(vertices, (i+1)*rows); v++ {
			if wanted(uint32(v)) {
				at := len(b.Dense)
				b.Vertices, b.Dense = append(b.Vertices, uint32(v)), b.Dense[:at+columns]
				s.features.fill(v, b.Dense[at:])
			}
		}
		return b
	}
	return inOrder(ctx, (vertices+rows-1)/rows, buffer, fill, yield)
}

// batches returns how many of all batches are in the share.
func (s *source) batches(all uint64) uint64 {
	if all <= s.share {
		return 0
	}
	return (all-s.share-1)/s.of + 1
}
