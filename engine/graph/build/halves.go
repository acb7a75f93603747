package build

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// halves holds edges as seen from each of their ends, in buckets of 1<<shift source
// vertices, for partitioners that need the graph. A record is the vertex within its
// bucket and, in the low bits, its neighbour and whether the edge is stored at the
// vertex. Only records of stored edges have weights.
type halves struct {
	*records
	shift    uint
	low      uint
	vertices uint32
	mine     func(bucket int) bool // whose edges come to this node; nil: all
}

// spread reads the source once and puts each edge into the buckets of both its ends. A
// mirrored edge directly follows its original.
func (b *builder) spread(ctx context.Context) (*halves, error) {
	h := &halves{shift: b.plan.blockShift, low: b.plan.low + 1, vertices: b.meta.Vertices}
	h.records = newRecords(b.spool, b.plan.writers(), h.count(), b.plan.chunk, b.meta.Weighted)
	b.report.begin("reading edges", b.meta.Edges, "edges")
	err := pipe(ctx, b.src.Edges, b.meta, len(h.parts), func(writer int, e graph.EdgeBatch) error {
		b.report.add(uint64(len(e.Src)))
		return h.put(h.parts[writer], e, b.options.Undirected)
	})
	if err != nil {
		return nil, err
	}
	return h, h.seal()
}

func (h *halves) count() int { return int((h.vertices-1)>>h.shift) + 1 }

// span returns the range of a bucket's vertices.
func (h *halves) span(bucket int) (first, end uint32) {
	first = uint32(bucket) << h.shift
	return first, uint32(min(uint64(h.vertices), uint64(first)+1<<h.shift))
}

// sides returns 1 as back if the edge is stored at its source too, and 1 as pair if it is so
// because the next edge is the same the other way, which then adds nothing.
func sides(e graph.EdgeBatch, i int, mirror bool) (back uint64, pair int) {
	if next := i + 1; e.Weights == nil && next < len(e.Src) && e.Src[next] == e.Dst[i] && e.Dst[next] == e.Src[i] {
		return 1, 1
	}
	if mirror {
		return 1, 0
	}
	return 0, 0
}

func (h *halves) put(to part, e graph.EdgeBatch, mirror bool) error {
	open, fill, chunk := to.keys.open, to.keys.fill, to.keys.chunk
	mask := uint32(1)<<h.shift - 1
	for i := 0; i < len(e.Src); i++ {
		s, d, stored := e.Src[i], e.Dst[i], uint64(1)
		back, pair := sides(e, i, mirror)
		i += pair
		for side := range 2 {
			at := int(d >> h.shift)
			n := fill[at]
			open[at*chunk+n] = uint64(d&mask)<<h.low | uint64(s)<<1 | stored
			fill[at] = n + 1
			if n+1 == chunk {
				if err := to.keys.flush(at); err != nil {
					return err
				}
			}
			if e.Weights != nil && stored == 1 {
				if err := to.weights.put(at, e.Weights[i]); err != nil {
					return err
				}
			}
			if side == 0 && s == d {
				break
			}
			s, d = d, s
			stored = back
		}
	}
	return nil
}

// stored yields the stored edges, including mirrored ones, and frees the disk of what it has
// read. Weighted edges with the same ends keep the source's order.
func (h *halves) stored(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	chunk := make([]uint64, pipeBatch)
	out := graph.EdgeBatch{Src: make([]uint32, pipeBatch), Dst: make([]uint32, pipeBatch)}
	for bucket := range h.count() {
		for _, p := range h.parts {
			if err := h.storedIn(ctx, p, bucket, chunk, out, yield); err != nil {
				return err
			}
			p.keys.discard(bucket)
		}
	}
	return nil
}

func (h *halves) storedIn(ctx context.Context, p part, bucket int, chunk []uint64, out graph.EdgeBatch, yield func(graph.EdgeBatch) error) error {
	first, _ := h.span(bucket)
	mask := uint64(1)<<(h.low-1) - 1
	weights := cursor[float32]{from: p.weights, bucket: bucket}
	return p.scan(ctx, bucket, chunk, nil, func(keys []uint64, _ []float32) error {
		n := 0
		for _, k := range keys {
			out.Src[n] = uint32(k >> 1 & mask)
			out.Dst[n] = first + uint32(k>>h.low)
			n += int(k & 1)
		}
		e := graph.EdgeBatch{Src: out.Src[:n], Dst: out.Dst[:n]}
		if p.weights != nil {
			out.Weights = sized(out.Weights, n)
			e.Weights = out.Weights
			if _, err := weights.read(e.Weights); err != nil {
				return err
			}
		}
		return yield(e)
	})
}
