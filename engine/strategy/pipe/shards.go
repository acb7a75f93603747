package pipe

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// Edges bring those of shards that a node lacks, one shard at a time.
type Edges interface {
	// Shard returns a topology that has the edges of a shard. It may be the same for many
	// shards; it is valid until the next call, and so are the shard's labels.
	Shard(ctx context.Context, shard int) (*sample.Topology, error)
	// Inverses implements sample.Inverses.
	Inverses(ctx context.Context, vertices []uint32, to []float32) error
}

// shards are where a worker reads edges while it is made.
type shards struct {
	task    *Task
	here    *sample.Topology // has the edges of the shard that was last brought
	sampler *sample.Sampler
	batch   sample.Batch // of one block at a time
}

// newShards returns what reads them from the topology of a task.
func newShards(t *Task) *shards {
	o := sample.Options{Fanouts: []int{0}, Form: t.Model.Form()}
	if t.Edges != nil {
		o.Inverses = t.Edges.Inverses
	}
	return &shards{task: t, here: t.Topology, sampler: sample.New(t.Topology, o)}
}

// bring has the edges of a shard here.
func (s *shards) bring(ctx context.Context, shard int) error {
	if s.task.Edges == nil {
		return nil
	}
	topology, err := s.task.Edges.Shard(ctx, shard)
	if err != nil {
		return err
	}
	if topology != s.here {
		s.here = topology
		s.sampler.Within(topology)
	}
	return nil
}
