package data

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A killed node of a mesh with many datasets is not hidden behind a sentence for each of them.
func TestProblemsOfManyDatasets(t *testing.T) {
	with := func(datasets int) *plan.State {
		s := &plan.State{
			Members:  map[string]plan.Member{"a": {ID: "a", Name: "n1"}, "b": {ID: "b", Name: "n2"}, "c": {ID: "c", Name: "n3"}},
			Datasets: map[string]plan.Dataset{},
		}
		for i := range datasets {
			id := fmt.Sprint(i)
			s.Datasets[id] = plan.Dataset{
				ID: id, Name: "d" + id, Stage: plan.Ready, Replicas: 1, Nodes: []string{"a", "b", "c"},
				// Thin, without its owner, held by nobody that answers.
				Shards: []plan.Shard{{Holders: []int{0, 1}}, {Holders: []int{1, 0}}, {Holders: []int{1}}},
			}
		}
		return s
	}
	d := lacks{func(id string) bool { return id != "b" }}
	few := d.ofAll(with(apart))
	if len(few) != 3*apart || few[0] != "no node that answers holds 1 shard of dataset d0: start the nodes that do again, or remove it and import it anew" {
		t.Errorf("of %d datasets: %q", apart, few)
	}
	many := d.ofAll(with(29))
	want := []string{
		"no node that answers holds some shards of 29 datasets, 29 shards in all: start the nodes that do again, or remove these datasets and import them anew (`hopmesh dataset list` shows which)",
		"29 datasets are about to give 29 shards another owner, as theirs do not answer (`hopmesh dataset list` shows which)",
		"29 datasets lack copies of 29 shards: they are on their way, or wait for nodes that do not answer (`hopmesh dataset list` shows which)",
	}
	if !slices.Equal(many, want) {
		t.Errorf("of 29 datasets: %s", strings.Join(many, "\n"))
	}
	s := with(29)
	if one := d.ofOne(s, s.Datasets["7"]); len(one) != 3 || !strings.Contains(one[2], "dataset d7 lacks copies of 1 shard, with 1 wanted") {
		t.Errorf("of one of them: %q", one)
	}
	delete(s.Members, "c")
	delete(s.Members, "b")
	if many := d.ofAll(s); many[2] != "29 datasets lack copies of 29 shards, since they want more nodes than the mesh has: add some (`hopmesh dataset list` shows which)" {
		t.Errorf("of 29 datasets on one node: %s", strings.Join(many, "\n"))
	}
}
