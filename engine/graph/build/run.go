package build

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/edgerows"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// A builder is the state of one Run. Its stages run one after another; a stage that uses
// several goroutines waits for them.
type builder struct {
	options  Options
	src      graph.Source
	meta     graph.Meta
	plan     *plan
	report   *reporter
	disk     disk   // for the shards
	spool    *spool // for the edges
	training [][]graph.Mark
	columns  columns
	// mine reports which shards this node makes; nil: all.
	mine func(shard int) bool

	numbers  *numbering
	order    []uint32 // the source vertex of each new id
	sparseAt []int64  // where each new id's sparse features begin; nil if dense
	outputs  []*output
	manifest graph.Manifest
}

// Run cuts the graph and writes its shards. It calls the source's methods from one
// goroutine at a time. If it fails or ctx is canceled, it leaves nothing behind.
func Run(ctx context.Context, src graph.Source, o Options) (m *graph.Manifest, err error) {
	o, err = o.settle(src)
	if err != nil {
		return nil, err
	}
	p, _, err := newPlan(src, o)
	if err != nil {
		return nil, err
	}
	return execute(ctx, src, o, p)
}

func execute(ctx context.Context, src graph.Source, o Options, p *plan) (m *graph.Manifest, err error) {
	start := time.Now()
	defer narrow(o.Memory)()
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("the folder %s exists already: remove it or choose another", o.Dir)
		}
		return nil, fmt.Errorf("make the folder of the shards: %w", err)
	}
	if _, err := os.Stat(o.Scratch); errors.Is(err, os.ErrNotExist) {
		defer os.Remove(o.Scratch) // fails, and so keeps the folder, if others use it by now
	}
	b := newBuilder(src, o, p)
	defer func() {
		b.spool.close()
		edgerows.Of(b.src).Discard()
		for _, out := range b.outputs {
			out.drop()
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("the import was stopped: %w", err)
		}
		if left := os.RemoveAll(o.Dir); left != nil {
			err = fmt.Errorf("%w; its folder could not be removed: %w", err, left)
		}
	}()
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	b.sum()
	b.manifest.WallSeconds = time.Since(start).Seconds()
	return &b.manifest, nil
}

// narrow bounds the process's memory, 0 for no bound, until the function that it returns is
// called.
func narrow(memory uint64) func() {
	if memory == 0 {
		return func() {}
	}
	return budget.Narrow(int64(min(memory, math.MaxInt64/2) - min(memory, binaryBytes)))
}

// newBuilder acquires no resources.
func newBuilder(src graph.Source, o Options, p *plan) *builder {
	b := &builder{
		options: o, src: src, meta: src.Meta(), plan: p,
		report:  &reporter{to: o.Report},
		disk:    disk{folder: o.Dir, need: p.output},
		outputs: make([]*output, p.shards), columns: ofSource{src},
	}
	for _, marks := range src.Splits() {
		if slices.Contains(marks, graph.Train) {
			b.training = append(b.training, marks)
		}
	}
	return b
}

