package tabular

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// edgeFile writes random edges among n ids, and returns the file's size.
func edgeFile(b *testing.B, path string, edges int, id func(*rand.Rand, []byte) []byte) int64 {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var buf bytes.Buffer
	var line []byte
	for range edges {
		line = append(id(random, line[:0]), ',')
		line = append(id(random, line), '\n')
		buf.Write(line)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return int64(buf.Len())
}

var benchIDs = map[string]func(*rand.Rand, []byte) []byte{
	"identity": func(r *rand.Rand, b []byte) []byte { return strconv.AppendUint(b, r.Uint64N(1<<20), 10) },
	"dense":    func(r *rand.Rand, b []byte) []byte { return strconv.AppendUint(b, 2*r.Uint64N(1<<20), 10) },
	"sparse": func(r *rand.Rand, b []byte) []byte {
		return strconv.AppendUint(b, (r.Uint64N(1<<20)*0x9e3779b97f4a7c15)>>1, 10)
	},
	"text": func(r *rand.Rand, b []byte) []byte { return strconv.AppendUint(append(b, 'v'), r.Uint64N(1<<20), 10) },
}

func BenchmarkCSVOpen(b *testing.B) {
	for _, name := range []string{"identity", "dense", "sparse", "text"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "edges.csv")
			b.SetBytes(edgeFile(b, path, 2_000_000, benchIDs[name]))
			for b.Loop() {
				s, err := OpenCSV(b.Context(), path, source.Options{})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

func BenchmarkCSVEdges(b *testing.B) {
	for _, name := range []string{"identity", "dense", "sparse", "text"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "edges.csv")
			b.SetBytes(edgeFile(b, path, 2_000_000, benchIDs[name]))
			s := mustOpen(b, path)
			for b.Loop() {
				if err := s.Edges(b.Context(), func(graph.EdgeBatch) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
