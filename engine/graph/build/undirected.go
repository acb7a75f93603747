package build

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// Undirected reads a graph into memory in the form that the multilevel partitioner gets,
// so that other partitioners can be compared with it. Temporary files go to the scratch
// folder.
func Undirected(ctx context.Context, src graph.Source, scratch string) (*partition.Graph, error) {
	d, err := OnDisk(ctx, src, scratch)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Whole(ctx)
}

// A Disk is a graph in the form that partitioners get, in a temporary file.
type Disk struct {
	*blocks
	spool *spool
}

// OnDisk writes a graph to a temporary file in the scratch folder, as an import does before
// it cuts. The caller closes the result.
func OnDisk(ctx context.Context, src graph.Source, scratch string) (*Disk, error) {
	o, err := Options{Dir: scratch, Scratch: scratch, Partitioner: stream}.settle(src)
	if err != nil {
		return nil, err
	}
	p, _, err := newPlan(src, o)
	if err != nil {
		return nil, err
	}
	b := newBuilder(src, o, p)
	if b.spool, err = b.scratch(); err != nil {
		return nil, err
	}
	defer b.spool.close()
	h, err := b.spread(ctx)
	if err != nil {
		return nil, err
	}
	to, err := b.scratch()
	if err != nil {
		return nil, err
	}
	g, err := b.sortHalves(ctx, h, to)
	if err != nil {
		to.close()
		return nil, err
	}
	return &Disk{g, to}, nil
}

// Whole reads the graph into memory.
func (d *Disk) Whole(ctx context.Context) (*partition.Graph, error) { return d.whole(ctx) }

// BlockBytes is what reading takes, beside the partitioner.
func (d *Disk) BlockBytes() uint64 {
	return readAhead * blockBytes(uint64(d.vertices), d.halfEdges, d.loads.Constraints())
}

// Close deletes the file.
func (d *Disk) Close() { d.spool.close() }
