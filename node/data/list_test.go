package data

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
)

// A node that holds no shard of a dataset has no folder of it.
func TestFolderOfShards(t *testing.T) {
	d := plan.Dataset{ID: "d1", Nodes: []string{"a", "b"}, Shards: []plan.Shard{{Holders: []int{1}}, {}}}
	if got := folder("x", "a", d); got != "" {
		t.Errorf("a node without shards has the folder %s", got)
	}
	if got := folder("x", "b", d); !filepath.IsAbs(got) || filepath.Base(got) != "d1" {
		t.Errorf("the folder is %s", got)
	}
}

func TestTypesAreDescribed(t *testing.T) {
	types := &graph.Types{
		Vertices:  []graph.VertexType{{Name: "author", Vertices: 2, Features: 1, Bare: true}, {Name: "paper", Vertices: 3, First: 1, Features: 4}},
		Relations: []graph.Relation{{Source: "author", Name: "writes", Target: "paper", Edges: 6}},
	}
	text, err := types.Text()
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Dataset{About: plan.About{Vertices: 5, Features: 5, Types: text}}
	a := described(&plan.State{}, d)
	if got := fmt.Sprint(a.Types, a.Relations); got != "[{author 2 0} {paper 3 4}] [{author writes paper 6}]" {
		t.Errorf("the types and relations are %s", got)
	}
	d.About.Vertices = 6 // types of another graph are not shown
	if a := described(&plan.State{}, d); a.Types != nil {
		t.Errorf("the types are %v", a.Types)
	}
}

// still is a plan that does not change.
type still struct {
	Plan
	state *plan.State
}

func (s still) State() *plan.State { return s.state }

// Targets are no classes, in the list as in what is shown of one dataset.
func TestTargetsAreNoClasses(t *testing.T) {
	s := &plan.State{Datasets: map[string]plan.Dataset{
		"d1": {ID: "d1", Name: "cora", Stage: plan.Ready, About: plan.About{Classes: 7}},
		"d2": {ID: "d2", Name: "people", Stage: plan.Ready, About: plan.About{Classes: 3, Targets: string(graph.Numbers)}},
	}}
	d := &Datasets{plan: still{state: s}, answers: func(string) bool { return true }}
	list := d.List()
	if len(list) != 2 || list[0].Classes != 7 || list[1].Classes != 0 {
		t.Errorf("listed as %+v", list)
	}
	for _, sum := range list {
		if one, err := d.Show(sum.Name); err != nil || one.Classes != sum.Classes {
			t.Errorf("%s has %d classes in the list, and is shown as %+v (%v)", sum.Name, sum.Classes, one, err)
		}
	}
}
