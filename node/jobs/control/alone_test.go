package control

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// small is a plan with a dataset that nodes a and b hold whole, and c in part.
func small(t *testing.T) *plan.State {
	t.Helper()
	s := &plan.State{Members: map[string]plan.Member{}, Jobs: map[string]plan.Job{}}
	for _, id := range []string{"a", "b", "c"} {
		s.Members[id] = plan.Member{ID: id, Name: "n" + id, Knows: plan.Newest}
	}
	d := plan.Dataset{ID: "d", Stage: plan.Ready, Nodes: []string{"a", "b", "c"}, About: plan.About{
		Vertices: 2708, Edges: 10_556, Features: 1433, Classes: 7, Sparse: true, Splits: []plan.SplitSizes{{Train: 140, Val: 500, Test: 1000}},
	}}
	for i := range 6 {
		shard := plan.Shard{ShardAbout: plan.ShardAbout{Bytes: 90_000}, Holders: []int{i % 2, 1 - i%2}}
		if i == 0 {
			shard.Holders = []int{2, 0, 1}
		}
		d.Shards = append(d.Shards, shard)
	}
	s.Datasets = map[string]plan.Dataset{"d": d}
	text, err := json.Marshal(recipe.DefaultRecipe("gcn"))
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs["j1"] = plan.Job{ID: "j1", Number: 1, Dataset: "d", Strategy: "auto", Recipe: string(text), Epochs: 200, State: plan.Queued}
	return s
}

