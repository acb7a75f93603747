package generate

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// BenchmarkEdges says how many directed edges a second are made.
func BenchmarkEdges(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			const edges = 4 << 20
			source, err := New(Options{Kind: kind, Vertices: 2_449_029, Edges: edges, Classes: 47})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := source.Edges(b.Context(), func(graph.EdgeBatch) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(edges*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

func BenchmarkFeatures(b *testing.B) {
	const vertices, columns = 50_000, 128
	source, err := New(Options{Kind: "sbm", Vertices: vertices, Features: columns, Classes: 40})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(vertices * columns * 4)
	for b.Loop() {
		if err := source.Features(b.Context(), func(graph.FeatureBatch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
