package build

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/shardtable"
)

// placed holds the stored edges in buckets by the shard of their destination. A shard too
// large for the memory has several, each for 1<<shift rows.
type placed struct {
	*records
	per   int // buckets per shard
	shift uint
}

// place puts every stored edge into a bucket of its shard: the row of its destination
// there and the new id of its source. A mirrored edge directly follows its original, so
// that equal edges keep the source's order.
func (b *builder) place(ctx context.Context, from edgeStream, mirror bool, total uint64) (*placed, error) {
	p := &placed{
		records: newRecords(b.spool, b.plan.writers(), b.plan.shards*b.plan.perShard, b.plan.chunk, b.meta.Weighted),
		per:     b.plan.perShard,
	}
	for (b.numbers.largest()-1)>>p.shift >= p.per {
		p.shift++
	}
	ids, where := b.numbers.ids(), shardtable.New(b.numbers.first)
	b.report.begin("sharing out edges", total, "edges")
	err := pipe(ctx, from, b.meta, len(p.parts), func(writer int, e graph.EdgeBatch) error {
		b.report.add(uint64(len(e.Src)))
		return p.put(p.parts[writer], e, ids, where, b.plan.low, mirror)
	})
	if err != nil {
		return nil, err
	}
	return p, p.seal()
}

// put renumbers a batch in place, which pipe allows, and distributes its edges.
func (p *placed) put(to part, e graph.EdgeBatch, ids []uint32, where *shardtable.Table, low uint, mirror bool) error {
	// A loop of nothing but these loads keeps many of them in flight.
	for i, v := range e.Src {
		e.Src[i] = ids[v]
	}
	for i, v := range e.Dst {
		e.Dst[i] = ids[v]
	}
	open, fill, chunk := to.keys.open, to.keys.fill, to.keys.chunk
	per, shift := p.per, p.shift
	for i, s := range e.Src {
		d := e.Dst[i]
		sides := 1
		if mirror && s != d {
			sides = 2
		}
		for ; sides > 0; sides-- {
			shard := where.Shard(d)
			row := d - where.First[shard]
			at := shard*per + int(row>>shift)
			n := fill[at]
			open[at*chunk+n] = uint64(row)<<low | uint64(s)
			fill[at] = n + 1
			if n+1 == chunk {
				if err := to.keys.flush(at); err != nil {
					return err
				}
			}
			if e.Weights != nil {
				if err := to.weights.put(at, e.Weights[i]); err != nil {
					return err
				}
			}
			s, d = d, s
		}
	}
	return nil
}

// rows returns the range of rows of a bucket in a shard with n rows.
func (p *placed) rows(sub int, n uint32) (first, end uint32) {
	first = uint32(min(uint64(n), uint64(sub)<<p.shift))
	end = uint32(min(uint64(n), uint64(sub+1)<<p.shift))
	return first, end
}
