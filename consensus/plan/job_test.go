package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
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
	if e, ok := s.Jobs["j1"].EpochAt(3, 0); !ok || e.Epoch != 3 {
		t.Errorf("epoch 3 is %+v", e)
	}
	if _, ok := s.Jobs["j1"].EpochAt(4, 0); ok {
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
	unjudged := trained(9, 0.9)
	unjudged.Eval.Val = nil
	for i, c := range []struct {
		epoch Epoch
		best  int
	}{
		{eval(3, 0.7, 2), 3}, {eval(4, 0.7, 2), 3}, {without, 3}, {eval(6, 0.7, 1.5), 6}, {eval(7, 0.6, 1), 6}, {eval(8, 0.8, 9), 8}, {unjudged, 8},
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
	var bytes epoch.Bytes
	for _, n := range bytes.Kinds() {
		*n = most
	}
	layout := func(stages, ways int, seconds, history float64) *epoch.Layout {
		return &epoch.Layout{Stages: stages, Ways: ways, Seconds: seconds, History: history}
	}
	c := CommitEpochs{ID: "j3", Node: "a", Generation: most}
	for range MaxCommit {
		c.Epochs = append(c.Epochs, Epoch{
			Epoch: MaxEpochs, Model: MaxModels - 1, Loss: -math.MaxFloat64 / 3, Seconds: math.Pi * 1e20, Phases: epoch.Phases{Sample: math.Pi, Gather: math.Pi, Compute: math.Pi, Reduce: math.Pi, Wait: math.Pi}, Rows: epoch.Rows{Local: most, Remote: most},
			Requests: epoch.Requests{Feature: most, Topology: most, Activation: most, Gradient: most}, Bytes: bytes, Generation: most, Hash: hash,
			Eval:     &epoch.Eval{Seconds: math.Pi, Train: new(math.E / 10), Val: new(math.E / 10), Test: new(math.E / 10), Score: math.E / 10, Loss: -math.MaxFloat64 / 3, Bytes: bytes},
			Strategy: "centric", Why: strings.Repeat("<", MaxWhy/6), Slots: maxSlots, Behind: maxSlots, Super: maxSlots, Seen: math.E / 10,
		})
	}
	if err := checkEpoch(&c.Epochs[0], Job{Epochs: MaxEpochs, Bests: make([]int, MaxModels)}); err != nil {
		t.Error(err)
	}
	// A pipeline's has other words.
	piped := c.Epochs[0]
	piped.Model, piped.Slots, piped.Behind, piped.Super, piped.Seen = 0, 0, 0, 0, 0
	piped.Predicted = layout(maxSlots, maxSlots, math.Pi, math.Pi)
	if err := checkEpoch(&piped, Job{Epochs: MaxEpochs}); err != nil {
		t.Error(err)
	}
	if written, err := json.Marshal(piped); err != nil || (len(written)+1)*MaxHistory > MaxSnapshot*3/4 {
		t.Errorf("%d bytes an epoch of a pipeline, %v: a snapshot has no room for what else there is", len(written), err)
	}
	for _, bad := range []*epoch.Layout{layout(0, 1, 1, 0), layout(1, maxSlots+1, 1, 0), layout(1, 1, math.NaN(), 0), layout(1, 1, 1, math.Inf(1))} {
		piped.Predicted = bad
		if err := checkEpoch(&piped, Job{Epochs: MaxEpochs}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v is predicted: %v", bad, err)
		}
	}
	piped.Predicted, piped.Slots = layout(1, 1, 1, 0), 1
	if err := checkEpoch(&piped, Job{Epochs: MaxEpochs}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a pipeline has slots: %v", err)
	}
	// Another strategy has figures in place of those.
	other := c.Epochs[0]
	other.Slots, other.Behind, other.Super, other.Seen = 0, 0, 0, 0
	other.Figures = []epoch.Figure{{Name: "steps apart", Value: math.E / 10}, {Name: "averagings", Value: math.E / 10}}
	if err := checkEpoch(&other, Job{Epochs: MaxEpochs, Bests: make([]int, MaxModels)}); err != nil {
		t.Error(err)
	}
	if written, err := json.Marshal(other); err != nil || (len(written)+1)*MaxHistory > MaxSnapshot*3/4 {
		t.Errorf("%d bytes an epoch with figures, %v", len(written), err)
	}
	for name, bad := range map[string]func(e *Epoch){
		"slots, too":    func(e *Epoch) { e.Slots = 1 },
		"a layout, too": func(e *Epoch) { e.Predicted, e.Model = layout(1, 1, 1, 0), 0 },
		"many":          func(e *Epoch) { e.Figures = append(e.Figures, e.Figures...) },
		"no name":       func(e *Epoch) { e.Figures = []epoch.Figure{{Value: 1}} },
		"not finite":    func(e *Epoch) { e.Figures = []epoch.Figure{{Name: "a", Value: math.Inf(1)}} },
		"control codes": func(e *Epoch) { e.Figures = []epoch.Figure{{Name: "a\x1b"}} },
	} {
		e := other
		bad(&e)
		if err := checkEpoch(&e, Job{Epochs: MaxEpochs, Bests: make([]int, MaxModels)}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if written, err := json.Marshal(c.Epochs[0]); err != nil || (len(written)+1)*MaxHistory > MaxSnapshot*3/4 {
		t.Errorf("%d bytes an epoch, %v: a snapshot has no room for what else there is", len(written), err)
	}
	if _, err := Encode(c); err != nil {
		t.Error(err)
	}
	if _, err := Encode(CreateJob{Recipe: strings.Repeat(`"`, MaxRecipe), Why: strings.Repeat("<", MaxSentence)}); err != nil {
		t.Error(err)
	}
	text := strings.Repeat("<", MaxSentence)
	if _, err := Encode(FinishJob{Error: text, Notes: slices.Repeat([]string{text}, MaxNotes), Diverged: slices.Repeat([]string{text}, MaxModels)}); err != nil {
		t.Error(err)
	}
}

// Nothing is forgotten to make room for another job.
func TestRoomForJobs(t *testing.T) {
	s := working(t)
	index := uint64(100)
	create := func(epochs int) (err error) {
		index++
		s, err = tried(t, s, index, CreateJob{Key: fmt.Sprintf("%08x", index), Dataset: readyID, Strategy: "single", Recipe: "{}", Epochs: epochs})
		return err
	}
	for len(s.Jobs) < MaxJobs {
		if err := create(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(1); !errors.Is(err, ErrJobsFull) || len(s.Jobs) != MaxJobs || len(s.Jobs["j1"].History) != 3 {
		t.Fatalf("%v with %d jobs", err, len(s.Jobs))
	}
	for id, want := range map[string]error{"j3": ErrJobState, "j4": ErrJobState, "j99": ErrNoJob, "j1": nil} {
		index++
		var err error
		if s, err = tried(t, s, index, RemoveJob{ID: id}); !errors.Is(err, want) {
			t.Errorf("removing %s: %v", id, err)
		}
	}
	if err := create(1); err != nil || s.Jobs["j1"].ID != "" {
		t.Errorf("%v, j1 is %+v", err, s.Jobs["j1"])
	}
	for _, id := range slices.Sorted(maps.Keys(s.Jobs)) {
		index++
		s = must(t, s, index, StopJob{ID: id})
		if s.Jobs[id].Ended() && len(s.Jobs) > 8 {
			index++
			s = must(t, s, index, RemoveJob{ID: id})
		}
	}
	for range MaxHistory/MaxEpochs - 1 {
		if err := create(MaxEpochs); err != nil {
			t.Error(err)
		}
	}
	if err := create(MaxEpochs); !errors.Is(err, ErrEpochsFull) {
		t.Errorf("%v with %d epochs reserved", err, s.reserved())
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// When there are too many epochs, the oldest ended jobs keep their best and their
// last, and say so.
func TestOldHistoriesAreThinned(t *testing.T) {
	s := working(t)
	s = must(t, s, 50, FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Done})
	index := uint64(100)
	do := func(c Command) {
		t.Helper()
		index++
		s = must(t, s, index, c)
	}
	for n := range 7 {
		id := jobID(s.JobsMade + 1)
		do(CreateJob{Key: fmt.Sprintf("%08x", index), Dataset: readyID, Strategy: "single", Recipe: "{}", Epochs: MaxEpochs})
		do(AssignJob{ID: id, Nodes: []string{"a"}})
		generation := s.Generation
		for at := 1; at <= MaxEpochs; at += MaxCommit {
			c := CommitEpochs{ID: id, Node: "a", Generation: generation}
			for e := at; e < min(at+MaxCommit, MaxEpochs+1); e++ {
				c.Epochs = append(c.Epochs, trained(e, 1/float64(1+e*e%997)))
			}
			do(c)
		}
		do(FinishJob{ID: id, Node: "a", Generation: generation, State: Done})
		if s.history() > MaxHistory {
			t.Fatalf("%d epochs after %d long jobs", s.history(), n+1)
		}
	}
	if err := s.check(); err != nil || len(s.Jobs) != 12 {
		t.Errorf("%d jobs, %v", len(s.Jobs), err)
	}
	for _, j := range s.JobsInOrder() {
		long := j.Epochs == MaxEpochs
		if j.Thinned != slices.Contains([]string{"j1", "j6", "j7", "j8"}, j.ID) || j.Thinned && len(j.History) != 2 || long && !j.Thinned && len(j.History) != MaxEpochs {
			t.Errorf("%s has %d epochs, thinned %v", j.ID, len(j.History), j.Thinned)
		}
		if e, in := j.EpochAt(j.Best, 0); len(j.History) > 0 && (!in || e.Eval == nil) || long && j.Last() != MaxEpochs {
			t.Errorf("%s has its best %d and its last %d", j.ID, j.Best, j.Last())
		}
	}
}

// A dataset of the same name and content takes the place of one that was removed.
func TestDatasetComesBack(t *testing.T) {
	s := working(t)
	s = must(t, s, 50, FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Stopped})
	s = must(t, s, 51, StopJob{ID: "j4"})
	s = must(t, s, 52, StopJob{ID: "j5"})
	if on := s.JobsOn(readyID); len(on) != 5 || on[0].ID != "j1" {
		t.Errorf("%+v need the dataset", on)
	}
	s = must(t, s, 53, RemoveDataset{ID: readyID})
	if _, err := tried(t, s, 54, ResumeJob{ID: "j3"}); !errors.Is(err, ErrNoDataset) {
		t.Error(err)
	}
	const again = "00000000000000d9"
	reserved := must(t, s, 55, ReserveDataset{ID: again, Name: "ready", Importer: "a"})
	if _, err := tried(t, reserved, 56, ResumeJob{ID: "j3"}); !errors.Is(err, ErrUndefined) {
		t.Error(err)
	}
	for shards, want := range map[int]error{2: nil, 3: ErrOtherContent} {
		s := must(t, reserved, 56, defined(again, "a", shards))
		s = must(t, s, 57, PlaceShards{ID: again, Nodes: []string{"a"}, Wanted: [][]int{{0}, {0}, {0}}[:shards]})
		s, err := tried(t, s, 58, ResumeJob{ID: "j3", Recipe: `{"lr":1}`})
		if !errors.Is(err, want) {
			t.Errorf("%d shards: %v", shards, err)
		}
		if j := s.Jobs["j3"]; want == nil && (j.Dataset != again || j.Recipe != `{"lr":1}` || len(s.JobsOn(again)) != 5) {
			t.Errorf("%+v", j)
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
	}
}

// tried is must for what may be refused.
func tried(t *testing.T, s *State, index uint64, c Command) (*State, error) {
	t.Helper()
	data, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return Apply(s, index, data)
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
	other := must(t, s, 56, UpdateMember{ID: "b", Speed: 5, Computes: Numbers{2, 2}})
	if begin, waits = NextJobs(other, up("ab")); len(begin) != 1 || !slices.Equal(waits["j4"].Unlike, []string{"b"}) {
		t.Errorf("b computes by another number: %v, waits %+v", begin, waits)
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
		"id":            func(_ *State, j *Job) { j.ID = "j9" },
		"number":        func(s *State, _ *Job) { s.JobsMade = 2 },
		"two of a key":  func(_ *State, j *Job) { j.Key = key(0) },
		"key":           func(_ *State, j *Job) { j.Key = "x" },
		"epochs":        func(_ *State, j *Job) { j.Epochs = 1 },
		"no epochs":     func(_ *State, j *Job) { j.Epochs, j.History, j.Best = 0, nil, 0 },
		"recipe":        func(_ *State, j *Job) { j.Recipe = strings.Repeat("x", MaxRecipe+1) },
		"strategy":      func(_ *State, j *Job) { j.Strategy = "" },
		"state":         func(_ *State, j *Job) { j.State = "lost" },
		"stopping":      func(_ *State, j *Job) { j.State, j.Stopping = Done, true },
		"nobody":        func(_ *State, j *Job) { j.Nodes = nil },
		"a stranger":    func(_ *State, j *Job) { j.Nodes = []string{"x"} },
		"generation":    func(s *State, j *Job) { j.Generation = s.Generation + 1 },
		"no generation": func(_ *State, j *Job) { j.Generation = 0 },
		"two on a node": func(s *State, _ *Job) { o := s.Jobs["j2"]; o.State = Running; s.Jobs["j2"] = o },
		"dataset":       func(s *State, _ *Job) { delete(s.Datasets, readyID) },
		"error":         func(_ *State, j *Job) { j.Error = "a\x1b" },
		"order":         func(_ *State, j *Job) { j.History = []Epoch{trained(2, 1), trained(1, 1)} },
		"weights":       func(_ *State, j *Job) { j.History = []Epoch{{Epoch: 1}}; j.Best = 0 },
		"best":          func(_ *State, j *Job) { j.Best = 7 },
		"diverged":      func(_ *State, j *Job) { j.Diverged = []string{"it has"} },
		"notes":         func(_ *State, j *Job) { j.Notes = make([]string, MaxNotes+1) },
		"content":       func(_ *State, j *Job) { j.Content = "beef" },
		"too many":      func(s *State, j *Job) { j.Epochs = MaxEpochs; crowd(s, *j) },
		"owners":        func(_ *State, j *Job) { j.Owners = []int{0, 0} },
		"two nodes":     func(_ *State, j *Job) { j.Nodes = []string{"a", "b"} },
		"shared":        func(_ *State, j *Job) { j.Strategy = "leap" },
		"owners, wrong": func(_ *State, j *Job) { j.Strategy, j.Owners = "leap", []int{0, 1} },
		"owners, short": func(_ *State, j *Job) { j.Strategy, j.Owners = "leap", []int{0} },
		"owners, ended": func(_ *State, j *Job) { j.Strategy, j.Owners, j.State = "leap", make([]int, MaxShards+1), Done },
		"owners, idle":  func(_ *State, j *Job) { j.Strategy, j.Owners, j.Nodes = "leap", []int{0, 0}, []string{"a", "b"} },
		"holders":       func(_ *State, j *Job) { j.Holders, j.Weights = [][]int{{1}}, []uint64{1} },
		"owners, nobody": func(_ *State, j *Job) {
			*j = Job{ID: j.ID, Number: j.Number, Key: j.Key, Dataset: j.Dataset, DatasetName: j.DatasetName, Strategy: "leap", Epochs: 1, State: Queued, Owners: []int{0}}
		},
		"a model":        func(_ *State, j *Job) { j.History = []Epoch{judged(1, 1, 0.5)}; j.Best = 0 },
		"the best model": func(_ *State, j *Job) { j.BestModel = 1 },
		"bests of one":   func(_ *State, j *Job) { j.Bests = []int{j.Best} },
		"super-epoch":    func(_ *State, j *Job) { j.History = []Epoch{isolated(maxSlots+1, 0)}; j.Best = 0 },
		"edges":          func(_ *State, j *Job) { j.History = []Epoch{isolated(1, 1.5)}; j.Best = 0 },
		"slots":          func(_ *State, j *Job) { j.History = []Epoch{slotted(maxSlots + 1)}; j.Best = 0 },
		"an epoch's own": func(_ *State, j *Job) { j.History = []Epoch{{Epoch: 10, Hash: hash}}; j.Best = 0 },
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

func slotted(n int) Epoch {
	e := trained(1, 0.5)
	e.Slots = n
	return e
}

func isolated(super int, seen float64) Epoch {
	e := trained(1, 0.5)
	e.Super, e.Seen = super, seen
	return e
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
	switch r.IntN(10) {
	case 0:
		return CreateJob{Key: fmt.Sprintf("%08x", r.IntN(20)), Dataset: readyID, Recipe: "{}", Strategy: []string{"single", "leap"}[r.IntN(2)], Epochs: 1 + r.IntN(8), Models: []int{0, 3}[r.IntN(2)]}
	case 1, 2:
		a := AssignJob{ID: j.ID, Nodes: []string{node}}
		if other := string(rune('a' + r.IntN(3))); other != node && r.IntN(2) == 0 {
			a.Nodes = append(a.Nodes, other)
		}
		if j.Shared() {
			a.Owners = []int{0, len(a.Nodes) - 1}
		}
		if j.State == Running {
			a.Generation = j.Generation
			if r.IntN(4) == 0 {
				a.Nodes, a.Owners = nil, nil
			}
		}
		return a
	case 3, 4, 5:
		at := j.Last() + r.IntN(2)
		c := CommitEpochs{ID: j.ID, Node: node, Generation: j.Generation}
		for _, epoch := range []int{max(at, 1), at + 1} {
			for model := range j.Models() {
				if model == 0 || r.IntN(4) > 0 {
					c.Epochs = append(c.Epochs, judged(epoch, model, r.Float64()))
				}
			}
		}
		return c
	case 6:
		end := FinishJob{ID: j.ID, Node: node, Generation: j.Generation, State: []JobState{Done, Failed, Stopped}[r.IntN(3)]}
		if r.IntN(2) == 0 {
			end.Best, end.BestModel, end.Bests = j.Best, j.BestModel, j.Bests
		}
		return end
	case 7:
		return StopJob{ID: j.ID}
	case 8:
		return RemoveJob{ID: j.ID}
	default:
		return ResumeJob{ID: j.ID}
	}
}