func (b *builder) run(ctx context.Context) error {
	b.manifest = graph.Manifest{
		Vertices: uint64(b.meta.Vertices), Weighted: b.meta.Weighted,
		EdgeFeatures: b.meta.EdgeFeatures, Features: b.meta.Features, Sparse: b.plan.sparse, Classes: b.meta.Classes, Targets: b.meta.Targets, Types: b.meta.Types,
		DType: b.options.DType, Partitioner: b.plan.partitioner, Seed: b.options.Seed,
		Shards: make([]graph.ShardInfo, b.plan.shards),
		Notes:  slices.Clone(b.src.Notes()),
	}
	var err error
	if b.spool, err = b.scratch(); err != nil {
		return err
	}
	if b.src, err = edgerows.Wrap(b.src, b.options.Scratch, b.spool.disk.failed); err != nil {
		return err
	}
	b.meta = b.src.Meta()
	edges, err := b.cut(ctx)
	if err != nil {
		return err
	}
	release()
	b.order = b.numbers.order()
	if err := b.countSparse(ctx); err != nil {
		return err
	}
	if err := b.writeShards(ctx, edges); err != nil {
		return err
	}
	b.spool.close() // free its disk space for the features
	release()
	if err := b.writeFeatures(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}

// release returns a finished stage's memory to the system, for the next stage.
func release() { debug.FreeOSMemory() }

func (b *builder) scratch() (*spool, error) {
	if err := os.MkdirAll(b.options.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch folder: %w", err)
	}
	return newSpool(disk{folder: b.options.Scratch, need: b.plan.scratch})
}

// makes reports whether this node makes a shard.
func (b *builder) makes(shard int) bool { return b.mine == nil || b.mine(shard) }

// trains reports whether a vertex is a training vertex in any split.
func (b *builder) trains(v uint32) bool {
	for _, marks := range b.training {
		if marks[v] == graph.Train {
			return true
		}
	}
	return false
}

// cut decides the shard of every vertex and distributes the edges to the shards' buckets.
func (b *builder) cut(ctx context.Context) (*placed, error) {
	start := time.Now()
	if b.plan.partitioner == random {
		part := partition.Random(b.meta.Vertices, b.plan.shards, b.options.Seed)
		b.manifest.CutSeconds = time.Since(start).Seconds()
		if err := b.number(part); err != nil {
			return nil, err
		}
		return b.place(ctx, b.src.Edges, b.options.Undirected, b.meta.Edges)
	}
	h, err := b.spread(ctx)
	if err != nil {
		return nil, err
	}
	part, err := b.partition(ctx, h)
	if err != nil {
		return nil, err
	}
	b.manifest.CutSeconds = time.Since(start).Seconds()
	if err := b.number(part); err != nil {
		return nil, err
	}
	from := b.spool
	defer from.close()
	if b.spool, err = b.scratch(); err != nil {
		return nil, err
	}
	return b.place(ctx, h.stored, false, b.plan.stored)
}

func (b *builder) number(part []uint16) (err error) {
	b.numbers, err = newNumbering(part, b.meta.Vertices, b.plan.shards)
	return err
}

// partition runs a partitioner that needs the graph.
func (b *builder) partition(ctx context.Context, h *halves) ([]uint16, error) {
	to, err := b.scratch()
	if err != nil {
		return nil, err
	}
	defer to.close()
	release()
	g, err := b.sortHalves(ctx, h, to)
	if err != nil {
		return nil, err
	}
	return b.partitionOf(ctx, g)
}

// partitionOf cuts a graph whose edges are sorted.
func (b *builder) partitionOf(ctx context.Context, g *blocks) ([]uint16, error) {
	release()
	defer release()
	part, over, err := b.cutGraph(ctx, g)
	if err != nil || !over {
		return part, err
	}
	// A hub's shard can't do with few other edges if it gets its share of each type: edges matter more.
	g.loads = g.loads.Untyped()
	other, worse, err := b.cutGraph(ctx, g)
	if err != nil || !worse {
		return other, err
	}
	return part, nil
}

// cutGraph cuts a graph, and reports whether edges are not balanced though types are.
func (b *builder) cutGraph(ctx context.Context, g *blocks) (part []uint16, over bool, err error) {
	o := partition.Options{Parts: b.plan.shards, Seed: b.options.Seed, Tolerance: g.loads.Tolerance(), Report: b.report.share}
	b.report.begin("cutting", uint64(b.meta.Vertices), "vertices")
	if b.plan.partitioner == stream {
		part, err = partition.Streaming(ctx, g, o)
	} else {
		var whole *partition.Graph
		if whole, err = g.whole(ctx); err == nil {
			part, err = partition.Multilevel(ctx, whole, o)
		}
	}
	if err != nil || !b.plan.loads.Typed() {
		return part, false, err
	}
	t := g.loads.Tally(b.plan.shards)
	err = g.Blocks(ctx, func(block partition.Block) error {
		t.Add(part, block)
		return nil
	})
	return part, t.Over(), err
}
