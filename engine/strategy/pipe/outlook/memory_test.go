package outlook_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/outlook"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The memory of a worker is about what package pipe forecasts of it, which knows in which
// parts each shard is computed.
func TestMemoryIsAboutThatOfTheWorker(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 60_000, Edges: 900_000, Features: 24, Classes: 8, Communities: 300, Inside: 0.8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 16)
	for _, model := range []string{"gcn", "sage"} {
		kept := map[string]any{}
		for _, nodes := range []int{1, 2, 8} {
			for _, of := range []strategy.Settings{strategy.Given("graph"), strategy.Given("pipe"), strategy.Given("pipe", "pipe.recompute=on"), strategy.Given("pipe", "pipe.ways=2", "pipe.stages=1")} {
				if of.Values["pipe.ways"] != "" && nodes == 1 {
					continue
				}
				r := traintest.FullGraph(model, 4)
				r.Model.Hidden, r.Sharing = 32, of
				g, err := dataset.Open(shards, r.Split, r.Features)
				if err != nil {
					t.Fatal(err)
				}
				m, err := nn.New(r.Model, g.Features.Columns(), g.About.Classes)
				if err != nil {
					t.Fatal(err)
				}
				owners, _ := forecast.Even(len(shards), 0)(nodes)
				l := peer.Layout{Nodes: nodes, Firsts: dataset.Firsts(shards), Owners: owners}
				f := &pipe.Facts{
					Model: m, Census: census.New(l.Firsts, g.Topology, m.Form()), Layout: l, Settings: pipe.Of(&r.Sharing), Number: 4, Network: costs.Usual,
				}
				f.Costs = costs.Nominal(m.Stages(), f.Census)
				all, err := f.Candidates(context.Background(), 0)
				if err != nil {
					t.Fatal(err)
				}
				// Layers are cut by nominal costs here, as there.
				kept["pipe.layers"] = &costs.Timing{Layers: make([]costs.LayerTime, len(m.Stages()))}
				w := &forecast.Whole{
					Recipe: &r, Model: m, Graph: forecast.Of(g), Layout: &l, Holds: func(node, shard int) bool { return owners[shard] == node },
					Rates: forecast.Rates{Bandwidth: 1e9, RoundTrip: 1e-4}, Kept: kept,
				}
				for _, s := range w.Graph.Sizes {
					w.Edges = append(w.Edges, s.Edges)
				}
				o, err := outlook.Of(pipe.Graph).Forecast.Whole(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				ratio := float64(o.Memory) / float64(all[0].Memory)
				what := fmt.Sprintf("%s on %d nodes by %v: %.1f MiB, and package pipe has %.1f MiB: %.2fx", model, nodes, of, float64(o.Memory)/(1<<20), float64(all[0].Memory)/(1<<20), ratio)
				t.Log(what)
				if ratio < 0.8 || ratio > 1.25 || o.Seconds <= 0 {
					t.Error(what)
				}
			}
		}
	}
}
