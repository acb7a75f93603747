package plan

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// workingGeneration is that of the job that runs in working.
const workingGeneration = 22

func TestWorkingIsAsItSays(t *testing.T) {
	s := working(t)
	if j, ok := s.JobOn("a"); !ok || j.ID != "j3" || j.Generation != workingGeneration || j.Last() != 2 {
		t.Errorf("a runs %+v", j)
	}
	if _, ok := s.JobOn("b"); ok {
		t.Error("b runs something")
	}
	if got := s.JobsOf(readyID); !slices.Equal(got, []string{"j3", "j4", "j5"}) {
		t.Errorf("jobs of the dataset: %v", got)
	}
	if j := s.Jobs["j1"]; j.Best != 2 || j.State != Done {
		t.Errorf("j1 is %+v", j)
	}
	if e, ok := s.Jobs["j1"].EpochAt(3); !ok || e.Epoch != 3 {
		t.Errorf("epoch 3 is %+v", e)
	}
	if _, ok := s.Jobs["j1"].EpochAt(4); ok {
		t.Error("there is an epoch 4")
	}
}

func TestBestEpoch(t *testing.T) {
	s := working(t)
	eval := func(epoch int, score, loss float64) Epoch {
		e := trained(epoch, score)
		e.Eval.Loss = loss
		return e
	}
	without := trained(5, 0)
	without.Eval = nil
	for i, c := range []struct {
		epoch Epoch
		best  int
	}{
		{eval(3, 0.7, 2), 3}, {eval(4, 0.7, 2), 3}, {without, 3}, {eval(6, 0.7, 1.5), 6}, {eval(7, 0.6, 1), 6}, {eval(8, 0.8, 9), 8},
	} {
		s = must(t, s, uint64(50+i), CommitEpochs{ID: "j3", Node: "a", Generation: workingGeneration, Epochs: []Epoch{c.epoch}})
		if got := s.Jobs["j3"].Best; got != c.best {
			t.Errorf("after epoch %d the best is %d, not %d", c.epoch.Epoch, got, c.best)
		}
	}
}

// As many epochs as one command may hold fit into it, whatever they say.
func TestLongestReport(t *testing.T) {
	const most = maxNumber
	bytes := Bytes{most, most, most, most, most, most, most}
	c := CommitEpochs{ID: "j3", Node: "a", Generation: most}
	for range MaxCommit {
		c.Epochs = append(c.Epochs, Epoch{
			Epoch: MaxEpochs, Loss: -math.MaxFloat64 / 3, Seconds: math.Pi * 1e20, Phases: Phases{math.Pi, math.Pi, math.Pi, math.Pi, math.Pi}, Rows: Rows{most, most},
			Requests: Requests{most, most}, Bytes: bytes, Generation: most, Weights: hash,
			Eval: &Eval{Seconds: math.Pi, Train: math.E / 10, Val: math.E / 10, Test: math.E / 10, Score: math.E / 10, Loss: -math.MaxFloat64 / 3, Bytes: bytes},
		})
	}
	if _, err := Encode(c); err != nil {
		t.Error(err)
	}
	if _, err := Encode(CreateJob{Recipe: strings.Repeat(`"`, MaxRecipe), Why: strings.Repeat("<", MaxSentence)}); err != nil {
		t.Error(err)
	}
}

