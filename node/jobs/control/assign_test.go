package control

import (
	"encoding/json"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// An assignment brings what a job begins with, if that is known, and nothing where some member
// would not understand it.
func TestAssignmentsBringTheirSchedule(t *testing.T) {
	s := &plan.State{Members: map[string]plan.Member{
		"a": {ID: "a", Knows: plan.Newest}, "b": {ID: "b", Knows: plan.Newest}, "c": {ID: "c", Knows: plan.KindScheduleJob - 1},
	}, Datasets: map[string]plan.Dataset{"d": {ID: "d", Shards: make([]plan.Shard, 4)}}, Jobs: map[string]plan.Job{}}
	assigned := func(by string, nodes []string, change func(r *recipe.Recipe)) plan.AssignJob {
		r := recipe.DefaultRecipe("gcn")
		r.Rate, r.Sharing = 0.125, strategy.Given(by)
		if change != nil {
			change(&r)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		s.Jobs["j1"] = plan.Job{ID: "j1", Dataset: "d", Strategy: by, Recipe: string(text)}
		return scheduled(s, plan.AssignJob{ID: "j1", Nodes: nodes})
	}
	both := []string{"a", "b"}
	if c := assigned("leap", both, nil); c.Scheduled || c.Begins != nil {
		t.Errorf("a member knows of no schedules, and gets %+v", c)
	}
	delete(s.Members, "c")
	for _, k := range []struct {
		by     string
		nodes  []string
		change func(r *recipe.Recipe)
		want   string // "": the nodes have to measure
		part   string
		rate   float64
	}{
		{"leap", both, nil, "leap", `{"slots":0}`, 0.125},
		{"leap", both, func(r *recipe.Recipe) { r.Sharing = strategy.Given("leap", "leap.merge=off") }, "leap", "", 0.125},
		{"leap", both, func(r *recipe.Recipe) { r.Sharing = strategy.Given("leap", "leap.mode=migrate") }, "leap", `{"slots":2}`, 0.125},
		{"centric", both, nil, "centric", "", 0.125},
		{"centric", both, func(r *recipe.Recipe) { r.Sweep = make([]recipe.Variant, 2) }, "centric", "", 0},
		{"single", both[:1], nil, "single", "", 0.125},
		{"auto", both[:1], nil, "single", "", 0.125},
		{"auto", both, nil, "", "", 0},
		{"pipe", both, nil, "", "", 0},
	} {
		c := assigned(k.by, k.nodes, k.change)
		if !c.Scheduled || (c.Begins != nil) != (k.want != "") {
			t.Errorf("%s on %v: %+v", k.by, k.nodes, c)
			continue
		}
		if e := c.Begins; e != nil && (e.Strategy != k.want || k.part != "" && string(e.Part) != k.part || e.Rate != k.rate) {
			t.Errorf("%s on %v begins with %+v %s", k.by, k.nodes, e, e.Part)
		}
	}
	if c := scheduled(s, plan.AssignJob{ID: "j1"}); c.Scheduled {
		t.Error("nobody is to run a job, by a schedule")
	}
}
