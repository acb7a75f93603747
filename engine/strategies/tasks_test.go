package strategies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
)

// The table of docs/strategies.md says which strategy learns which task.
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
	path := filepath.Join("..", "..", "docs", "strategies.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\n"+table.String()+"\n") {
		t.Errorf("%s has not this table:\n%s", path, table.String())
	}
}