// The oldest finished jobs make room; those that are not finished never do.
func TestRoomForJobs(t *testing.T) {
	s := working(t)
	index := uint64(100)
	create := func(epochs int) error {
		index++
		data, err := Encode(CreateJob{Key: fmt.Sprintf("%08x", index), Dataset: readyID, Strategy: "single", Recipe: "{}", Epochs: epochs})
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(s, index, data)
		s = next
		return err
	}
	for len(s.Jobs) < MaxJobs {
		if err := create(1); err != nil {
			t.Fatal(err)
		}
	}
	for _, gone := range []string{"j1", "j2"} {
		if err := create(1); err != nil || len(s.Jobs) != MaxJobs {
			t.Fatalf("%v with %d jobs", err, len(s.Jobs))
		}
		if _, in := s.Jobs[gone]; in {
			t.Errorf("%s was not forgotten", gone)
		}
	}
	if err := create(1); err == nil {
		t.Error("a job that has not ended made room")
	}
	for _, id := range slices.Collect(maps.Keys(s.Jobs)) {
		index++
		s = must(t, s, index, StopJob{ID: id})
	}
	for range MaxHistory / MaxEpochs {
		if err := create(MaxEpochs); err != nil && s.history() < MaxHistory-MaxEpochs {
			t.Error(err)
		}
	}
	if err := create(MaxEpochs); err == nil {
		t.Errorf("%d epochs in all", s.history())
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

func TestNextJobs(t *testing.T) {
	up := func(nodes string) func(string) bool {
		return func(id string) bool { return strings.Contains(nodes, id) }
	}
	s := working(t)
	begin, waits := NextJobs(s, up("ab"))
	if len(begin) != 0 || !reflect.DeepEqual(waits, map[string]Wait{
		"j4": {Holders: []string{"a"}, Behind: "j3"}, "j5": {Holders: []string{"a"}, Behind: "j3"},
	}) {
		t.Errorf("while j3 runs: %v, waits %+v", begin, waits)
	}
	s = must(t, s, 50, FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Stopped})
	s = must(t, s, 51, ResumeJob{ID: "j2"})
	begin, waits = NextJobs(s, up("ab"))
	if !reflect.DeepEqual(begin, []AssignJob{{ID: "j2", Nodes: []string{"a"}}}) || waits["j4"].Behind != "j2" || len(waits) != 2 {
		t.Errorf("afterwards: %v, waits %+v", begin, waits)
	}
	begin, waits = NextJobs(s, up("b"))
	if len(begin) != 0 || waits["j2"].Keeper != "a" || !slices.Equal(waits["j2"].Silent, []string{"a"}) || waits["j4"].Keeper != "" {
		t.Errorf("while a is away: %v, waits %+v", begin, waits)
	}
	// b comes to hold all, too: what has not begun goes there, what has waits for a.
	s = must(t, s, 52, PlaceShards{ID: readyID, Nodes: []string{"a", "b"}, Wanted: [][]int{{0, 1}, {0, 1}}})
	s = must(t, s, 53, HoldShards{ID: readyID, Node: "b", Shards: []int{0}})
	if begin, _ = NextJobs(s, up("b")); len(begin) != 0 {
		t.Errorf("b has one shard of two, and begins %v", begin)
	}
	s = must(t, s, 54, HoldShards{ID: readyID, Node: "b", Shards: []int{1}})
	begin, waits = NextJobs(s, up("b"))
	if !reflect.DeepEqual(begin, []AssignJob{{ID: "j4", Nodes: []string{"b"}}}) || waits["j2"].Keeper != "a" || waits["j5"].Behind != "j4" {
		t.Errorf("on b: %v, waits %+v", begin, waits)
	}
	s = must(t, s, 55, UpdateMember{ID: "b", Speed: 5})
	begin, _ = NextJobs(s, up("ab"))
	if !reflect.DeepEqual(begin, []AssignJob{{ID: "j2", Nodes: []string{"a"}}, {ID: "j4", Nodes: []string{"b"}}}) {
		t.Errorf("on both: %v", begin)
	}
	s = must(t, s, 56, SetLeaving{ID: "b"})
	if begin, _ = NextJobs(s, up("ab")); len(begin) != 1 {
		t.Errorf("b leaves: %v", begin)
	}
	s = must(t, s, 57, RemoveMember{ID: "a", Why: Removed})
	if begin, waits = NextJobs(s, up("b")); len(begin) != 0 || waits["j2"].Keeper != "" {
		t.Errorf("a is gone, b leaves: %v %+v", begin, waits)
	}
}

func TestJobsThatNoHistoryLeadsTo(t *testing.T) {
	for name, spoil := range map[string]func(s *State, j *Job){
		"id":             func(_ *State, j *Job) { j.ID = "j9" },
		"number":         func(s *State, _ *Job) { s.JobsMade = 2 },
		"two of a key":   func(_ *State, j *Job) { j.Key = key(0) },
		"key":            func(_ *State, j *Job) { j.Key = "x" },
		"epochs":         func(_ *State, j *Job) { j.Epochs = 1 },
		"no epochs":      func(_ *State, j *Job) { j.Epochs, j.History, j.Best = 0, nil, 0 },
		"recipe":         func(_ *State, j *Job) { j.Recipe = strings.Repeat("x", MaxRecipe+1) },
		"strategy":       func(_ *State, j *Job) { j.Strategy = "" },
		"state":          func(_ *State, j *Job) { j.State = "lost" },
		"stopping":       func(_ *State, j *Job) { j.State, j.Stopping = Done, true },
		"nobody":         func(_ *State, j *Job) { j.Nodes = nil },
		"a stranger":     func(_ *State, j *Job) { j.Nodes = []string{"x"} },
		"generation":     func(s *State, j *Job) { j.Generation = s.Generation + 1 },
		"no generation":  func(_ *State, j *Job) { j.Generation = 0 },
		"two on a node":  func(s *State, _ *Job) { o := s.Jobs["j2"]; o.State = Running; s.Jobs["j2"] = o },
		"dataset":        func(s *State, _ *Job) { delete(s.Datasets, readyID) },
		"error":          func(_ *State, j *Job) { j.Error = "a\x1b" },
		"order":          func(_ *State, j *Job) { j.History = []Epoch{trained(2, 1), trained(1, 1)} },
		"weights":        func(_ *State, j *Job) { j.History = []Epoch{{Epoch: 1}}; j.Best = 0 },
		"best":           func(_ *State, j *Job) { j.Best = 7 },
		"too many":       func(s *State, j *Job) { j.Epochs = MaxEpochs; crowd(s, *j) },
		"an epoch's own": func(_ *State, j *Job) { j.History = []Epoch{{Epoch: 10, Weights: hash}}; j.Best = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := working(t)
			s.Jobs = maps.Clone(s.Jobs)
			j := s.Jobs["j3"]
			spoil(s, &j)
			s.Jobs["j3"] = j
			b, err := MarshalSnapshot(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := UnmarshalSnapshot(b); err == nil {
				t.Error("it is read")
			}
		})
	}
}

// crowd fills the state with queued jobs like this one.
func crowd(s *State, like Job) {
	for n := uint64(10); n < 20; n++ {
		j := like
		j.Number, j.ID, j.Key, j.State = n, jobID(n), fmt.Sprintf("%08x", n), Queued
		s.Jobs[j.ID] = j
	}
	s.JobsMade = 19
}

// anyJobCommand is one that may well have an effect.
func anyJobCommand(r *rand.Rand, s *State) Command {
	jobs := s.JobsInOrder()
	j := Job{ID: "j1", Generation: 3}
	if len(jobs) > 0 {
		j = jobs[r.IntN(len(jobs))]
	}
	node := string(rune('a' + r.IntN(3)))
	if len(j.Nodes) > 0 && r.IntN(4) > 0 {
		node = j.Nodes[0]
	}
	switch r.IntN(9) {
	case 0:
		return CreateJob{Key: fmt.Sprintf("%08x", r.IntN(20)), Dataset: readyID, Recipe: "{}", Strategy: "single", Epochs: 1 + r.IntN(8)}
	case 1, 2:
		return AssignJob{ID: j.ID, Nodes: []string{node}}
	case 3, 4, 5:
		at := j.Last() + r.IntN(2)
		return CommitEpochs{ID: j.ID, Node: node, Generation: j.Generation, Epochs: []Epoch{trained(max(at, 1), r.Float64()), trained(at+1, r.Float64())}}
	case 6:
		return FinishJob{ID: j.ID, Node: node, Generation: j.Generation, State: []JobState{Done, Failed, Stopped}[r.IntN(3)]}
	case 7:
		return StopJob{ID: j.ID}
	default:
		return ResumeJob{ID: j.ID}
	}
}
