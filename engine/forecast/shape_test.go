package forecast_test

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A made-up graph has the degrees and communities that it says, and each look at it shows
// the same.
func TestShapesAreMadeUpAsTheySay(t *testing.T) {
	s, err := forecast.ShapeOf("papers100m")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Graph(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Training) != 1_207_179 || g.About.Vertices != 111_059_956 || g.Columns != 128 {
		t.Errorf("%d training vertices, %+v", len(g.Training), g.About)
	}
	vertices := g.Training[:100_000]
	var drawn, again sample.Drawn
	for _, to := range []*sample.Drawn{&drawn, &again} {
		if err := g.Far.Draw(t.Context(), 1, 0, 0, 0, vertices[:2000], to); err != nil {
			t.Fatal(err)
		}
	}
	inside := 0
	for i, v := range vertices[:2000] {
		for at := drawn.Indptr[i]; at < drawn.Indptr[i+1]; at++ {
			if drawn.Sources[at] != again.Sources[at] {
				t.Fatalf("the edges of vertex %d change", v)
			}
			if uint32(drawn.Sources[at])>>14 == v>>14 {
				inside++
			}
		}
	}
	if share := float64(inside) / float64(len(drawn.Sources)); math.Abs(share-forecast.Inside) > 0.02 {
		t.Errorf("%.3f of the edges stay in their community", share)
	}
	sum := 0.0
	if err := g.Far.Draw(t.Context(), 1, 0, 0, 1, vertices, &drawn); err != nil {
		t.Fatal(err)
	}
	for _, d := range drawn.Degrees {
		sum += float64(d)
	}
	mean, want := sum/float64(len(vertices)), float64(s.Edges)/float64(s.Vertices)
	if math.Abs(mean/want-1) > 0.03 || len(drawn.Sources) > len(vertices) {
		t.Errorf("a vertex has %.1f edges in place of %.1f", mean, want)
	}
	if _, err := forecast.ShapeOf("none"); err == nil {
		t.Error("there is a preset that is not")
	}
}

// All models can be forecast on a shape, on more nodes than it has shards, too.
func TestForecastsOfShapes(t *testing.T) {
	for _, model := range []string{"gcn", "sage", "gat"} {
		s, _ := forecast.ShapeOf("arxiv")
		g, err := s.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		r := traintest.Short(model)
		nodes := []int{3}
		if model == "gcn" {
			nodes = append(nodes, 1500)
		}
		rows, err := forecast.Make(t.Context(), &forecast.Subject{Recipe: &r, Graph: g, Looks: 1}, slices.Concat(strategyOf("leap"), strategyOf("p3"), strategyOf("grappa"), strategyOf("graph"), strategyOf("pipe")), nodes, rates, func(forecast.Row) {})
		if err != nil || len(rows) != 5*len(nodes) {
			t.Fatalf("%s: %+v, %v", model, rows, err)
		}
		for _, row := range rows {
			if !row.Fits || row.Seconds <= 0 || row.Memory == 0 || row.Strategy != "pipe" && row.Bytes.Bytes[peer.Gradient] == 0 {
				t.Errorf("%s: %+v", model, row)
			}
		}
	}
}
