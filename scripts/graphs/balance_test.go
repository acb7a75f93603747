package graphs

import (
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

// TestTypesAreSpread cuts a graph of ogbn-mag's shape for four nodes. The cut balances vertices,
// edges and training vertices of all types together, and where communities of all types correspond
// it spreads each type, too.
func TestTypesAreSpread(t *testing.T) {
	g, err := Generate(t.Context(), generate.Options{Preset: "mag", Scale: 0.02, Seed: 1}, true, filepath.Join(t.TempDir(), "g"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	const nodes = 4
	var have [nodes]struct{ author, field, institution, paper, edges, training float64 }
	for i, s := range g.Shards {
		to := &have[i*nodes/len(g.Shards)]
		to.edges += float64(len(s.Indices))
		for v := range s.Vertices {
			// Types without features have a column of ones: authors 0, fields 1, institutions 2.
			switch row := s.Dense[v*s.Features:][:s.Features]; {
			case row[0] != 0:
				to.author++
			case row[1] != 0:
				to.field++
			case row[2] != 0:
				to.institution++
			default:
				to.paper++
			}
			if s.Marks[0][v] == graph.Train {
				to.training++
			}
		}
	}
	for name, of := range map[string]func(i int) float64{
		"authors": func(i int) float64 { return have[i].author }, "fields": func(i int) float64 { return have[i].field },
		"institutions": func(i int) float64 { return have[i].institution }, "papers": func(i int) float64 { return have[i].paper },
		"edges": func(i int) float64 { return have[i].edges }, "training vertices": func(i int) float64 { return have[i].training },
	} {
		most, all := 0.0, 0.0
		for i := range have {
			most, all = max(most, of(i)), all+of(i)
		}
		if over := most * nodes / all; over > 1.25 || all == 0 {
			t.Errorf("a node has %.2f times its share of %.0f %s", over, all, name)
		}
	}
}
