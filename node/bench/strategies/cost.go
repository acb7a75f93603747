package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// measureCost measures the processors' time for each input row of three nodes that share a
// job, beside that of one. A short job is subtracted from a long one, so that its beginning
// and end, and what nodes do beside training, do not count.
func measureCost(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	c, stop, err := startNodes(ctx, b, "unshaped", sharedNodes, shape.Link{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	g := graphSpecs[0]
	apart, err := on.GenerateDataset(ctx, g.made(sharedWidth, 0), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	whole, err := on.GenerateDataset(ctx, g.made(sharedWidth, sharedNodes-1), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	for _, l := range shared {
		b.run.Progress("  %s", l)
		alone, aloneRows, err := costOf(ctx, c, l, whole.Name, "single")
		if err != nil {
			return nil, err
		}
		for _, kept := range sharedKept {
			together, rows, err := costOf(ctx, c, l, apart.Name, "leap", kept...)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("%s, width %d, %d nodes", l, sharedWidth, sharedNodes)
			if len(kept) > 0 {
				name += fmt.Sprintf(", %s=%s", kept[0].Key, kept[0].Value)
			}
			figures = append(figures,
				bench.Against(name+": processors' time of an input row", "ns", float64(together.Nanoseconds())/rows, "single", float64(alone.Nanoseconds())/aloneRows,
					bench.Most(1.25)),
				bench.Figure{Name: name + ": input rows computed", Value: rows, Unit: "rows", Baseline: "single", Ceiling: aloneRows, Ratio: rows / aloneRows})
		}
	}
	return figures, nil
}

// costOf returns the processors' time of all nodes in the epochs that a long job has more
// than a short one, and how many input rows these have.
func costOf(ctx context.Context, c *shape.Crew, l load, dataset, way string, set ...api.Setting) (took time.Duration, rows float64, err error) {
	on := remote{c.Nodes[0].API}
	for _, epochs := range []int{2, 2 + sharedMore} {
		before, err := bench.CPUTimes(c.Nodes)
		if err != nil {
			return 0, 0, err
		}
		j, err := runJob(ctx, on, l.ask(dataset, way, epochs, set...), silent)
		if err != nil {
			return 0, 0, err
		}
		after, err := bench.CPUTimes(c.Nodes)
		if err != nil {
			return 0, 0, err
		}
		took, rows = after-before-took, -rows
		for _, e := range j.History {
			rows += float64(e.Rows.Local + e.Rows.Remote)
		}
	}
	return took, rows, nil
}
