package build

import (
	"context"
	"errors"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/edgerows"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/graph/targets"
)

// A shardWriter writes shard files one after another, up to where their features begin.
// Each worker has one.
type shardWriter struct {
	b      *builder
	edges  *placed
	sorter *sorter
	// merged and weights hold a shard's edges until their number is known, if they came
	// in several pieces. A single piece is used in place.
	merged, weights *spool
	whole           []uint32
	heavy           []float32
	outside         []uint64 // one bit for each vertex: whether it is a source outside the shard
	indptr          []int64
	copying         []byte
	infinite        bool             // a sum of weights overflowed
	rows            *edgerows.Merger // nil: edges have no features
}

// writeShards writes all files up to their features.
func (b *builder) writeShards(ctx context.Context, edges *placed) error {
	b.report.begin("sorting edges into shards", uint64(b.plan.shards), "shards")
	return parallel(ctx, b.plan.workers, b.plan.shards, func(ctx context.Context, next func() (int, bool)) error {
		w, err := b.newShardWriter(edges)
		if err != nil {
			return err
		}
		defer w.merged.close()
		defer w.weights.close()
		defer w.rows.Close()
		for shard, ok := next(); ok; shard, ok = next() {
			if !b.makes(shard) {
				continue
			}
			if err := w.write(ctx, shard); err != nil {
				return err
			}
			b.report.add(1)
		}
		return nil
	})
}

func (b *builder) newShardWriter(edges *placed) (w *shardWriter, err error) {
	w = &shardWriter{
		b: b, edges: edges,
		sorter:  newSorter(min(b.plan.records, edges.largest()), b.plan.most, b.plan.low, b.meta.Weighted),
		outside: make([]uint64, (uint64(b.meta.Vertices)+63)/64),
		indptr:  make([]int64, b.numbers.largest()+1),
		copying: make([]byte, copyBuffer),
	}
	if w.merged, err = newSpool(b.spool.disk); err != nil {
		return nil, err
	}
	if w.weights, err = newSpool(b.spool.disk); err != nil {
		w.merged.close()
		return nil, err
	}
	w.rows, err = edgerows.Of(b.src).Merger(b.options.DType)
	return w, err
}

// copyBuffer is the size of a worker's copy buffer, a multiple of every element size.
const copyBuffer = 1 << 18

// write writes one file.
func (w *shardWriter) write(ctx context.Context, shard int) error {
	b := w.b
	first, end := b.numbers.first[shard], b.numbers.first[shard+1]
	info := graph.ShardInfo{Vertices: uint64(end - first)}
	if err := w.merge(ctx, shard, &info); err != nil {
		return err
	}
	out, err := newOutput(b.disk, shard)
	if err != nil {
		return err
	}
	b.outputs[shard] = out
	rows := b.order[first:end]
	tensors := w.tensors(shard, rows, first, info.Edges)
	metadata, err := w.metadata(tensors, shard, first, len(rows))
	if err != nil {
		return err
	}
	if err := out.lay(tensors, metadata); err != nil {
		return err
	}
	info.Bytes = uint64(out.layout.Size())
	for _, v := range rows {
		if b.trains(v) {
			info.Training++
		}
	}
	b.manifest.Shards[shard] = info
	if err := out.next(out.layout.Header()); err != nil {
		return err
	}
	if err := out.next(raw(w.indptr[:len(rows)+1])); err != nil {
		return err
	}
	if err := w.sparseOffsets(out, rows, first); err != nil {
		return err
	}
	if err := b.columns.write(idColumn, shard, rows, w.copying, out.next); err != nil {
		return err
	}
	if err := w.copyEdges(out, info.Edges); err != nil {
		return err
	}
	if b.columns.about().labels && !targets.Late(&b.meta) {
		err = b.columns.write(labelColumn, shard, rows, w.copying, out.next)
	}
	if err == nil && w.rows != nil {
		out.at = out.place[graph.EdgeFeatures]
		err = w.rows.Write(info.Edges, w.copying, out.next)
	}
	return err
}

