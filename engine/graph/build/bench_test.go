package build

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// BenchmarkImport compares importing a graph with copying the same bytes to disk.
func BenchmarkImport(b *testing.B) {
	src := counted{graph.Meta{Vertices: 200_000, Edges: 4_000_000, Features: 128}}
	size := int64(src.meta.Edges)*8 + int64(src.meta.Vertices)*512
	raw := filepath.Join(b.TempDir(), "raw")
	if err := os.WriteFile(raw, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if err := duplicate(raw, filepath.Join(b.TempDir(), "copy")); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, partitioner := range []string{random, stream, multilevel} {
		b.Run(partitioner, func(b *testing.B) {
			b.SetBytes(size)
			dir := b.TempDir()
			n := 0
			for b.Loop() {
				n++
				m, err := Run(b.Context(), src, Options{Dir: filepath.Join(dir, fmt.Sprint(n)), Partitioner: partitioner, Undirected: partitioner != random})
				if err != nil {
					b.Fatal(err)
				}
				if partitioner == random {
					continue // it looks at no edges
				}
				b.ReportMetric(float64(src.meta.Edges)/m.CutSeconds/1e6, "Medges/s-cut")
			}
		})
	}
}

func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20)); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}
