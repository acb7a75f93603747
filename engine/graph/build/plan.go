package build

import (
	"fmt"
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/edgerows"
	"github.com/hopmesh/hopmesh/engine/graph/build/loads"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// binaryBytes is an upper bound on the resident memory of the program itself.
const binaryBytes = 32 << 20

// A plan holds all sizes, chosen before anything is allocated.
type plan struct {
	vertices    uint32
	shards      int
	partitioner string
	loads       loads.Loads
	sparse      bool   // features are stored as sparse rows
	low         uint   // bits of a vertex id
	stored      uint64 // edges at most
	halves      uint64 // at most
	weighted    bool
	features    bool

	// The sizes that shrink when memory is short.
	workers    int
	records    int // held by a sorter
	most       int // held of a single vertex
	chunkBytes int // of all open chunks
	laneBytes  int // of one buffer of features
	// The sizes derived from them.
	chunk      int // elements
	perShard   int // buckets
	blockShift uint

	scratch uint64 // bytes on disk at most
	output  uint64
}

// Plan forecasts what Run would need and produce. It returns an error if Run would fail.
func Plan(src graph.Source, o Options) (graph.Forecast, error) {
	o, err := o.settle(src)
	if err != nil {
		return graph.Forecast{}, err
	}
	p, peak, err := newPlan(src, o)
	if err != nil {
		return graph.Forecast{}, err
	}
	return graph.Forecast{
		Vertices:    uint64(p.vertices),
		Edges:       p.stored,
		Partitioner: p.partitioner,
		Shards:      p.shards,
		ShardBytes:  p.output / uint64(p.shards),
		PeakMemory:  peak,
		Scratch:     p.scratch,
		CutAtMost:   1 - 1/float64(p.shards),
	}, nil
}

// newPlan chooses the partitioner and the sizes. The options must be settled.
func newPlan(src graph.Source, o Options) (*plan, uint64, error) {
	meta := src.Meta()
	p := &plan{
		vertices: meta.Vertices, shards: o.Shards, partitioner: o.Partitioner,
		weighted: meta.Weighted || meta.EdgeFeatures > 0, features: meta.Features > 0,
		loads:  loads.New(src, o.Shards),
		stored: meta.Edges,
		halves: 2 * meta.Edges,
		low:    uint(bits.Len32(meta.Vertices - 1)),
	}
	if meta.Edges > 1<<48 {
		return nil, 0, fmt.Errorf("the graph has %d edges, more than can be stored", meta.Edges)
	}
	if o.Undirected {
		p.stored *= 2
	}
	if meta.Sparse && meta.Features > 0 {
		p.sparse = float64(meta.NonZeros) < 0.25*float64(meta.Vertices)*float64(meta.Features)
	}
	release() // existing garbage must not count
	base := budget.Resident() + binaryBytes
	bound, hard := o.Memory, o.Memory
	if o.Memory == 0 {
		free := budget.Available()
		bound, hard = base+free/2, base+free
	}
	if p.partitioner == auto {
		p.partitioner = multilevel
		if p.shrinkTo(bound, base) > bound {
			p.partitioner = stream
		}
	}
	peak := p.shrinkTo(bound, base)
	if peak > hard {
		advice := "raise {dataset.memory}"
		if o.Partitioner == multilevel {
			advice += " or use {dataset.partitioner} stream"
		}
		return nil, 0, fmt.Errorf("the import needs %s of memory and has %s: %s", inBytes(peak), inBytes(hard), advice)
	}
	p.most = p.records + int((max(bound, peak)-peak)/uint64(p.workers*2*p.recordBytes()))
	p.scratch = p.scratchBytes() + edgerows.Bytes(meta)
	p.output = p.outputBytes(src, o)
	if o.Nodes > 1 {
		return p, peak, nil // each checks its own disk
	}
	return p, peak, p.checkDisk(o)
}

// shrinkTo starts from comfortable sizes, reduces them until the peak fits the bound or
// nothing can shrink further, and returns the peak in bytes.
func (p *plan) shrinkTo(bound, base uint64) uint64 {
	p.workers, p.records, p.chunkBytes, p.laneBytes = workers(), 1<<20, 4<<20, 512<<10
	for {
		p.derive()
		peak := base + p.peak()
		switch {
		case peak <= bound:
			return peak
		case p.laneBytes > 64<<10:
			p.laneBytes /= 2
			p.chunkBytes = max(p.chunkBytes/2, 1<<20)
		case p.workers > 1:
			p.workers--
		case p.records > 1<<18:
			p.records /= 2
		case p.laneBytes > 8<<10:
			p.laneBytes /= 2
		default:
			return peak
		}
	}
}

// maxBuckets bounds the number of buckets, so that their chunks stay large.
const maxBuckets = 4096

// derive computes how many buckets are needed for one bucket's records to fit a sorter,
// with slack for larger ones.
func (p *plan) derive() {
	room := uint64(p.records) * 2 / 3
	p.perShard = 1
	for p.perShard*p.shards < maxBuckets && p.stored/uint64(p.shards*p.perShard) > room {
		p.perShard *= 2
	}
	most := p.shards * p.perShard
	if p.partitioner != random {
		p.blockShift = 0
		for n := p.blocks(); n > maxBuckets || n > 1 && p.halves/uint64(n) < room/2 && 1<<p.blockShift < 1<<20; n = p.blocks() {
			p.blockShift++
		}
		most = max(most, p.blocks())
	}
	p.chunk = 1 << 9
	for p.chunk < 1<<14 && p.chunk*2*most*p.recordBytes()*p.writers() <= p.chunkBytes {
		p.chunk *= 2
	}
}

func (p *plan) blocks() int { return int((p.vertices-1)>>p.blockShift) + 1 }

// writers returns the number of goroutines that put edges into buckets.
func (p *plan) writers() int {
	if p.weighted {
		return 1
	}
	return p.workers
}

func (p *plan) recordBytes() int {
	if p.weighted {
		return 12
	}
	return 8
}

// peak returns the memory of the build itself in its most demanding stage.
func (p *plan) peak() uint64 {
	v, w := uint64(p.vertices), uint64(p.workers)
	record := uint64(p.recordBytes())
	records := uint64(p.records)
	perShard := v/uint64(p.shards)*5/4 + 1
	open := func(buckets int) uint64 { return uint64(buckets*p.chunk*p.writers())*record + pipeMemory(p.writers()) }

	place := 6*v + open(p.shards*p.perShard)
	sort := 6*v + w*(2*record*min(records, p.stored)+12*perShard+v/8+1<<20)
	lanes := uint64(p.shards + parcels)
	features := 6*v + lanes*uint64(p.laneBytes)
	if p.sparse {
		sort += 12 * v
		features += 8*v + uint64(p.shards*p.laneBytes)
	}
	if !p.features {
		features = 0
	}
	most := max(place, sort, features)
	if p.partitioner != random {
		rows := min(v, 1<<p.blockShift)
		most = max(most,
			open(p.blocks()),
			w*(2*8*min(records, p.halves)+12*rows+1<<20))
		block := blockBytes(v, p.halves, p.loads.Constraints())
		if p.partitioner == elsewhere {
			return most + most/16 + 16<<20
		}
		if p.partitioner == stream {
			most = max(most, partition.StreamingMemory(p.vertices, p.halves, p.shards, p.loads.Constraints())+readAhead*block+8*rows)
		} else {
			most = max(most, partition.MultilevelMemory(p.vertices, p.halves, p.loads.Constraints())+8*rows)
		}
	}
	// Garbage that has not been returned to the system yet.
	return most + most/16 + 16<<20
}
