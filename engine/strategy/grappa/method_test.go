package grappa_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// isolation is Options with grappa among the strategies.
func isolation(o train.Options) train.Options {
	o.Strategies = append(slices.Clone(traintest.Strategies), grappa.Strategy)
	return o
}

// apart are the settings of groups that train in isolation, by names without "grappa.".
func apart(values ...string) strategy.Settings {
	all := slices.Clone(values)
	for i := range all {
		all[i] = "grappa." + all[i]
	}
	return strategy.Given(grappa.Name, all...)
}

// One group with all neighbours has the gradient of one machine, and so have several
// whose halo is as deep as the model, whoever runs them.
func TestGroupsThatSeeAllMakeTheGradientsOfOneNode(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gat", "gin"} {
		r := traintest.ExactRecipe(model)
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, g := range [][]string{{"groups=1"}, {"groups=1", "loader=strict"}, {"groups=3", "depth=2"}, {"groups=4", "depth=2", "sweep=off"}} {
			r.Sharing = apart(g...)
			for _, nodes := range []int{1, 2, 3} {
				traintest.Within(t, fmt.Sprintf("%s on %d nodes, %v", model, nodes, g), r, shards, isolation(traintest.Wide(train.Options{Threads: 1})), nodes, want, 1e-10)
			}
		}
	}
}

// With a halo as deep as the model, weights are the bits of the other strategies.
func TestDeepHalosMakeTheBitsOfOneNode(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, full := range []bool{false, true} {
		r := traintest.Small("sage")
		r.Epochs, r.Sharing.Deterministic = 2, true
		if full {
			r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
		}
		_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		want := traintest.Hashes(one)
		r.Sharing = apart("depth=2", "period=1")
		r.Sharing.Deterministic = true
		for _, nodes := range []int{1, 3} {
			_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, isolation(train.Options{Threads: 2}))
			for node, got := range reports {
				if traintest.Hashes(got) != want {
					t.Errorf("full %v, node %d of %d:\n%s\nand one node\n%s", full, node, nodes, traintest.Hashes(got), want)
				}
			}
		}
	}
}

// isolations are settings in which groups see less than one node would.
func isolations() map[string][]string {
	return map[string][]string{
		"halo":         {"period=1"},
		"strict":       {"period=2", "loader=strict", "groups=3", "swept=1", "correction=node"},
		"all hops":     {"period=1", "loader=strict", "correction=batch", "hops=all"},
		"self":         {"period=1", "loader=strict", "correction=self-normalised", "swept=1"},
		"message":      {"period=1", "loader=strict", "correction=message"},
		"sampled":      {"period=1", "loader=halo-sampled", "cap=60"},
		"plateau":      {"period=1", "switch=plateau", "loader=strict", "swept=1"},
		"serial, off":  {"period=1", "loader=strict", "prefetch=off", "groups=5"},
		"never swept":  {"period=1", "loader=strict", "sweep=off"},
		"groups alike": {"period=1", "loader=strict", "loss=groups"},
	}
}

// What is learnt depends on the plan, and not on which node runs which group.
func TestGroupsLearnTheSameBitsOnAnyNumberOfNodes(t *testing.T) {
	shards := traintest.Communities(t, 600)
	seen := map[string]string{}
	for name, g := range isolations() {
		meshes := []int{3}
		if name == "halo" || name == "strict" {
			meshes = []int{2, 4}
		}
		for _, full := range []bool{false, true} {
			if full && !slices.Contains([]string{"halo", "strict", "sampled"}, name) {
				continue
			}
			r := traintest.Small("sage")
			r.Epochs, r.Batch = 3, 150
			if full {
				r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
			}
			r.Sharing = apart(g...)
			r.Sharing.Deterministic = true
			_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
			want := traintest.Learnt(one)
			key := fmt.Sprint(full, traintest.Hashes(one))
			if other, ok := seen[key]; ok {
				t.Errorf("%s and %s learn the same: one of them is without effect", name, other)
			}
			seen[key] = name
			for _, nodes := range meshes {
				_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
				for node, got := range reports {
					if traintest.Learnt(got) != want {
						t.Errorf("%s, full %v, node %d of %d:\n%s\nand one node\n%s", name, full, node, nodes, traintest.Learnt(got), want)
					}
					for i, e := range got {
						if e.Super != one[i].Super || e.Seen != one[i].Seen || e.Seen == 0 || i > 0 && e.Seen < got[i-1].Seen {
							t.Errorf("%s: epoch %d is told to be of super-epoch %d and to have seen %g, on one node %d and %g", name, e.Epoch, e.Super, e.Seen, one[i].Super, one[i].Seen)
						}
					}
				}
			}
		}
	}
}
