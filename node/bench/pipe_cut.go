package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/node/api"
)

// A cut is a dataset's topology, and where its shards begin.
type cut struct {
	dir    string
	shards []*graph.Shard
	firsts []uint32 // of each shard, then how many vertices there are
	edges  *sample.Topology
}

// cut makes the topology of a dataset that nodes have made up from its seed once more,
// without features, on which no cut depends.
func (b *bench) cut(ctx context.Context, r api.GenerateRequest, d api.Dataset) (c *cut, err error) {
	c = &cut{dir: filepath.Join(b.dir, "cut "+r.Name), firsts: []uint32{0}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	src, err := generate.New(generate.Options{
		Kind: r.Kind, Vertices: uint32(r.Vertices), Edges: r.Edges, Classes: r.Classes, Communities: r.Communities,
		Inside: *r.Inside, Homophily: *r.Homophily, Seed: r.Seed,
	})
	if err != nil {
		return c, err
	}
	made, err := build.Run(ctx, src, build.Options{
		Dir: c.dir, Scratch: c.dir + ".scratch", Shards: r.Shards, Partitioner: r.Partitioner, DType: graph.F32, Seed: r.Seed,
	})
	if err := errors.Join(err, src.Close()); err != nil {
		return c, err
	}
	for i, s := range made.Shards {
		if i >= len(d.Shards) || d.Shards[i].Edges != s.Edges || d.Shards[i].Halo != s.Halo {
			return c, fmt.Errorf("%s is cut otherwise here than by the nodes, in shard %d", r.Name, i)
		}
		shard, err := graph.OpenShard(filepath.Join(c.dir, graph.ShardFile(i)))
		if err != nil {
			return c, err
		}
		c.shards, c.firsts = append(c.shards, shard), append(c.firsts, c.firsts[i]+uint32(s.Vertices))
	}
	c.edges, err = sample.NewTopology(c.shards)
	return c, err
}

func (c *cut) close() error { return errors.Join(closeAll(c.shards), os.RemoveAll(c.dir)) }

// counts are the mirrors of a model's vertices where nodes share it so, and the numbers of
// partial sums. Which shards make a way, nodes find as they do when they have met, but for
// what they measure then.
func (c *cut) counts(ctx context.Context, m *nn.Model, a arrangement) (mirrors, partials int, err error) {
	set := strategy.Settings{Strategy: a.strategy}
	if a.strategy == strategy.Pipe {
		set.Pipe = strategy.PipeSettings{Stages: a.stages, Ways: a.ways}
	}
	f := &pipe.Facts{
		Model: m, Census: pipe.NewCensus(c.firsts, c.edges, m.Form()), Network: pipe.Usual, Settings: &set, Number: 4,
		Layout: strategy.Layout{Nodes: a.nodes, Firsts: c.firsts, Owners: make([]int, len(c.shards))},
	}
	f.Costs = pipe.Nominal(m.Stages(), f.Census, m.Size())
	plan, err := f.Choose(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	t := pipe.Task{Model: m, Topology: c.edges}
	if err := t.Place(plan, f); err != nil {
		return 0, 0, err
	}
	return pipe.NewMirrors(t.Shape, c.edges).Count(), t.Partials(a.nodes), nil
}
