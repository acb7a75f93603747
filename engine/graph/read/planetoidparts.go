package read

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// readFeatures takes the rows of allx and tx.
func (p *planetoid) readFeatures(ctx context.Context) error {
	var matrices [2]*rowsInMemory
	for i, ending := range []string{".allx", ".tx"} {
		v, _, err := p.load(ctx, ending, 3)
		if err != nil {
			return err
		}
		m, ok := v.(*pyMatrix)
		if !ok {
			return p.wrong(ending, "it holds no sparse matrix of SciPy (csr_matrix): take the file from kimiyoung/planetoid")
		}
		if matrices[i], err = m.rows(); err != nil {
			return p.wrong(ending, "%w", err)
		}
	}
	allx, tx := matrices[0], matrices[1]
	if allx.width != tx.width {
		return p.wrong(".tx", "it has %d columns and ind.NAME.allx has %d: take all files from one place", tx.width, allx.width)
	}
	if len(tx.indptr)-1 != len(p.test) {
		return p.wrong(".tx", "it has %d rows and ind.NAME.test.index has %d lines: take all files from one place", len(tx.indptr)-1, len(p.test))
	}
	if err := p.number(uint64(len(allx.indptr) - 1)); err != nil {
		return err
	}
	p.meta.Features, p.meta.Sparse, p.meta.NonZeros = allx.width, true, uint64(len(allx.indices)+len(tx.indices))
	if p.meta.Features == 0 {
		p.meta.Sparse = false
		return nil
	}
	p.assembled.features = func(ctx context.Context, yield func(graph.FeatureBatch) error) error {
		for _, b := range []graph.FeatureBatch{
			{Indptr: allx.indptr, Indices: allx.indices, Values: allx.values},
			{Indptr: tx.indptr, Indices: tx.indices, Values: tx.values, Vertices: p.test},
		} {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if len(b.Indptr) == 1 {
				continue
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// classes reads labels that are one-hot rows; a row of zeros is no label.
func (p *planetoid) classes(ctx context.Context, ending string) (labels []int32, width uint64, err error) {
	v, _, err := p.load(ctx, ending, 2)
	if err != nil {
		return nil, 0, err
	}
	a, ok := v.(*pyArray)
	if !ok || len(a.shape) != 2 || a.shape[1] == 0 || a.shape[1] > maxClasses {
		return nil, 0, p.wrong(ending, "it holds no array with a row for each vertex and a column for each class: take the file from kimiyoung/planetoid")
	}
	rows, width := a.shape[0], a.shape[1]
	labels = make([]int32, rows)
	for r := range rows {
		labels[r] = graph.NoLabel
		for c := range width {
			at := r*width + c
			if a.fortran {
				at = c*rows + r
			}
			switch a.number(a.raw, int(at)) {
			case 0:
			case 1:
				if labels[r] != graph.NoLabel {
					return nil, 0, p.wrong(ending, "row %d has two classes, %d and %d, and a vertex has one: leave one of them", r, labels[r], c)
				}
				labels[r] = int32(c)
			default:
				return nil, 0, p.wrong(ending, "row %d, column %d is neither 0 nor 1: write labels as one-hot rows", r, c)
			}
		}
	}
	return labels, width, nil
}

// validation is how many vertices are for validation in Planetoid's public split.
const validation = 500

func (p *planetoid) readLabels(ctx context.Context) error {
	trained, _, err := p.classes(ctx, ".y")
	if err != nil {
		return err
	}
	before, width, err := p.classes(ctx, ".ally")
	if err != nil {
		return err
	}
	tested, testedWidth, err := p.classes(ctx, ".ty")
	if err != nil {
		return err
	}
	switch {
	case len(before) != int(p.before):
		return p.wrong(".ally", "it has %d rows and ind.NAME.allx has %d: take all files from one place", len(before), p.before)
	case len(tested) != len(p.test) || testedWidth != width:
		return p.wrong(".ty", "it has %d rows and %d columns, and %d and %d were expected: take all files from one place", len(tested), testedWidth, len(p.test), width)
	case len(trained) > len(before):
		return p.wrong(".y", "it has %d rows and ind.NAME.ally has %d: take all files from one place", len(trained), len(before))
	}
	if err := p.memory.grow(0, 5*uint64(p.meta.Vertices)); err != nil {
		return err
	}
	p.labels = append(before, slices.Repeat([]int32{graph.NoLabel}, int(p.meta.Vertices-p.before))...)
	marks := make([]graph.Mark, p.meta.Vertices)
	for i := range min(len(trained)+validation, len(before)) {
		marks[i] = graph.Validation
		if i < len(trained) {
			marks[i] = graph.Train
		}
	}
	for i, v := range p.test {
		p.labels[v], marks[v] = tested[i], graph.Test
	}
	p.splits = [][]graph.Mark{marks}
	p.meta.Classes = int(width)
	return nil
}

// readGraph takes neighbours in both directions, whichever lists them, and each
// pair once. A vertex that is its own neighbour is left out, as everyone who
// publishes results on these graphs does.
func (p *planetoid) readGraph(ctx context.Context) error {
	const ending = ".graph"
	v, size, err := p.load(ctx, ending, 16)
	if err != nil {
		return err
	}
	d, ok := v.(*pyDict)
	if !ok || len(d.items)%2 != 0 {
		return p.wrong(ending, "it holds no dict of vertices and lists of neighbours: take the file from kimiyoung/planetoid")
	}
	vertex := func(v any) (uint64, error) {
		if id, ok := v.(int64); ok && id >= 0 && id < int64(p.meta.Vertices) {
			return uint64(id), nil
		}
		if id, ok := v.(int64); ok {
			return 0, p.wrong(ending, "there is no vertex %d, as there are %d, numbered from 0: take all files from one place", id, p.meta.Vertices)
		}
		return 0, p.wrong(ending, "a vertex in it is no integer: take the file from kimiyoung/planetoid")
	}
	var pairs []uint64
	listed, loops := 0, 0
	for i := 0; i < len(d.items); i += 2 {
		from, err := vertex(d.items[i])
		if err != nil {
			return err
		}
		neighbours, ok := d.items[i+1].(*pyList)
		if !ok {
			return p.wrong(ending, "the neighbours of vertex %d are no list: take the file from kimiyoung/planetoid", from)
		}
		// A list may be there by reference many times over.
		if listed += len(neighbours.items); int64(listed) > size {
			return p.wrong(ending, "it lists more neighbours than a file of its size can hold: take the file from kimiyoung/planetoid")
		}
		if pairs, err = enlarge(p.memory, pairs, 2*len(neighbours.items), 8); err != nil {
			return err
		}
		for _, n := range neighbours.items {
			to, err := vertex(n)
			if err != nil {
				return err
			}
			if to == from {
				loops++
				continue
			}
			pairs = append(pairs, from<<32|to, to<<32|from)
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	if loops > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: edges of a vertex with itself (%d of them) were left out.", p.name(ending), loops))
	}
	p.meta.Edges = uint64(len(pairs))
	p.assembled.edges = func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		var b graph.EdgeBatch
		for part := range slices.Chunk(pairs, edgeBatch) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b.Src, b.Dst = b.Src[:0], b.Dst[:0]
			for _, pair := range part {
				b.Src, b.Dst = append(b.Src, uint32(pair>>32)), append(b.Dst, uint32(pair))
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
