package build

import (
	"context"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// finish writes the end of every file and makes all files durable.
func (b *builder) finish(ctx context.Context) error {
	b.report.begin("syncing", uint64(b.plan.shards), "shards")
	err := parallel(ctx, b.plan.workers, b.plan.shards, func(_ context.Context, next func() (int, bool)) error {
		buf := make([]byte, copyBuffer)
		for shard, ok := next(); ok; shard, ok = next() {
			if !b.makes(shard) {
				continue
			}
			out := b.outputs[shard]
			if err := b.tail(out, shard, buf); err != nil {
				return err
			}
			digest, err := out.finish(buf)
			if err != nil {
				return err
			}
			b.manifest.Shards[shard].SHA256 = digest
			b.report.add(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return syncFolder(filepath.Clean(b.options.Dir))
}

// sum fills in the manifest's totals.
func (b *builder) sum() {
	m := &b.manifest
	var vertices, edges, training, total uint64
	for _, s := range m.Shards {
		m.Edges += s.Edges
		m.EdgeCut += s.Cut
		total += s.Training
		vertices, edges, training = max(vertices, s.Vertices), max(edges, s.Edges), max(training, s.Training)
	}
	m.Balance = b.balance(vertices, m.Vertices)
	m.BalanceEdges = b.balance(edges, m.Edges)
	m.BalanceTraining = b.balance(training, total)
	m.Splits = []graph.SplitInfo{}
	for _, marks := range b.src.Splits() {
		var counts [graph.Test + 1]uint64
		for _, mark := range marks {
			counts[mark]++
		}
		m.Splits = append(m.Splits, graph.SplitInfo{Train: counts[graph.Train], Val: counts[graph.Validation], Test: counts[graph.Test]})
	}
}

// balance returns the size of the largest shard over the average.
func (b *builder) balance(largest, total uint64) float64 {
	if total == 0 {
		return 1
	}
	return float64(largest) * float64(b.plan.shards) / float64(total)
}
