package train_test

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
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
	shards := firstLearns(traintest.Communities(t, 1500))
	all := traintest.Ways()
	all["p3"] = strategy.Settings{Strategy: "p3"}
	all["auto"] = strategy.Settings{Strategy: strategy.Auto}
	all["sync_every"] = strategy.Given("leap", "leap.mode=migrate", "leap.sync_every=2")
	for name, sharing := range all {
		for _, full := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := traintest.Small("gcn")
				r.Epochs, r.Batch, r.Sharing = 3, 30, sharing
				if full {
					r.Batch, r.Fanouts = 0, nil
				}
				o := train.Options{Threads: 1, Strategies: train.Strategies{auto.Strategy, batched.Single, centric.Strategy, leap.Strategy, p3.Strategy}}
				m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
				_, reports := m.MustRun(t, r, shards, o)
				alone := r
				alone.Sharing = strategy.Settings{}
				_, want := traintest.MustRun(t, alone, shards, train.Options{Threads: 1})
				got, off := reports[0][2], 1e-4
				if r.Sharing.Values["leap.sync_every"] != "" {
					off = 0.2 // it learns something else
				}
				if traintest.Learnt(reports[0]) != traintest.Learnt(reports[2]) || math.Abs(got.Loss-want[2].Loss) > off {
					t.Errorf("it has learnt %+v, and one node %+v", got, want[2])
				}
			})
		}
	}
}
