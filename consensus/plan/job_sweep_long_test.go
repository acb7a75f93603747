//go:build long

package plan

import (
	"errors"
	"fmt"
	"testing"
)

// A sweep takes the room of all its models, and gives back all but the best and the last
// of each.
func TestRoomForSweeps(t *testing.T) {
	s := working(t)
	s = must(t, s, 50, FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Done})
	index := uint64(100)
	do := func(c Command) {
		t.Helper()
		index++
		s = must(t, s, index, c)
	}
	for models, want := range map[int]error{1: ErrInvalid, -2: ErrInvalid, MaxModels + 1: ErrInvalid, MaxModels: ErrEpochsFull} {
		if _, err := tried(t, s, 90, CreateJob{Key: key(30), Dataset: readyID, Strategy: "single", Recipe: "{}", Epochs: MaxHistory/MaxModels + 1, Models: models}); !errors.Is(err, want) {
			t.Errorf("%d models: %v", models, err)
		}
	}
	const epochs = 600
	for range 3 {
		id := jobID(s.JobsMade + 1)
		do(CreateJob{Key: fmt.Sprintf("%08x", index), Dataset: readyID, Strategy: "single", Recipe: "{}", Epochs: epochs, Models: MaxModels})
		do(AssignJob{ID: id, Nodes: []string{"a"}})
		c := CommitEpochs{ID: id, Node: "a", Generation: s.Generation}
		for e := 1; e <= epochs; e++ {
			for m := range MaxModels {
				if e <= epochs-m { // the later models stop earlier
					c.Epochs = append(c.Epochs, judged(e, m, 1/float64(1+e*e%97+m)))
				}
			}
			if e == epochs || len(c.Epochs)+MaxModels > MaxCommit {
				do(c)
				c.Epochs = nil
			}
		}
		do(FinishJob{ID: id, Node: "a", Generation: c.Generation, State: Done})
		if s.history() > MaxHistory {
			t.Fatalf("there are %d epochs", s.history())
		}
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
	for id, thinned := range map[string]bool{"j6": true, "j7": true, "j8": false} {
		j := s.Jobs[id]
		if j.Thinned != thinned || thinned && len(j.History) > 2*MaxModels || j.Last() != epochs {
			t.Errorf("%s has %d epochs, the last %d, thinned %v", id, len(j.History), j.Last(), j.Thinned)
		}
		for m := range MaxModels {
			of := j.Of(m)
			if _, in := j.EpochAt(j.Bests[m], m); !in || of[len(of)-1].Epoch != epochs-m {
				t.Errorf("%s: of model %d there is no best, or not the last of %d", id, m, len(of))
			}
		}
	}
}
