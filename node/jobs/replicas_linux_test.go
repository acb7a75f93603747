package jobs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/train"
)

// filesOf counts the files of a folder that this process has mapped, or open.
func filesOf(t *testing.T, dir string) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	n = strings.Count(string(maps), dir+"/")
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, dir+"/") {
			n++
		}
	}
	return n
}

// The edges that a node has brought of other nodes' shards lie in files, which are kept from
// one generation to the next and gone when the job has ended, or the node.
func TestFilesOfEdgesGoWithTheLastRun(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		inCrowd(t, func(t *testing.T, c *crowd) {
			dir := filepath.Join(c.dir, "jobs-b")
			var runs, most atomic.Int64
			c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
				if o.Work.Self == 1 {
					kept := filesOf(t, dir)
					bring(ctx, t, c, &o)
					if now := filesOf(t, dir); runs.Add(1) > 1 && (kept != now || now == 0) {
						t.Errorf("a new generation begins with %d files and ends with %d", kept, now)
					} else {
						most.Store(int64(now))
					}
				}
				return c.Train(ctx, r, s, o)
			})
			id := c.share(3)
			time.Sleep(1500 * time.Millisecond)
			if most.Load() == 0 {
				t.Fatal("no edges lie in files")
			}
			if stopped {
				c.stops["b"]()
				delete(c.stops, "b")
			} else {
				c.net(c.job(id).Generation, 3).cut(0, 1)
				c.ended(id)
				if runs.Load() < 2 {
					t.Error("there was one generation")
				}
			}
			synctest.Wait()
			if n := filesOf(t, dir); n > 0 {
				t.Errorf("%d files are left", n)
			}
		})
	}
}

// bring brings all shards of the crowd's graph as those of another node.
func bring(ctx context.Context, t *testing.T, c *crowd, o *train.Options) {
	var shards []*graph.Shard
	for i := range 4 {
		s, err := graph.OpenShard(filepath.Join(c.dir, datasetID, graph.ShardFile(i)))
		if err != nil {
			t.Error(err)
			return
		}
		shards = append(shards, s)
	}
	defer CloseShards(shards)
	net := loopback.New(2)
	replica.Serve(net.Node(1), shards)
	net.Node(1).Open()
	r, err := replica.Bring(ctx, net.Node(0), peer.Work{Nodes: []string{"x", "y"}, Owners: []int{1, 1, 1, 1}}, make([]*graph.Shard, 4), replica.Options{
		Dataset: o.Dataset, Topology: "replicated", Cache: o.Replicas,
	})
	if err != nil || !r.Replicated {
		t.Error(err)
	}
}
