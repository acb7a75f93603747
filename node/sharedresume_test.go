package node_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// steps are those that the engine tells of, on all nodes.
type steps struct {
	mu sync.Mutex
	at []time.Time // of those after a run's first: the nodes work together
}

func (s *steps) train(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o train.Options) (train.Result, error) {
	first, tell := train.Progress{}, o.Progress
	o.Progress = func(p train.Progress) {
		tell(p)
		s.mu.Lock()
		defer s.mu.Unlock()
		if first == (train.Progress{}) {
			first = p
		} else {
			s.at = append(s.at, time.Now())
		}
	}
	return train.Run(ctx, r, shards, o)
}

// pause is the longest between two steps since begin.
func (s *steps) pause(begin time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := begin
	for _, at := range s.at {
		if at.After(begin) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}

// The engine itself trains on after the loss of a node within seconds, though that node
// is lost while large answers are on their way to it and from it.
func TestSharedJobResumesSoon(t *testing.T) {
	resumesSoon(t, "leader")
}

// resumesSoon kills each of these nodes of a job.
func resumesSoon(t *testing.T, victims ...string) {
	t.Helper()
	for _, who := range victims {
		t.Run(who, func(t *testing.T) {
			nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
				s := new(steps)
				for range 3 {
					i := c.Add()
					i.Options.Train = s.train
					if len(c.Nodes) == 1 {
						i.Options.Bootstrap = true
					} else {
						i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
					}
					i.Start()
					i.WaitReady()
				}
				c.WaitVoters(3)
				replicas, epochs, hidden, batch := 1, 10_000, 8, 4096
				generated(t, c.Nodes[0], api.GenerateRequest{
					Name: "g", Kind: "sbm", Vertices: 6000, Edges: 12000, Features: 256, Classes: 2,
					DatasetOptions: api.DatasetOptions{Shards: 8, Partitioner: "random", Replicas: &replicas},
				})
				c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), replicas, c.Nodes...) })
				for _, n := range c.Nodes {
					c.Network.Slow(n.IP(), 10*time.Millisecond)
				}
				id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
					Dataset: "g", Strategy: "centric", Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{3, 3}, Set: []api.Setting{{Key: "centric.cache", Value: "off"}}, // so that steps wait for rows
				})
				if err != nil {
					t.Fatal(err)
				}
				under(c, c.Nodes[0], id, 3)
				j := jobOn(c.Nodes[0], id)
				if e := j.History[2]; e.Bytes.Feature < 1<<20 {
					t.Fatalf("%d bytes of features in an epoch", e.Bytes.Feature)
				}
				dead := map[string]*nodetest.Instance{"the first": named(c, j.Nodes[0]), "the last": named(c, j.Nodes[2]), "leader": c.Leader()}[who]
				other := c.Others(dead)[0]
				begin := time.Now()
				dead.Kill()
				c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
				under(c, other, id, len(jobOn(other, id).History)+3)
				took := s.pause(begin)
				t.Logf("resumed after %s", took)
				if took > 8*time.Second {
					t.Errorf("resumed %s after the kill", took)
				}
				if err := other.API().StopJob(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
