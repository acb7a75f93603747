package build

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// countSparse reads the number of entries of each row, if features are to be stored as
// sparse rows, and from these computes where each row begins in the order of the new ids.
func (b *builder) countSparse(ctx context.Context) error {
	if !b.plan.sparse {
		return nil
	}
	counts := make([]uint32, b.meta.Vertices)
	b.report.begin("counting features", uint64(b.meta.Vertices), "vertices")
	err := b.src.Features(ctx, func(f graph.FeatureBatch) error {
		rows, err := checkBatch(f, b.meta)
		if err != nil {
			return err
		}
		for i := range rows {
			counts[f.Vertex(i)] = uint32(f.Indptr[i+1] - f.Indptr[i])
		}
		b.report.add(uint64(rows))
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	b.sparseAt = make([]int64, len(b.order)+1)
	for id, v := range b.order {
		b.sparseAt[id+1] = b.sparseAt[id] + int64(counts[v])
	}
	return nil
}

// checkBatch checks a batch against its source's metadata and returns its number of rows.
func checkBatch(f graph.FeatureBatch, meta graph.Meta) (int, error) {
	columns := meta.Features
	rows := len(f.Dense) / columns
	if meta.Sparse {
		rows = max(len(f.Indptr)-1, 0)
		if rows > 0 && (f.Indptr[0] != 0 || !slices.IsSorted(f.Indptr) || f.Indptr[rows] != int64(len(f.Indices)) || len(f.Indices) != len(f.Values)) {
			return 0, fmt.Errorf("the source yields sparse features that do not fit each other, from vertex %d", f.First)
		}
		for i := range rows {
			last := int64(-1)
			for _, column := range f.Indices[f.Indptr[i]:f.Indptr[i+1]] {
				if int64(column) <= last || int64(column) >= int64(columns) {
					return 0, fmt.Errorf("the source yields the sparse column %d after %d, of %d", column, last, columns)
				}
				last = int64(column)
			}
		}
	} else if len(f.Dense)%columns != 0 {
		return 0, fmt.Errorf("the source yields %d features at once, and rows of %d", len(f.Dense), columns)
	}
	vertices := meta.Vertices
	if f.Vertices == nil {
		if uint64(f.First)+uint64(rows) > uint64(vertices) {
			return 0, fmt.Errorf("the source yields features of vertex %d, and there are %d", uint64(f.First)+uint64(rows)-1, vertices)
		}
		return rows, nil
	}
	if len(f.Vertices) != rows {
		return 0, fmt.Errorf("the source yields %d rows of features for %d vertices", rows, len(f.Vertices))
	}
	for _, v := range f.Vertices {
		if v >= vertices {
			return 0, fmt.Errorf("the source yields features of vertex %d, and there are %d", v, vertices)
		}
	}
	return rows, nil
}

// writeFeatures streams the source's rows to their final place.
func (b *builder) writeFeatures(ctx context.Context) error {
	if b.meta.Features == 0 {
		return nil
	}
	b.report.begin("writing features", uint64(b.meta.Vertices), "vertices")
	w := newFeatureWriter(ctx, b)
	err := b.src.Features(w.ctx, func(f graph.FeatureBatch) error {
		rows, err := checkBatch(f, b.meta)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := w.row(f, i); err != nil {
				return err
			}
		}
		b.report.add(uint64(rows))
		return nil
	})
	return w.close(err)
}

// locate returns the shard of a vertex and its row there.
func (w *featureWriter) locate(v uint32) (shard int, row uint32) {
	b := w.b
	shard = int(b.numbers.part[v])
	row = w.next[shard]
	first, end := b.numbers.first[shard], b.numbers.first[shard+1]
	if first+row >= end || b.order[first+row] != v {
		// Not the shard's next row: the source lacks rows or has another order.
		found, _ := slices.BinarySearch(b.order[first:end], v)
		row = uint32(found)
	}
	w.next[shard] = row + 1
	return shard, row
}

// row writes the i-th row of a batch to its place.
func (w *featureWriter) row(f graph.FeatureBatch, i int) error {
	b := w.b
	v := f.Vertex(i)
	shard, row := w.locate(v)
	first := b.numbers.first[shard]
	columns := b.meta.Features
	if !b.meta.Sparse {
		return w.values(v, shard, int64(row)*int64(columns), f.Dense[i*columns:(i+1)*columns])
	}
	indices, values := f.Indices[f.Indptr[i]:f.Indptr[i+1]], f.Values[f.Indptr[i]:f.Indptr[i+1]]
	if b.sparseAt == nil {
		clear(w.dense)
		for j, column := range indices {
			w.dense[column] = values[j]
		}
		return w.values(v, shard, int64(row)*int64(columns), w.dense)
	}
	at := b.sparseAt[first+row] - b.sparseAt[first]
	if room := b.sparseAt[first+row+1] - b.sparseAt[first+row]; room != int64(len(indices)) {
		return fmt.Errorf("the source yields %d features of vertex %d, and yielded %d before", len(indices), v, room)
	}
	if err := w.put(&w.lanes[len(w.next)+shard], at*4, raw(indices)); err != nil {
		return err
	}
	return w.values(v, shard, at, values)
}

// values writes a vertex's features at an element of the shard's tensor.
func (w *featureWriter) values(v uint32, shard int, at int64, values []float32) error {
	if w.b.options.DType == graph.F32 {
		return w.put(&w.lanes[shard], at*4, raw(values))
	}
	var err error
	if w.rounded, err = rounded(w.rounded, v, values); err != nil {
		return err
	}
	return w.put(&w.lanes[shard], at*2, raw(w.rounded))
}

// rounded returns a vertex's features as bf16, in to if there is room.
func rounded(to []uint16, v uint32, values []float32) ([]uint16, error) {
	to = sized(to, len(values))
	graph.ToBF16(to, values)
	for i, bits := range to {
		if bits&0x7f80 == 0x7f80 { // sources yield finite values
			return to, fmt.Errorf("a feature of vertex %d, %g, is beyond what bf16 holds: store the features as f32", v, values[i])
		}
	}
	return to, nil
}