// Who trains alone follows from the plan: a job that several nodes have begun stays with them.
func TestJobsForOneNode(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *plan.State, j *plan.Job)
		alone  bool
	}{
		"queued":         {func(*plan.State, *plan.Job) {}, true},
		"by name":        {func(_ *plan.State, j *plan.Job) { j.Strategy = "leap" }, false},
		"ended":          {func(_ *plan.State, j *plan.Job) { j.State = plan.Done }, false},
		"no dataset":     {func(_ *plan.State, j *plan.Job) { j.Dataset = "e" }, false},
		"another recipe": {func(_ *plan.State, j *plan.Job) { j.Recipe = "?" }, false},
		"runs there":     {func(_ *plan.State, j *plan.Job) { j.State, j.Nodes = plan.Running, []string{"b"} }, true},
		"in part there":  {func(_ *plan.State, j *plan.Job) { j.State, j.Nodes = plan.Running, []string{"c"} }, false},
		"shared":         {func(_ *plan.State, j *plan.Job) { j.State, j.Nodes = plan.Running, []string{"a", "b", "c"} }, false},
		"was shared": {func(_ *plan.State, j *plan.Job) {
			j.Nodes, j.History = []string{"a", "b", "c"}, []plan.Epoch{{Epoch: 1}}
		}, false},
		"was alone":     {func(_ *plan.State, j *plan.Job) { j.Nodes, j.History = []string{"b"}, []plan.Epoch{{Epoch: 1}} }, true},
		"knows of none": {func(s *plan.State, _ *plan.Job) { s.Members["c"] = plan.Member{ID: "c", Knows: plan.KindAdmit} }, false},
		"has no room": {func(s *plan.State, _ *plan.Job) {
			s.Members["b"] = plan.Member{ID: "b", Knows: plan.Newest, Memory: 50 << 20}
		}, false},
		"others' no room": {func(s *plan.State, _ *plan.Job) {
			s.Members["c"] = plan.Member{ID: "c", Knows: plan.Newest, Memory: 50 << 20}
		}, true},
	} {
		s := small(t)
		j := s.Jobs["j1"]
		c.change(s, &j)
		if why := lone(s, j); (why != "") != c.alone {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// Such a job goes to a node that holds all shards, with its reason, and stays there while others
// own the shards. When that node is away another one begins it.
func TestOneNodeIsAssigned(t *testing.T) {
	s := small(t)
	away := ""
	answers := func(id string) bool { return id != away }
	next := func() []plan.AssignJob {
		t.Helper()
		begin, _ := plan.NextJobs(aside(s, answers), answers)
		for i := range begin {
			begin[i] = scheduled(s, alone(s, begin[i]))
		}
		return begin
	}
	got := next()
	if len(got) != 1 || !slices.Equal(got[0].Nodes, []string{"a"}) || !slices.Equal(got[0].Owners, make([]int, 6)) {
		t.Fatalf("%+v", got)
	}
	if e := got[0].Begins; e == nil || e.Strategy != "single" || !strings.HasPrefix(e.Why, "one node holds all shards and takes about ") {
		t.Errorf("it begins with %+v", e)
	}
	if s.Jobs["j1"].Strategy != "auto" {
		t.Error("the plan itself has changed")
	}
	j := s.Jobs["j1"]
	j.State, j.Nodes, j.Owners, j.Generation, j.History = plan.Running, got[0].Nodes, got[0].Owners, 3, []plan.Epoch{{Epoch: 1, Generation: 3}}
	s.Jobs["j1"] = j
	if got := next(); len(got) != 0 {
		t.Errorf("it runs, and is assigned anew: %+v", got)
	}
	if got, can := plan.RenewJob(aside(s, answers), "j1", answers); can {
		t.Errorf("it is renewed: %+v", got)
	}
	j.State = plan.Queued
	s.Jobs["j1"] = j
	if got := next(); len(got) != 1 || got[0].Nodes[0] != "a" {
		t.Errorf("what it has learnt is on a, and %+v", got)
	}
	away = "a"
	if got := next(); len(got) != 1 || got[0].Nodes[0] != "b" {
		t.Errorf("a is away, and %+v", got)
	}
	away = ""
	s.Members["a"] = plan.Member{ID: "a", Knows: plan.Newest, Leaving: true}
	if got := next(); len(got) != 1 || got[0].Nodes[0] != "b" {
		t.Errorf("a is leaving, and %+v", got)
	}
}

// Where the only node that holds all shards is lost, the others take the job if they hold them
// together, and else wait for it.
func TestTheOnlyNodeIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(j *plan.Job)
		part   int // of the shards, which the lost node alone holds
		leaves bool
		nodes  []string
		waits  bool
	}{
		"queued":                {func(*plan.Job) {}, 0, false, []string{"b", "c"}, false},
		"queued, with history":  {func(j *plan.Job) { j.Nodes, j.History = []string{"a"}, []plan.Epoch{{Epoch: 1}} }, 0, false, []string{"b", "c"}, false},
		"running":               {func(j *plan.Job) { j.State, j.Nodes, j.History = plan.Running, []string{"a"}, []plan.Epoch{{Epoch: 1}} }, 0, false, []string{"b", "c"}, false},
		"queued, and a shard":   {func(*plan.Job) {}, 1, false, nil, true},
		"running, and a shard":  {func(j *plan.Job) { j.State, j.Nodes = plan.Running, []string{"a"} }, 1, false, nil, false},
		"it leaves, and runs":   {func(j *plan.Job) { j.State, j.Nodes = plan.Running, []string{"a"} }, 0, true, nil, false},
		"it leaves, and queued": {func(*plan.Job) {}, 0, true, []string{"b", "c"}, false},
	} {
		s := small(t)
		d := s.Datasets["d"]
		for i := range d.Shards { // a has copies of what b and c own
			if d.Shards[i].Holders = []int{1 + i%2, 0}; i < c.part {
				d.Shards[i].Holders = []int{0}
			}
		}
		j := s.Jobs["j1"]
		j.Owners, j.Generation = make([]int, 6), 3
		c.change(&j)
		s.Jobs["j1"] = j
		if lone(s, j) == "" {
			t.Fatalf("%s: it is no job for one node", name)
		}
		answers := func(id string) bool { return id != "a" }
		if c.leaves {
			answers = func(string) bool { return true }
			s.Members["a"] = plan.Member{ID: "a", Name: "na", Knows: plan.Newest, Leaving: true}
		}
		begin, waits := plan.NextJobs(aside(s, answers), answers)
		if _, waiting := waits["j1"]; waiting != c.waits || len(begin) != min(1, len(c.nodes)) || len(begin) == 1 && !slices.Equal(begin[0].Nodes, c.nodes) {
			t.Errorf("%s: %+v, and it waits: %+v", name, begin, waits)
		}
	}
}
