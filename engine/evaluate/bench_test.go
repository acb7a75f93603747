package evaluate

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/task"
)

// BenchmarkEvaluation evaluates models on a graph of 100 thousand vertices, in memory that
// is large enough for all at once, or only for parts, or for parts whose tables are in files.
func BenchmarkEvaluation(b *testing.B) {
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 100_000, Edges: 2_000_000, Features: 100, Classes: 16, Communities: 64, Inside: 0.8, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		b.Fatal(err)
	}
	shards := enginetest.Cut(b, src, 8, "")
	for _, name := range []string{"gcn", "sage", "gat"} {
		spec := nn.Defaults(name)
		spec.Layers, spec.Hidden = 3, 64
		if name == "gat" {
			spec.Hidden = 8
		}
		m := setup{spec: spec, metric: task.Accuracy, dir: b.TempDir()}.alone(b, shards)
		whole := m.wholeBytes(m.all())
		for _, c := range []struct {
			name   string
			memory uint64
		}{{"whole", 1 << 33}, {"parts", whole - 1}, {"files", m.Least() + 8<<20}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				m.Limit(c.memory)
				for b.Loop() {
					if _, err := m.evaluate(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
