package strategies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
)

// The table of docs/strategies.md says which strategy learns which task, and which trains which models.
func TestTableOfTasks(t *testing.T) {
	var table strings.Builder
	table.WriteString("| `--task` |")
	for _, s := range strategies.All {
		table.WriteString(" `" + s.Name + "` |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(strategies.All)) + "\n")
	for _, kind := range task.Kinds {
		table.WriteString("| `" + kind.Name + "` |")
		for _, s := range strategies.All {
			if s.Classes && kind != task.Kinds[0] || kind.Pairs && !s.Links && s.Choose == nil {
				table.WriteString(" no |")
			} else {
				table.WriteString(" yes |")
			}
		}
		table.WriteString("\n")
	}
	table.WriteString("| any, with `train.embeddings` |")
	for _, s := range strategies.All {
		if s.Embeddings || s.Choose != nil {
			table.WriteString(" yes |")
		} else {
			table.WriteString(" no |")
		}
	}
	table.WriteString("\n")
	related, along := nn.Defaults("rgcn"), nn.Defaults("gat")
	related.Tell(2, "")
	along.EdgeFeatures = 3
	for _, of := range []struct {
		name string
		spec nn.Spec
	}{{"models that tell relations apart", related}, {"models that read features of edges", along}} {
		table.WriteString("| " + of.name + " |")
		for _, s := range strategies.All {
			switch {
			case s.Elsewhere:
				table.WriteString(" its own |")
			case takes(t, s.Name, of.spec):
				table.WriteString(" yes |")
			default:
				table.WriteString(" no |")
			}
		}
		table.WriteString("\n")
	}
	path := filepath.Join("..", "..", "docs", "strategies.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\n"+table.String()+"\n") {
		t.Errorf("%s has not this table:\n%s", path, table.String())
	}
}

// takes reports whether a strategy trains a model of this kind.
func takes(t *testing.T, by string, spec nn.Spec) bool {
	t.Helper()
	r := recipe.DefaultRecipe(spec.Model)
	r.Model, r.Sharing.Strategy = spec, by
	model, err := nn.New(spec, 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	about := dataset.About{Vertices: 60, Edges: 300, Features: 5, Classes: 4, Relations: spec.Relations, EdgeFeatures: spec.EdgeFeatures, Splits: []graph.SplitInfo{{Train: 30, Val: 10, Test: 10}}}
	err = strategies.All.Check(&r, model, about)
	if err != nil && !strings.Contains(err.Error(), by+" does not train ") {
		t.Fatalf("%s of %s: %v", by, spec.Model, err)
	}
	return err == nil
}
