package enginetest

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// part is a source without some of its vertices.
type part struct {
	graph.Source
	meta   graph.Meta
	to     []int32 // of each vertex of the source: its number here; -1: it is absent
	labels []int32
	splits [][]graph.Mark
}

// Part returns a source with the vertices that keep reports, and the edges between them. They are
// numbered anew. The source has classes.
func Part(src graph.Source, keep func(vertex int) bool) graph.Source {
	p := &part{Source: src, meta: src.Meta()}
	labels, splits := src.Labels(), src.Splits()
	p.splits = make([][]graph.Mark, len(splits))
	kept := int32(0)
	for v := range int(p.meta.Vertices) {
		if !keep(v) {
			p.to = append(p.to, -1)
			continue
		}
		p.to, p.labels = append(p.to, kept), append(p.labels, labels[v])
		for i, of := range splits {
			p.splits[i] = append(p.splits[i], of[v])
		}
		kept++
	}
	p.meta.Vertices = uint32(kept)
	return p
}

func (p *part) Meta() graph.Meta       { return p.meta }
func (p *part) Labels() []int32        { return p.labels }
func (p *part) Splits() [][]graph.Mark { return p.splits }
func (*part) IDs() graph.IDs           { return graph.IDs{} }

// Edges implements graph.Source. Weights are left out.
func (p *part) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	return p.Source.Edges(ctx, func(all graph.EdgeBatch) error {
		var some graph.EdgeBatch
		for i, u := range all.Src {
			if u, v := p.to[u], p.to[all.Dst[i]]; u >= 0 && v >= 0 {
				some.Src, some.Dst = append(some.Src, uint32(u)), append(some.Dst, uint32(v))
			}
		}
		return yield(some)
	})
}

// Features implements graph.Source.
func (p *part) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	columns := p.meta.Features
	return p.Source.Features(ctx, func(all graph.FeatureBatch) error {
		some := graph.FeatureBatch{Vertices: []uint32{}}
		if p.meta.Sparse {
			some.Indptr = []int64{0}
		}
		for i := range max(len(all.Dense)/columns, len(all.Indptr)-1) {
			v := p.to[all.Vertex(i)]
			if v < 0 {
				continue
			}
			some.Vertices = append(some.Vertices, uint32(v))
			if !p.meta.Sparse {
				some.Dense = append(some.Dense, all.Dense[i*columns:(i+1)*columns]...)
				continue
			}
			from, to := all.Indptr[i], all.Indptr[i+1]
			some.Indices, some.Values = append(some.Indices, all.Indices[from:to]...), append(some.Values, all.Values[from:to]...)
			some.Indptr = append(some.Indptr, int64(len(some.Indices)))
		}
		return yield(some)
	})
}

// marked is a source with another split.
type marked struct {
	graph.Source
	marks []graph.Mark
}

// Marked returns a source with one split, in which mark returns the part of each vertex.
func Marked(src graph.Source, mark func(vertex int) graph.Mark) graph.Source {
	m := &marked{Source: src}
	for v := range int(src.Meta().Vertices) {
		m.marks = append(m.marks, mark(v))
	}
	return m
}

func (m *marked) Splits() [][]graph.Mark { return [][]graph.Mark{m.marks} }
