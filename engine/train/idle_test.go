package train

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// firstLearns makes of shards some of which the first alone has vertices to learn from.
func firstLearns(shards []*graph.Shard) []*graph.Shard {
	all := slices.Clone(shards)
	for i := range all[1:] {
		s := *all[i+1]
		s.Marks = nil
		for _, marks := range all[i+1].Marks {
			marks = slices.Clone(marks)
			for row, mark := range marks {
				if mark == graph.Train {
					marks[row] = graph.Test
				}
			}
			s.Marks = append(s.Marks, marks)
		}
		all[i+1] = &s
	}
	return all
}

// Nodes that own nothing to learn from still take part.
func TestNodesWithoutTrainingVertices(t *testing.T) {
	shards := firstLearns(communities(t, 1500))
	all := ways()
	all["p3"] = strategy.Settings{Strategy: strategy.P3}
	all["auto"] = strategy.Settings{Strategy: strategy.Auto}
	all["sync_every"] = strategy.Settings{Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: "migrate", SyncEvery: 2}}
	for name, sharing := range all {
		for _, full := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := small("gcn")
				r.Epochs, r.Batch, r.Sharing = 3, 30, sharing
				if full {
					r.Batch, r.Fanouts = 0, nil
				}
				o := Options{Threads: 1, Strategies: []strategy.Strategy{centric.Strategy{}, leap.Strategy{}, p3.Strategy{}}}
				m := newMesh(3, uneven(len(shards), 3))
				_, told := m.mustRun(t, r, shards, o)
				alone := r
				alone.Sharing = strategy.Settings{}
				_, want := mustRun(t, alone, shards, Options{Threads: 1})
				got, off := told[0][2], 1e-4
				if r.Sharing.Leap.SyncEvery > 1 {
					off = 0.2 // it learns something else
				}
				if learnt(told[0]) != learnt(told[2]) || math.Abs(got.Loss-want[2].Loss) > off {
					t.Errorf("it has learnt %+v, and one node %+v", got, want[2])
				}
			})
		}
	}
}
