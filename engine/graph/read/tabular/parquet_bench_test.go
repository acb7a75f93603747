package tabular

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// BenchmarkParquetEdges counts 16 bytes an edge, as two int64 have, whatever they
// take in the file.
func BenchmarkParquetEdges(b *testing.B) {
	const n = 1_000_000
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]edgeRow, n)
	for i := range rows {
		rows[i] = edgeRow{random.Int64N(1 << 20), random.Int64N(1 << 20)}
	}
	file := parquetOf(b, rows, writing{codec: compress.Codecs.Snappy})
	path := filepath.Join(b.TempDir(), "edges.parquet")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		b.Fatal(err)
	}
	s := mustOpenParquet(b, path)
	b.SetBytes(16 * n)
	for b.Loop() {
		if err := s.Edges(b.Context(), func(graph.EdgeBatch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParquetFeatures counts 4 bytes a feature.
func BenchmarkParquetFeatures(b *testing.B) {
	const n, width = 20_000, 128
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]listRow, n)
	for i := range rows {
		rows[i].ID = int64(i)
		for range width {
			rows[i].Features = append(rows[i].Features, random.Float32())
		}
	}
	dir := folder(b, map[string]string{"edges.csv": "0,1\n", "features.parquet": parquetOf(b, rows, writing{codec: compress.Codecs.Snappy})})
	s := mustOpen(b, dir)
	b.SetBytes(4 * n * width)
	for b.Loop() {
		if err := s.Features(b.Context(), func(graph.FeatureBatch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCSVFeatures counts the file's bytes.
func BenchmarkCSVFeatures(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for i := range 5_000 {
		text = append(text, itoa(i)...)
		for range 128 {
			text = append(text, ',', '0', '.')
			text = append(text, itoa(100_000+random.IntN(900_000))...)
		}
		text = append(text, '\n')
	}
	s := mustOpen(b, folder(b, map[string]string{"edges.csv": "0,1\n", "features.csv": string(text)}))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := s.Features(b.Context(), func(graph.FeatureBatch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