// merge sorts a shard's edges and merges equal ones, into the spools and indptr.
func (w *shardWriter) merge(ctx context.Context, shard int, info *graph.ShardInfo) error {
	clear(w.outside)
	first := w.b.numbers.first[shard]
	n := w.b.numbers.first[shard+1] - first
	indptr := w.indptr[:n+1]
	clear(indptr)
	w.merged.restart()
	w.weights.restart()
	w.rows.Begin()
	one := w.edges.per == 1 && w.edges.size(shard) <= w.sorter.limit
	w.whole, w.heavy = nil, nil
	for sub := range w.edges.per {
		from, to := w.edges.rows(sub, n)
		err := w.sorter.rows(ctx, w.edges.records, shard*w.edges.per+sub, from, to, func(p sorted) error {
			edges, weights := w.mergePiece(p, first, n, info)
			if w.infinite {
				return errors.New("the weights of an edge that is listed more than once add up to more than a float32 holds: scale the weights down")
			}
			if one {
				w.whole, w.heavy = edges, weights
				return nil
			}
			if _, err := w.merged.append(raw(edges)); err != nil {
				return err
			}
			_, err := w.weights.append(raw(weights))
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := w.rows.End(); err != nil {
		return err
	}
	for row := range n {
		indptr[row+1] += indptr[row]
	}
	info.Edges = uint64(indptr[n])
	for _, word := range w.outside {
		info.Halo += uint64(bits.OnesCount64(word))
	}
	return nil
}

// mergePiece returns the sources and the weights of the merged edges.
func (w *shardWriter) mergePiece(p sorted, first, vertices uint32, info *graph.ShardInfo) ([]uint32, []float32) {
	low := w.b.plan.low
	mask := uint64(1)<<low - 1
	counts := w.indptr[1:]
	edges := shrink(p.spare)
	n := 0
	last := ^uint64(0)
	w.b.meta.Types.Order(p.keys, p.weights)
	for i, k := range p.keys {
		if w.rows != nil {
			p.weights[i] = w.rows.Take(p.weights[i], k == last)
		}
		if k == last && (w.b.meta.Types == nil || p.weights[i] == p.weights[n-1]) {
			if p.weights != nil && w.b.meta.Types == nil { // else they are relations
				p.weights[n-1] += p.weights[i]
				w.infinite = w.infinite || p.weights[n-1]-p.weights[n-1] != 0
			}
			continue
		}
		last = k
		source := uint32(k & mask)
		edges[n] = source
		if p.weights != nil {
			p.weights[n] = p.weights[i]
		}
		n++
		counts[k>>low]++
		if source-first >= vertices {
			info.Cut++
			w.outside[source/64] |= 1 << (source % 64)
		}
	}
	return edges[:n], edgerows.Of(w.b.src).Weights(p.weights[:min(n, len(p.weights))])
}

// tensors lists the tensors of a shard's file, larger elements first.
func (w *shardWriter) tensors(shard int, rows []uint32, first uint32, edges uint64) []safetensors.Tensor {
	b := w.b
	n, e, f := int64(len(rows)), int64(edges), int64(b.meta.Features)
	var list []safetensors.Tensor
	add := func(name string, dtype safetensors.DType, shape ...int64) {
		list = append(list, safetensors.Tensor{Name: name, DType: dtype, Shape: shape})
	}
	add("indptr", safetensors.I64, n+1)
	var entries int64
	if b.sparseAt != nil {
		entries = b.sparseAt[int64(first)+n] - b.sparseAt[first]
		add("features.indptr", safetensors.I64, n+1)
	}
	has := b.columns.about()
	if has.names {
		add("original_ids.offsets", safetensors.I64, n+1)
	} else {
		add("original_ids", safetensors.I64, n)
	}
	add("indices", safetensors.I32, e)
	if edgerows.Of(b.src).Weighted(b.meta.Weighted) {
		add(b.meta.WeightsName(), safetensors.F32, e)
	}
	if has.labels && !targets.Late(&b.meta) {
		list = append(list, targets.Tensor(&b.meta, n))
	}
	kind := safetensors.F32
	if b.options.DType == graph.BF16 {
		kind = safetensors.BF16
	}
	switch {
	case b.sparseAt != nil:
		add("features.indices", safetensors.I32, entries)
		add("features.values", kind, entries)
	case f > 0:
		add("features", kind, n, f)
	}
	if w.rows != nil {
		list = append(list, b.options.DType.EdgeTensor(e, b.meta.EdgeFeatures))
	}
	if has.labels && targets.Late(&b.meta) {
		list = append(list, targets.Tensor(&b.meta, n))
	}
	if has.splits > 0 {
		add("splits", safetensors.U8, int64(has.splits), n)
	}
	if has.names {
		add("original_ids.bytes", safetensors.U8, b.columns.nameBytes(shard, rows))
	}
	return list
}

func (w *shardWriter) metadata(tensors []safetensors.Tensor, shard int, first uint32, vertices int) (map[string]string, error) {
	s := graph.Shard{
		Number: shard, Shards: w.b.plan.shards, First: first, Vertices: vertices, Total: w.b.meta.Vertices,
		Features: w.b.meta.Features, Classes: w.b.meta.Classes, Wide: graph.Wide{Targets: w.b.meta.Targets}, DType: w.b.options.DType, EdgeValues: graph.EdgeValues{Related: w.b.meta.Related(), EdgeRows: graph.EdgeRows{Columns: w.b.meta.EdgeFeatures}},
	}
	m, err := s.Metadata(tensors)
	return w.b.meta.Describe(m), err
}
