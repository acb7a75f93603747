package train_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// everywhere is a recipe with all its models changed alike.
func everywhere(r recipe.Recipe, change func(*recipe.Recipe)) recipe.Recipe {
	r.Sweep = slices.Clone(r.Sweep)
	change(&r)
	for i := range r.Sweep {
		change(&r.Sweep[i].Recipe)
	}
	return r
}

// rates is a sweep of four.
func rates(r recipe.Recipe) recipe.Recipe {
	return traintest.Swept(r, "lr=0.01", "lr=0.003", "lr=0.03", "lr=0.1")
}

// ofModel are the epochs of one model.
func ofModel(all []trained.Epoch, model int) (of []trained.Epoch) {
	for _, e := range all {
		if e.Model == model {
			of = append(of, e)
		}
	}
	return of
}

// inputs is what was gathered and sampled for epochs, by all nodes, with its bytes.
func inputs(all []trained.Epoch) string {
	var rows, remote, edges uint64
	var sent peer.Counts
	for _, e := range all {
		rows, remote, edges = rows+e.Rows.Total(), remote+e.Rows.Remote, edges+e.Edges
		sent.Add(e.Sent)
		if e.Eval != nil {
			sent.Add(e.Scores.Sent)
		}
	}
	text := fmt.Sprintf("%d rows, %d of them remote, %d edges", rows, remote, edges)
	for _, k := range []peer.Kind{peer.Feature, peer.Topology, peer.Shard} {
		text += fmt.Sprintf("; %d bytes in %d questions", sent.Bytes[k], sent.Requests[k])
	}
	return text
}

// soloists runs each model of a sweep by itself.
func soloists(t *testing.T, r recipe.Recipe, run func(recipe.Recipe) []trained.Epoch) (all [][]trained.Epoch) {
	t.Helper()
	for _, of := range r.Models() {
		all = append(all, run(of))
	}
	return all
}

// asAlone compares the models of a sweep with the same ones trained alone: each with all
// of its epochs, and what went into one.
func asAlone(t *testing.T, name string, reports []trained.Epoch, alone [][]trained.Epoch) {
	t.Helper()
	for k, want := range alone {
		if got := ofModel(reports, k); traintest.Learnt(got) != traintest.Learnt(want) {
			t.Errorf("%s: model %d learns\n%s\nand alone\n%s", name, k, traintest.Learnt(got), traintest.Learnt(want))
		}
	}
	longest := slices.MaxFunc(alone, func(a, b []trained.Epoch) int { return len(a) - len(b) })
	if got, want := inputs(reports), inputs(longest); got != want {
		t.Errorf("%s: a sweep took %s\nand one model %s", name, got, want)
	}
}

// sweepSharings are ways in which a sweep can be shared, with local updates among them.
func sweepSharings() map[string]strategy.Settings {
	all := traintest.Ways()
	for way, s := range all { // when rows come that are kept depends on who is faster
		all[way] = s.With(s.Strategy + ".cache=off")
	}
	all["cached"] = strategy.Given("centric", "centric.cache=100")
	all["local"] = traintest.Updating("2", 3).With("leap.cache=off")
	return all
}

// The models of a sweep are the same bits as each by itself, for the inputs of one.
func TestModelsOfASweepAreThoseOfRunsOfTheirOwn(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for name, sweep := range map[string]func(recipe.Recipe) recipe.Recipe{
		"rates": rates,
		"hidden": func(r recipe.Recipe) recipe.Recipe {
			return traintest.Swept(r, "hidden=4", "hidden=20 lr=0.03", "hidden=7 optimizer=sgd")
		},
		"models": func(r recipe.Recipe) recipe.Recipe {
			return traintest.Swept(r, "hidden=9", "hidden=5 dropout=0.9", "hidden=12 dropout=0")
		},
	} {
		r := traintest.Small("sage")
		r.Epochs, r.EvalEvery = 3, 2
		r = sweep(r)
		for _, full := range []bool{false, true} {
			if full {
				r = everywhere(r, func(of *recipe.Recipe) { of.Batch, of.Fanouts = 0, nil })
			}
			run := func(r recipe.Recipe) []trained.Epoch {
				_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
				return all
			}
			asAlone(t, name+" on one node", run(r), soloists(t, r, run))
		}
	}
}
