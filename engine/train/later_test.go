package train_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// bringing counts what a node brings of other nodes' shards.
type bringing struct {
	peer.Peers
	bytes *atomic.Int64
}

func (c bringing) Ask(ctx context.Context, node int, q peer.Query, to []byte) ([]byte, error) {
	answer, err := c.Peers.Ask(ctx, node, q, to)
	if q.Service == peer.Skeletons {
		c.bytes.Add(int64(len(answer)))
	}
	return answer, err
}

// Where edges are many beside a node's memory, a job that is refused has not brought them, and
// one that has room for them brings them and learns the same.
func TestEdgesComeOnceTheJobFits(t *testing.T) {
	shards := dense(t, 64000)
	for _, name := range []string{"leap", "p3"} {
		run := func(memory uint64) (bytes int64, hash string, said int, err error) {
			var brought atomic.Int64
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			errs := traintest.Ends(t, m, shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				*r = traintest.Small("sage")
				r.Batch, r.Epochs, r.Fanouts = 8000, 1, []int{10, 10}
				r.Sharing = strategy.Given(name)
				r.Sharing.Deterministic = true
				o.Threads, o.Strategies = 2, strategies.All
				if node == 0 {
					o.Memory, o.Peers = memory, bringing{o.Peers, &brought}
					o.Announce = func(f train.Forecast) { said = len(f.FellBack) }
					o.Report = func(e trained.Epoch) { hash = e.Hash }
				}
			})
			return brought.Load(), hash, said, errs[0]
		}
		edges, want, _, err := run(0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bytes, _, _, err := run(budget.Program + 4<<20)
		if _, short := errors.AsType[*budget.Short](err); !short || bytes > edges/10 {
			t.Errorf("%s: a job that is refused brings %d bytes of %d: %v", name, bytes, edges, err)
		}
		bytes, hash, said, err := run(budget.Program + 80<<20)
		if err != nil || hash != want || said > 0 || bytes < edges || bytes > edges*11/10 {
			t.Errorf("%s: a job that fits brings %d bytes of %d, gives %d things up and learns %s, not %s: %v", name, bytes, edges, said, hash, want, err)
		}
	}
}
