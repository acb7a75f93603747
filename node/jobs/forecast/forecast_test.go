package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	engine "github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
)

func TestPresetsAreShapes(t *testing.T) {
	var names []string
	for _, s := range forecast.Shapes() {
		names = append(names, s.Name)
		r := api.ForecastRequest{Preset: s.Name, Nodes: []int{3}, Bandwidth: 1}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(names, api.ForecastPresets()) {
		t.Errorf("%v can be forecast, and %v can be asked for", names, api.ForecastPresets())
	}
}

// Each shard has one owner, all nodes have as many shards, and copies are elsewhere.
func TestPlacing(t *testing.T) {
	d := plan.Dataset{Stage: plan.Ready, Replicas: 1, Nodes: []string{"a", "b"}}
	for i := range 64 {
		d.Shards = append(d.Shards, plan.Shard{Holders: []int{i / 32}})
	}
	for _, copies := range []int{0, 1, 2} {
		place := placing(d, copies)
		for _, nodes := range []int{1, 2, 3, 7, 64} {
			owners, others := place(nodes)
			count := make([]int, nodes)
			for shard, owner := range owners {
				count[owner]++
				want := min(copies, nodes-1)
				if nodes == 2 && copies == d.Replicas {
					want = 0 // as it is now
				}
				if len(others[shard]) != want || slices.Contains(others[shard], owner) {
					t.Errorf("%d nodes, %d copies: shard %d is node %d's and also on %v", nodes, copies, shard, owner, others[shard])
				}
			}
			if slices.Max(count)-slices.Min(count) > 1 {
				t.Errorf("%d nodes own %v shards", nodes, count)
			}
		}
	}
}

func TestStrategiesThatAreForecast(t *testing.T) {
	all, err := strategiesOf("")
	if err != nil || len(all) != len(recipe.Strategies)-2 { // all but auto and program, whose model is not known
		t.Errorf("%d strategies: %v", len(all), err)
	}
	if own, err := strategiesOf("program"); err != nil || !slices.ContainsFunc(own, func(s forecast.Strategy) bool { return s.Name == "program" }) {
		t.Errorf("%v, %v", own, err)
	}
	some, err := strategiesOf("leap")
	if err != nil || len(some) != 2 {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := strategiesOf("luck"); err == nil || !strings.Contains(err.Error(), "no strategy") {
		t.Error(err)
	}
}

// A strategy that learns classes alone is not forecast for another task.
func TestStrategiesOfATask(t *testing.T) {
	r := engine.DefaultRecipe("gcn")
	r.Learn(task.Named("regression"))
	about := dataset.About{Vertices: 100, Edges: 500, Features: 4, Classes: 2, Targets: graph.Numbers, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}}}
	model, err := nn.New(r.Model, about.Features, about.Classes)
	if err != nil {
		t.Fatal(err)
	}
	all, err := strategiesOf("")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, s := range all {
		r.Sharing.Strategy = s.Name
		if s.Check != nil && strings.Contains(fmt.Sprint(s.Check(&r, model, about)), "{strategy} "+s.Name+" learns one class of each vertex, and the task is regression") {
			refused++
		}
	}
	if refused != 2 { // pipe and graph
		t.Errorf("%d strategies are refused", refused)
	}
}

// The fastest of those that are exact and fit is the best.
func TestTheBest(t *testing.T) {
	rows := []api.ForecastRow{
		{Nodes: 4, Seconds: 1, Fits: true},
		{Nodes: 4, Seconds: 2, Exact: true},
		{Nodes: 4, Seconds: 4, Fits: true, Exact: true},
		{Nodes: 4, Seconds: 3, Fits: true, Exact: true},
		{Nodes: 8, Seconds: 9, Fits: true, Exact: true},
		{Nodes: 9, Seconds: 9, Exact: true},
	}
	choose(rows)
	for i, r := range rows {
		if r.Best != (i == 3 || i == 4) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}
