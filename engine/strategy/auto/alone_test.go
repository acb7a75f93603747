package auto

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// cora is the outline of a GCN on Cora, as it lies in files.
func cora() *Outline {
	r := recipe.DefaultRecipe("gcn")
	return &Outline{
		Recipe: &r, Sparse: true, Bytes: 540_000,
		About: dataset.About{Vertices: 2708, Edges: 10_556, Features: 1433, Classes: 7, Splits: []graph.SplitInfo{{Train: 140, Val: 500, Test: 1000}}},
	}
}

// A small job is for one node, and one that computes for longer than nodes talk is not.
func TestWhatOneNodeTrainsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Outline)
		alone  bool
	}{
		"cora":            {func(*Outline) {}, true},
		"deterministic":   {func(o *Outline) { o.Recipe.Sharing.Deterministic = true }, true},
		"a bound":         {func(o *Outline) { o.Memory = 1 << 30 }, true},
		"little memory":   {func(o *Outline) { o.Memory = 60 << 20 }, false},
		"a table":         {func(o *Outline) { o.Recipe.Embeddings, o.Memory = 64, 1<<30 }, true},
		"a large table":   {func(o *Outline) { o.Recipe.Embeddings, o.Memory = 1<<15, 1<<30 }, false},
		"rows of owners":  {func(o *Outline) { o.Recipe.Embeddings, o.Recipe.EmbeddingsAt = 64, recipe.AtOwners }, false},
		"a long job":      {func(o *Outline) { o.Recipe.Epochs = 1_000_000 }, false},
		"no vertices":     {func(o *Outline) { o.About.Splits[0].Train = 0 }, false},
		"no such split":   {func(o *Outline) { o.Recipe.Split = 1 }, false},
		"no such model":   {func(o *Outline) { o.Recipe.Model.Layers = -1 }, false},
		"dense rows":      {func(o *Outline) { o.Sparse = false }, false},
		"a large graph":   {func(o *Outline) { o.About.Vertices, o.About.Edges, o.Bytes = 300_000, 2_000_000, 60_000_000 }, false},
		"sampled batches": {func(o *Outline) { o.Recipe.Batch, o.Recipe.Fanouts = 64, []int{5, 5} }, true},
		"many neighbours": {func(o *Outline) {
			o.About.Vertices, o.About.Edges, o.About.Features, o.Sparse = 100_000, 1_000_000, 100, false
			o.Recipe.Batch, o.Recipe.Fanouts, o.About.Splits[0].Train = 1024, []int{25, 10}, 10_000
		}, false},
	} {
		o := cora()
		c.change(o)
		why, alone := Alone(o)
		if alone != c.alone || alone != strings.HasPrefix(why, "one node holds all shards and takes about ") || len(why) > 200 {
			t.Errorf("%s: %v, %q", name, alone, why)
		}
		t.Log(name, why)
	}
}

// Rarer evaluations and a wider model change both sides, and more models the one that computes.
func TestTimeOfOneNode(t *testing.T) {
	o := cora()
	if got := o.entries(); got < 18.2 || got > 30 {
		t.Errorf("a row has %g entries, and 18.2 are there", got)
	}
	if o.Sparse = false; o.entries() != 1433 {
		t.Errorf("a dense row has %g entries", o.entries())
	}
	r := o.rows(2)
	if r.rows[0] != 140 || r.rows[1] < 686 || r.rows[2] != 2708 || r.edges[2] > 2*10_556 {
		t.Errorf("a batch reaches %+v", r)
	}
	o.Recipe.Fanouts = []int{3, 2}
	r = o.rows(2)
	if inputs, blocks := r.sizes(); inputs != 140*4*3 || len(blocks) != 2 || blocks[1].Targets != 140 || blocks[0].Targets != 140*4 || blocks[1].Sources != 140*4 {
		t.Errorf("%d inputs, %+v", inputs, blocks)
	}
}
