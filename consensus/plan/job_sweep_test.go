package plan

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestSweepingIsAsItSays(t *testing.T) {
	s := sweeping(t)
	j := s.Jobs["j8"]
	if j.Models() != 3 || j.Last() != 2 || j.Best != 2 || j.BestModel != 2 || !slices.Equal(j.Bests, []int{2, 1, 2}) || j.Generation != sweepingGeneration {
		t.Errorf("%+v", j)
	}
	if one := j.Of(1); len(one) != 1 || one[0].Epoch != 1 || one[0].Model != 1 {
		t.Errorf("of the second model there is %+v", one)
	}
	if _, in := j.EpochAt(2, 1); in {
		t.Error("the second model has an epoch 2")
	}
	if n := s.Jobs["j7"].Models(); n != 1 {
		t.Errorf("a job without a sweep has %d models", n)
	}
}

func TestWhatIsToldOfASweep(t *testing.T) {
	commit := func(epochs ...Epoch) Command {
		return CommitEpochs{ID: "j8", Node: "b", Generation: sweepingGeneration, Epochs: epochs}
	}
	end := func(best, model int, bests ...int) Command {
		return FinishJob{ID: "j8", Node: "b", Generation: sweepingGeneration, State: Done, Best: best, BestModel: model, Bests: bests}
	}
	unjudged := judged(3, 0, 0.9)
	unjudged.Eval.Val = nil
	never := judged(3, 0, 0.9)
	never.Eval = nil
	for name, c := range map[string]struct {
		told   []Command
		err    error
		epochs int
		best   []int // the epoch, the model, the bests
	}{
		"known already":        {told: []Command{commit(judged(2, 1, 1), judged(1, 0, 1))}, epochs: 5, best: []int{2, 2, 2, 1, 2}},
		"two stopped early":    {told: []Command{commit(judged(3, 2, 0.5)), commit(judged(4, 2, 0.5))}, epochs: 7, best: []int{2, 2, 2, 1, 2}},
		"a better one":         {told: []Command{commit(judged(3, 0, 0.875), judged(3, 2, 0.8))}, epochs: 7, best: []int{3, 0, 3, 1, 3}},
		"as good":              {told: []Command{commit(judged(3, 0, 0.75))}, epochs: 6, best: []int{2, 2, 3, 1, 2}},
		"unjudged":             {told: []Command{commit(unjudged)}, epochs: 6, best: []int{2, 2, 2, 1, 2}},
		"models out of order":  {told: []Command{commit(judged(3, 2, 1), judged(3, 0, 1))}, err: ErrInvalid},
		"a model twice":        {told: []Command{commit(judged(3, 2, 1), judged(3, 2, 1))}, err: ErrInvalid},
		"a fourth model":       {told: []Command{commit(judged(3, 3, 1))}, err: ErrInvalid},
		"a model below 0":      {told: []Command{commit(judged(3, -1, 1))}, err: ErrInvalid},
		"the end":              {told: []Command{end(2, 2, 2, 1, 2)}, epochs: 5, best: []int{2, 2, 2, 1, 2}},
		"an end of its own":    {told: []Command{end(1, 0, 1, 0, 1)}, epochs: 5, best: []int{1, 0, 1, 0, 1}},
		"no word on the best":  {told: []Command{end(0, 0)}, epochs: 5, best: []int{2, 2, 2, 1, 2}},
		"the last, unjudged":   {told: []Command{commit(unjudged), end(3, 0, 3, 1, 2)}, epochs: 6, best: []int{3, 0, 3, 1, 2}},
		"too few bests":        {told: []Command{end(2, 2, 2, 1)}, err: ErrInvalid},
		"no bests":             {told: []Command{end(2, 2)}, err: ErrInvalid},
		"another model's best": {told: []Command{end(2, 2, 2, 1, 1)}, err: ErrInvalid},
		"a best of nobody":     {told: []Command{end(2, 3, 2, 1, 2)}, err: ErrInvalid},
		"a best below 0":       {told: []Command{end(2, -1, 2, 1, 2)}, err: ErrInvalid},
		"a best unheard of":    {told: []Command{end(2, 2, 2, 2, 2)}, err: ErrInvalid},
		"a best not evaluated": {told: []Command{commit(never), end(3, 0, 3, 1, 2)}, err: ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweeping(t)
			var err error
			for i, told := range c.told {
				s, err = tried(t, s, uint64(100+i), told)
			}
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if c.err != nil {
				return
			}
			j := s.Jobs["j8"]
			if got := append([]int{j.Best, j.BestModel}, j.Bests...); len(j.History) != c.epochs || !slices.Equal(got, c.best) {
				t.Errorf("%d epochs, the best %v", len(j.History), got)
			}
			if err := s.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A sweep that begins anew knows nothing, but how many models it has.
func TestSweepBeginsAnew(t *testing.T) {
	s := sweeping(t)
	for i, c := range []Command{
		FinishJob{ID: "j8", Node: "a", Generation: sweepingGeneration, State: Failed},
		RemoveMember{ID: "a", Why: Removed},
		PlaceShards{ID: sharedID, Nodes: []string{"b"}, Wanted: [][]int{{0}, {0}, {0}, {0}}},
		ResumeJob{ID: "j8"},
	} {
		s = must(t, s, uint64(100+i), c)
	}
	j := s.Jobs["j8"]
	j.Keepers = []string{"a"} // b had nothing of it
	s.Jobs["j8"] = j
	s = must(t, s, 110, AssignJob{ID: "j8", Nodes: []string{"b"}, Owners: []int{0, 0, 0, 0}})
	if j := s.Jobs["j8"]; len(j.History) != 0 || j.Best != 0 || j.BestModel != 0 || !slices.Equal(j.Bests, []int{0, 0, 0}) {
		t.Errorf("%+v", j)
	}
	if j := sweeping(t).Jobs["j8"]; !slices.Equal(j.Bests, []int{2, 1, 2}) {
		t.Errorf("%+v", j)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// Whatever models are told of, in batches of any size, the bests are those that anyone
// finds who looks through all of it, and no state is written to.
func TestBestsAreTheBest(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := sweeping(t)
		models := 2 + r.IntN(5)
		index := s.Index + 1
		s = must(t, s, index, FinishJob{ID: "j8", Node: "a", Generation: sweepingGeneration, State: Done})
		index++
		s = must(t, s, index, CreateJob{Key: key(40), Dataset: sharedID, Recipe: "{}", Strategy: "leap", Epochs: 40, Models: models})
		index++
		s = must(t, s, index, AssignJob{ID: "j9", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 1, 1}})
		generation := s.Generation
		trains := map[int]bool{}
		for m := range models {
			trains[m] = true
		}
		var told []Epoch
		c := CommitEpochs{ID: "j9", Node: "a", Generation: generation}
		for epoch := 1; epoch <= 40 && len(trains) > 0; epoch++ {
			for _, m := range slices.Sorted(maps.Keys(trains)) {
				e := judged(epoch, m, float64(r.IntN(20))/20)
				e.Eval.Loss = float64(r.IntN(3))
				if r.IntN(5) == 0 {
					e.Eval = nil
				}
				e.Generation = generation
				c.Epochs = append(c.Epochs, e)
				told = append(told, e)
				if r.IntN(30) == 0 {
					delete(trains, m)
				}
			}
			if r.IntN(3) > 0 && epoch < 40 && len(trains) > 0 {
				continue
			}
			before, digest := s, s.Digest()
			index++
			s = must(t, s, index, c)
			if before.Digest() != digest {
				t.Fatal("an earlier state was written to")
			}
			c.Epochs = c.Epochs[r.IntN(2)*len(c.Epochs):] // some are told again
			if r.IntN(2) == 0 {
				c.Epochs = nil
			}
			checkBests(t, s.Jobs["j9"], told)
		}
		b, err := MarshalSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := UnmarshalSnapshot(b); err != nil || back.Digest() != s.Digest() {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func checkBests(t *testing.T, j Job, told []Epoch) {
	t.Helper()
	if !reflect.DeepEqual(j.History, told) || j.Last() != told[len(told)-1].Epoch {
		t.Fatalf("%d epochs are known of %d, the last %d", len(j.History), len(told), j.Last())
	}
	bests := make([]Epoch, j.Models())
	for m := range bests {
		for _, e := range j.Of(m) {
			if e.Better(bests[m]) {
				bests[m] = e
			}
		}
		if j.Bests[m] != bests[m].Epoch {
			t.Fatalf("the best epoch of model %d is %d, not %d", m, bests[m].Epoch, j.Bests[m])
		}
	}
	for _, e := range bests {
		if e.Better(bests[j.BestModel]) {
			t.Fatalf("model %d is better than %d", e.Model, j.BestModel)
		}
	}
	if j.Best != bests[j.BestModel].Epoch {
		t.Fatalf("the best is epoch %d", j.Best)
	}
}
