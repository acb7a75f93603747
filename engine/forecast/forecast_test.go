package forecast_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

var rates = forecast.Rates{Bandwidth: 1e9, RoundTrip: 1e-4}

// The bytes of a forecast are those that nodes really send each other.
func TestBytesAreThoseOfARun(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, model := range []string{"gcn", "sage", "gat"} {
		for _, nodes := range []int{2, 3, 5} {
			for _, of := range []strategy.Settings{
				strategy.Given("leap"), strategy.Given("leap", "topology=sharded"), strategy.Given("centric"),
				strategy.Given("centric", "topology=sharded"), strategy.Given("leap", "wire.features=bf16"),
				strategy.Given("leap", "leap.mode=stay", "leap.balance=off"), strategy.Given("local", "local.average_every=2"),
				strategy.Given("p3"), strategy.Given("p3", "p3.push=blocks"), strategy.Given("p3", "topology=sharded"),
			} {
				if model == "gat" && of.Strategy != "p3" {
					continue // it sends what a sage does
				}
				r := traintest.Small(model)
				r.Epochs = 2
				r.Sharing = of
				t.Run(fmt.Sprint(model, nodes, of), func(t *testing.T) { compare(t, r, shards, nodes) })
			}
		}
	}
}

// So are those of groups in isolation, with what the second epoch's view brings.
func TestBytesOfIsolatedGroups(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, model := range []string{"gcn", "sage"} {
		for _, nodes := range []int{2, 3} {
			for _, set := range [][]string{
				{"grappa.groups=3"}, {"grappa.groups=5", "grappa.loader=strict"}, {"grappa.groups=4", "grappa.swept=2", "grappa.loader=halo-sampled", "grappa.cap=90"},
				{"grappa.sweep=off"}, {"grappa.groups=5", "grappa.average_every=2"}, {"grappa.groups=4", "grappa.depth=2", "grappa.sweep=off"},
			} {
				r := traintest.Small(model)
				r.Epochs, r.EvalEvery = 2, 1<<20
				r.Sharing = strategy.Given("grappa", append([]string{"grappa.period=1"}, set...)...)
				t.Run(fmt.Sprint(model, nodes, set), func(t *testing.T) { compare(t, r, shards, nodes) })
			}
		}
	}
}

// And those of the whole graph, with the share that a period's history has of each epoch.
func TestBytesOfTheWholeGraph(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, model := range []string{"gcn", "sage", "gcnii"} {
		for _, nodes := range []int{2, 3} {
			for _, of := range []strategy.Settings{
				strategy.Given("graph"), strategy.Given("graph", "pipe.ways=5"), strategy.Given("pipe", "pipe.period=1"),
				strategy.Given("pipe", "pipe.period=1", "pipe.stages=1", "pipe.ways=2", "pipe.chunks=4"),
				strategy.Given("pipe", "pipe.period=1", "pipe.stages=2", "pipe.chunks=3"),
			} {
				for _, every := range []int{1, 1 << 20} {
					r := traintest.FullGraph(model, 4)
					r.Epochs, r.EvalEvery, r.Sharing = 3, every, of
					r.Sharing.Deterministic = of.Values["pipe.ways"] != "" || of.Strategy == "pipe" // as cut by costs
					t.Run(fmt.Sprint(model, nodes, of, every), func(t *testing.T) { compare(t, r, shards, nodes) })
				}
			}
		}
	}
}

func compare(t *testing.T, r recipe.Recipe, shards []*graph.Shard, nodes int) {
	t.Helper()
	r.Sharing = bringing(r.Sharing)
	place := forecast.Even(len(shards), 0)
	owners, _ := place(nodes)
	_, epochs := traintest.NewMesh(nodes, owners).MustRun(t, r, shards, train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All})
	measured := epochs[0][1].Record // the first has what nodes exchange when they meet
	g, err := dataset.Open(shards, r.Split, r.Features)
	if err != nil {
		t.Fatal(err)
	}
	linked(t, g, &r)
	rows, err := forecast.Make(t.Context(), &forecast.Subject{Recipe: &r, Graph: forecast.Of(g), Place: place, Looks: 1 << 20}, strategyOf(r.Sharing.Strategy), []int{nodes}, rates, func(forecast.Row) {})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	requests, bytes := rows[0].Bytes.Record()
	for _, c := range []struct {
		kind      peer.Kind
		got, want uint64
	}{
		{peer.Feature, bytes.Feature, measured.Bytes.Feature}, {peer.Topology, bytes.Topology, measured.Bytes.Topology},
		{peer.Gradient, bytes.Gradient, measured.Bytes.Gradient}, {peer.Activation, bytes.Activation, measured.Bytes.Activation},
		{peer.Feature, requests.Feature, measured.Requests.Feature}, {peer.Topology, requests.Topology, measured.Requests.Topology},
		{peer.Model, bytes.Model, measured.Bytes.Model}, {peer.Control, bytes.Control, measured.Bytes.Control},
		{peer.Shard, bytes.Shard, measured.Bytes.Shard},
	} {
		if c.got != c.want {
			t.Errorf("%s: forecast %d, measured %d", c.kind, c.got, c.want)
		}
	}
}

