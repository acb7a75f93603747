package train

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// swept is a recipe with a sweep: each model is said as "lr=0.1 hidden=8".
func swept(r Recipe, models ...string) Recipe {
	for _, said := range models {
		v := Variant{Params: map[string]string{}, Recipe: r}
		v.Recipe.Sweep = nil
		for pair := range strings.FieldsSeq(said) {
			key, value, _ := strings.Cut(pair, "=")
			v.Params[key] = value
			number, err := strconv.ParseFloat(value, 64)
			if err != nil && key != "optimizer" && key != "model" {
				panic(err)
			}
			switch of := &v.Recipe; key {
			case "lr":
				of.Rate = number
			case "hidden":
				of.Model.Hidden = int(number)
			case "patience":
				of.Patience = int(number)
			case "optimizer":
				of.Optimizer.Kind = value
			case "dropout":
				of.Model.Dropout = number
			case "model":
				of.Model.Model = value
			default:
				panic("no parameter " + key)
			}
		}
		r.Sweep = append(r.Sweep, v)
	}
	return r
}

// everywhere is a recipe with all its models changed alike.
func everywhere(r Recipe, change func(*Recipe)) Recipe {
	r.Sweep = slices.Clone(r.Sweep)
	change(&r)
	for i := range r.Sweep {
		change(&r.Sweep[i].Recipe)
	}
	return r
}

// rates is a sweep of four.
func rates(r Recipe) Recipe { return swept(r, "lr=0.01", "lr=0.003", "lr=0.03", "lr=0.1") }

// ofModel are the epochs of one model.
func ofModel(all []Epoch, model int) (of []Epoch) {
	for _, e := range all {
		if e.Model == model {
			of = append(of, e)
		}
	}
	return of
}

// inputs is what was gathered and sampled for epochs, by all nodes, with its bytes.
func inputs(all []Epoch) string {
	var rows, remote, edges uint64
	var sent strategy.Counts
	for _, e := range all {
		rows, remote, edges = rows+e.Rows, remote+e.Remote, edges+e.Edges
		sent.Add(e.Sent)
		if e.Eval != nil {
			sent.Add(e.Eval.Sent)
		}
	}
	text := fmt.Sprintf("%d rows, %d of them remote, %d edges", rows, remote, edges)
	for _, k := range []strategy.Kind{strategy.Feature, strategy.Topology, strategy.Shard} {
		text += fmt.Sprintf("; %d bytes in %d questions", sent.Bytes[k], sent.Requests[k])
	}
	return text
}

// soloists runs each model of a sweep by itself.
func soloists(t *testing.T, r Recipe, run func(Recipe) []Epoch) (all [][]Epoch) {
	t.Helper()
	for _, of := range r.Models() {
		all = append(all, run(of))
	}
	return all
}

// asAlone compares the models of a sweep with the same ones trained alone: each with all
// of its epochs, and what went into one.
func asAlone(t *testing.T, name string, told []Epoch, alone [][]Epoch) {
	t.Helper()
	for k, want := range alone {
		if got := ofModel(told, k); learnt(got) != learnt(want) {
			t.Errorf("%s: model %d learns\n%s\nand alone\n%s", name, k, learnt(got), learnt(want))
		}
	}
	longest := slices.MaxFunc(alone, func(a, b []Epoch) int { return len(a) - len(b) })
	if got, want := inputs(told), inputs(longest); got != want {
		t.Errorf("%s: a sweep took %s\nand one model %s", name, got, want)
	}
}

// sweepSharings are ways in which a sweep can be shared, with local updates among them.
func sweepSharings() map[string]strategy.Settings {
	all := ways()
	all["cached"] = strategy.Settings{Strategy: strategy.Centric, Centric: strategy.CentricSettings{Cache: 100}}
	all["local"] = updating("2", 3)
	return all
}

// The models of a sweep are the same bits as each by itself, for the inputs of one.
func TestModelsOfASweepAreThoseOfRunsOfTheirOwn(t *testing.T) {
	shards := communities(t, 1500)
	for name, sweep := range map[string]func(Recipe) Recipe{
		"rates":  rates,
		"hidden": func(r Recipe) Recipe { return swept(r, "hidden=4", "hidden=20 lr=0.03", "hidden=7 optimizer=sgd") },
		"models": func(r Recipe) Recipe { return swept(r, "hidden=9", "hidden=5 dropout=0.9", "hidden=12 dropout=0") },
	} {
		r := small("sage")
		r.Epochs, r.EvalEvery = 3, 2
		r = sweep(r)
		for _, full := range []bool{false, true} {
			if full {
				r = everywhere(r, func(of *Recipe) { of.Batch, of.Fanouts = 0, nil })
			}
			run := func(r Recipe) []Epoch { _, all := mustRun(t, r, shards, Options{Threads: 2}); return all }
			asAlone(t, name+" on one node", run(r), soloists(t, r, run))
		}
	}
}

func TestModelsOfASweepOnThreeNodesAreThoseOfRunsOfTheirOwn(t *testing.T) {
	shards := communities(t, 1500)
	for way, sharing := range sweepSharings() {
		for _, deterministic := range []bool{false, true} {
			if deterministic && sharing.Leap.SyncEvery > 0 {
				continue // there is no such thing
			}
			r := small("sage")
			r.Epochs, r.EvalEvery = 3, 2
			r.Sharing = sharing
			r.Sharing.Deterministic = deterministic
			if way == "tuned" { // by how long epochs take
				r.Sharing.Leap.Merge = "off"
			}
			r = swept(r, "lr=0.01", "lr=0.003 hidden=5", "lr=0.03", "lr=0.1 optimizer=sgd")
			run := func(r Recipe) [][]Epoch {
				_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 1})
				return told
			}
			alone := soloists(t, r, func(r Recipe) []Epoch { return run(r)[0] })
			told := run(r)
			for node := range told {
				asAlone(t, fmt.Sprintf("%s, deterministic %v, node %d", way, deterministic, node), told[node], alone)
			}
			if sharing.Leap.Mode == "migrate" {
				hops := func(all []Epoch) (n uint64) {
					for _, e := range all {
						n += e.Sent.Requests[strategy.Model]
					}
					return n
				}
				if got, want := hops(told[0]), uint64(len(r.Sweep))*hops(alone[0]); got != want || got == 0 {
					t.Errorf("%s: %d models took %d hops, and one of them a fourth of %d", way, len(r.Sweep), got, want)
				}
			}
		}
	}
}
