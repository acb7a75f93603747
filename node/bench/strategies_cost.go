package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// mkdir makes a folder for what is measured.
func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	return nil
}

// overhead takes the processors' time of three nodes that share a job, beside that of
// one, for each input row. What nodes cost beside training, and how a job begins and
// ends, is in both: it is the difference between a long job and a short one that counts.
func (b *bench) overhead(ctx context.Context) (figures []Figure, err error) {
	c, stop, err := b.crew(ctx, "unshaped", sharedNodes, shape.Link{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	g := meadows[0]
	apart, err := on.GenerateDataset(ctx, g.made(sharedWidth, 0), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	whole, err := on.GenerateDataset(ctx, g.made(sharedWidth, sharedNodes-1), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	for _, l := range shared {
		b.note("  %s", l)
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
				against(name+": processors' time of an input row", "ns", float64(together.Nanoseconds())/rows, "single", float64(alone.Nanoseconds())/aloneRows,
					"at most 1.25x", func(r float64) bool { return r <= 1.25 }),
				Figure{Name: name + ": input rows computed", Value: rows, Unit: "rows", Yardstick: "single", Ceiling: aloneRows, Ratio: rows / aloneRows})
		}
	}
	return figures, nil
}

// costOf is what the epochs that a long job has and a short one has not take of all
// nodes' processors, and how many input rows they have.
func costOf(ctx context.Context, c *shape.Crew, l load, dataset, way string, set ...api.Setting) (took time.Duration, rows float64, err error) {
	on := remote{c.Nodes[0].API}
	for _, epochs := range []int{2, 2 + sharedMore} {
		before, err := usedBy(c)
		if err != nil {
			return 0, 0, err
		}
		j, err := trained(ctx, on, l.ask(dataset, way, epochs, set...), silent)
		if err != nil {
			return 0, 0, err
		}
		after, err := usedBy(c)
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

// usedBy is what all nodes have used of all cores.
func usedBy(c *shape.Crew) (sum time.Duration, err error) {
	for _, p := range c.Nodes {
		used, err := cpuTime(p.PID())
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}
