package train_test

import (
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The last shard may have no vertices, whoever owns it.
func TestAShardWithoutVertices(t *testing.T) {
	var shards []*graph.Shard
	some := enginetest.Communities(t, 1500)
	for i := range len(some) + 1 {
		s := *some[min(i, len(some)-1)]
		if i == len(some) {
			s.First, s.Vertices, s.Indptr, s.Indices, s.Labels, s.Dense = s.Total, 0, []int64{0}, nil, []int32{}, nil
			s.Marks = make([][]graph.Mark, len(s.Marks))
		}
		s.Number, s.Shards = i, len(some)+1
		shards = append(shards, &s)
	}
	for name, fanouts := range map[string][]int{"leap": {5, 3}, "p3": {5, 3}, "grappa": {5, 3}, "graph": {0, 0}} {
		for owner := range 2 {
			owners := traintest.Uneven(len(shards), 2)
			owners[len(owners)-1] = owner
			errs := traintest.Ends(t, traintest.NewMesh(2, owners), shards, func(_ int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				*r = traintest.Short("gcn")
				r.Fanouts, r.Sharing = fanouts, strategy.Given(name)
				if name == "graph" {
					r.Batch = 0
				}
				o.Strategies = strategies.All
			})
			if err := errors.Join(errs...); err != nil {
				t.Errorf("%s, owned by node %d: %v", name, owner, err)
			}
		}
	}
}

// A node that has all shards has no rows of others to cache.
func TestACacheOfNothing(t *testing.T) {
	shards := enginetest.Communities(t, 1500)
	m := traintest.NewMesh(2, make([]int, len(shards)))
	errs := traintest.Ends(t, m, shards, func(_ int, r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) {
		r.Sharing = strategy.Given("leap", "leap.cache=100")
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
