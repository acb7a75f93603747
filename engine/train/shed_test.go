package train_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// answers notes the memory of the shards that a node brings.
type answers struct {
	peer.Peers
	mu   *sync.Mutex
	came *[]weak.Pointer[byte]
}

func (a answers) Ask(ctx context.Context, node int, q peer.Query, to []byte) ([]byte, error) {
	answer, err := a.Peers.Ask(ctx, node, q, to)
	if q.Service == peer.Skeletons && len(answer) > 1<<12 {
		a.mu.Lock()
		defer a.mu.Unlock()
		*a.came = append(*a.came, weak.Make(&answer[0]))
	}
	return answer, err
}

// Edges that a run gives up so that it fits are in memory no more when it begins.
func TestEdgesThatAreGivenUpAreGone(t *testing.T) {
	shards := dense(t, 6000)
	run := func(memory uint64) (came, left int, said string, err error) {
		var mu sync.Mutex
		var all []weak.Pointer[byte]
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		errs := traintest.Ends(t, m, shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			*r = traintest.Small("gcn")
			r.Batch, r.Epochs, r.Fanouts = 1500, 1, []int{10, 0} // all neighbours: edges are brought at once
			r.Sharing = strategy.Given("centric")
			o.Threads, o.Strategies = 2, strategies.All
			if node > 0 {
				return
			}
			o.Memory, o.Peers = memory, answers{o.Peers, &mu, &all}
			o.Announce = func(f train.Forecast) {
				said = strings.Join(f.FellBack, "; ")
				runtime.GC()
				for _, p := range all {
					if came++; p.Value() != nil {
						left++
					}
				}
			}
		})
		return came, left, said, errs[0]
	}
	if came, left, _, err := run(0); err != nil || came == 0 || left != came {
		t.Fatalf("where there is room, %d of %d shards are in memory: %v", left, came, err)
	}
	_, _, _, err := run(budget.Program + 1<<20)
	short, is := errors.AsType[*budget.Short](err)
	if !is {
		t.Fatal(err)
	}
	came, left, said, err := run(short.Needs - 64<<10) // in vain edges were not given up
	if err != nil || came == 0 || !strings.Contains(said, "it asks others for edges") || left > 0 {
		t.Errorf("%q, and %d of %d shards are in memory still: %v", said, left, came, err)
	}
}