// bringing has rows brought in each epoch, as forecasts say.
func bringing(s strategy.Settings) strategy.Settings {
	if s.Strategy == "leap" || s.Strategy == "centric" || s.Strategy == "local" {
		s = s.With(s.Strategy + ".cache=off")
	}
	return s
}

func strategyOf(name string) []forecast.Strategy {
	d := strategies.All.Of(name)
	return []forecast.Strategy{{Name: d.Name, Deal: d.Deal, Asking: d.Asking, Check: d.Check, Complete: d.Complete, Hooks: d.Forecast}}
}

// A forecast's numbers go the way they must: more nodes have less each, and a job that is
// too large says so.
func TestForecastsOfLargerMeshes(t *testing.T) {
	shards := traintest.Communities(t, 4000)
	r := traintest.Short("sage")
	r.Batch, r.Fanouts, r.Model.Layers = 256, []int{10, 5}, 2
	g, err := dataset.Open(shards, r.Split, r.Features)
	if err != nil {
		t.Fatal(err)
	}
	var told []forecast.Row
	s := &forecast.Subject{Recipe: &r, Graph: forecast.Of(g)}
	rows, err := forecast.Make(t.Context(), s, append(strategyOf("single"), strategyOf("centric")...), []int{1, 2, 4, 40}, rates, func(r forecast.Row) { told = append(told, r) })
	if err != nil || len(rows) != 4 || len(told) != 4 {
		t.Fatal(rows, err)
	}
	for i, row := range rows {
		if !row.Fits || row.Why != "" || row.Seconds <= 0 || row.Memory == 0 || (row.Bytes.Bytes[peer.Feature] == 0) != (row.Nodes == 1) {
			t.Errorf("%+v", row)
		}
		if i == 2 && row.Memory >= rows[i-1].Memory || i > 1 && (row.Bytes.Bytes[peer.Gradient] <= rows[i-1].Bytes.Bytes[peer.Gradient]) {
			t.Errorf("%+v after %+v", row, rows[i-1])
		}
	}
	s.Memory = budget.Program
	rows, err = forecast.Make(t.Context(), s, strategyOf("centric"), []int{2}, rates, func(forecast.Row) {})
	if err != nil || rows[0].Fits || !strings.Contains(rows[0].Why, "of memory and has") {
		t.Errorf("%+v, %v", rows, err)
	}
	initial := traintest.Short("gcnii")
	initial.Fanouts = nil
	rows, err = forecast.Make(t.Context(), &forecast.Subject{Recipe: &initial, Graph: forecast.Of(g)}, strategyOf("p3"), []int{2}, rates, func(forecast.Row) {})
	if err != nil || rows[0].Fits || !strings.Contains(rows[0].Why, "p3 can't share out the columns") {
		t.Errorf("%+v, %v", rows, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := forecast.Make(ended, &forecast.Subject{Recipe: &r, Graph: forecast.Of(g)}, strategyOf("centric"), []int{2}, rates, func(forecast.Row) {}); err == nil {
		t.Error("a forecast that nobody waits for goes on")
	}
}

// The partial sums of deterministic jobs are counted.
func TestBytesOfDeterministicSums(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, nodes := range []int{2, 3} {
		for _, of := range []strategy.Settings{strategy.Given("leap"), strategy.Given("centric"), strategy.Given("grappa", "grappa.groups=3", "grappa.period=1")} {
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery, r.Sharing = 2, 1<<20, of
			r.Sharing.Deterministic = true
			t.Run(fmt.Sprint(nodes, of), func(t *testing.T) { compare(t, r, shards, nodes) })
		}
	}
}

// So are the gradients of learnt rows, which all nodes send each other in place of rows of features.
func TestBytesOfLearntRows(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	for _, of := range []strategy.Settings{strategy.Given("leap"), strategy.Given("centric")} {
		r := traintest.Small("sage")
		r.Epochs, r.Embeddings, r.Batch, r.EvalEvery, r.Sharing = 2, 7, 60, 1<<20, of
		t.Run(of.Strategy, func(t *testing.T) { compare(t, r, shards, 3) })
	}
}

// A batch that serves all epochs is gathered once.
func TestFullBatchesAreGatheredOnce(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts, r.Sharing = 0, nil, strategy.Given("centric")
	compare(t, r, shards, 3)
}
