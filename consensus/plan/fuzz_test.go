package plan

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan/access"
	"github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/epoch"
)

// populated is a mesh of a and b, with a dataset of four shards on its way from a to
// b, and another that b imports.
func populated(t testing.TB) *State {
	s := founded(t)
	for i, c := range []Command{
		AddMember{Member: Member{ID: "b", Name: "b", PublicKey: "kb"}},
		ReserveDataset{ID: datasetID, Name: "graph", Importer: "a", Replicas: 1},
		defined(datasetID, "a", 4),
		PlaceShards{ID: datasetID, Nodes: []string{"a", "b"}, Wanted: [][]int{{0, 1}, {0, 1}, {1, 0}, {1}}},
		HoldShards{ID: datasetID, Node: "b", Shards: []int{0, 3}},
		ReserveDataset{ID: "00000000000000d6", Name: "other", Importer: "b"},
	} {
		s = must(t, s, uint64(i)+2, c)
	}
	return s
}

const readyID = "00000000000000d8"

// working is populated with a dataset that is ready on a, and five jobs on it: one
// that is done, one that runs with two epochs known, one that was stopped after an
// epoch, and two that wait.
func working(t testing.TB) *State {
	s := populated(t)
	index := s.Index
	do := func(c Command) {
		index++
		s = must(t, s, index, c)
	}
	do(ReserveDataset{ID: readyID, Name: "ready", Importer: "a"})
	do(defined(readyID, "a", 2))
	do(PlaceShards{ID: readyID, Nodes: []string{"a"}, Wanted: [][]int{{0}, {0}}})
	for i := range 5 {
		do(CreateJob{Key: key(i), Dataset: readyID, Recipe: `{"epochs":9}`, Strategy: "single", Why: "one node", Seed: 7, Epochs: 9})
	}
	for i, epochs := range []int{3, 1, 2} {
		id := jobID(uint64(i) + 1)
		do(AssignJob{ID: id, Nodes: []string{"a"}})
		c := CommitEpochs{ID: id, Node: "a", Generation: s.Generation}
		for e := range epochs {
			c.Epochs = append(c.Epochs, trained(e+1, 0.5))
		}
		do(c)
		switch i {
		case 0:
			do(FinishJob{ID: id, Node: "a", Generation: s.Generation, State: Done, Best: 2})
		case 1:
			do(FinishJob{ID: id, Node: "a", Generation: s.Generation, State: Stopped})
		}
	}
	return s
}

const sharedID = "00000000000000d9"

// sharing is working with a dataset that a and b own two shards each of, and jobs on
// it: one that both run, and one that waits. j3 was stopped for that.
func sharing(t testing.TB) *State {
	s := working(t)
	index := s.Index
	for _, c := range []Command{
		FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Stopped},
		ReserveDataset{ID: sharedID, Name: "shared", Importer: "a", Replicas: 1},
		defined(sharedID, "a", 4),
		PlaceShards{ID: sharedID, Nodes: []string{"a", "b"}, Wanted: [][]int{{0, 1}, {0, 1}, {1, 0}, {1, 0}}},
		HoldShards{ID: sharedID, Node: "b", Shards: []int{0, 1, 2, 3}},
		CreateJob{Key: key(5), Dataset: sharedID, Recipe: "{}", Strategy: "leap", Epochs: 9},
		CreateJob{Key: key(6), Dataset: sharedID, Recipe: "{}", Strategy: "auto", Epochs: 9},
		AssignJob{ID: "j6", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 1, 1}, Scheduled: true},
		CommitEpochs{ID: "j6", Node: "b", Generation: sharingGeneration, Epochs: []Epoch{trained(1, 0.5)}},
	} {
		index++
		s = must(t, s, index, c)
	}
	return s
}

// sharingGeneration is that of the job that runs in sharing.
const sharingGeneration = 31

// sweeping is sharing with a sweep of three models in the place of the job that a and b
// both ran: the second has stopped after one epoch, the third is the best.
func sweeping(t testing.TB) *State {
	s := sharing(t)
	index := s.Index
	for _, c := range []Command{
		FinishJob{ID: "j6", Node: "a", Generation: sharingGeneration, State: Stopped},
		CreateJob{Key: key(7), Dataset: sharedID, Recipe: "{}", Strategy: "leap", Epochs: 9, Models: 3},
		AssignJob{ID: "j8", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 1, 1}},
		CommitEpochs{ID: "j8", Node: "a", Generation: sweepingGeneration, Epochs: []Epoch{
			judged(1, 0, 0.25), judged(1, 1, 0.5), judged(1, 2, 0.5), judged(2, 0, 0.5), judged(2, 2, 0.75),
		}},
	} {
		index++
		s = must(t, s, index, c)
	}
	return s
}

// sweepingGeneration is that of the job that runs in sweeping.
const sweepingGeneration = 35

// judged is trained, of one model of a sweep.
func judged(epoch, model int, score float64) Epoch {
	e := trained(epoch, score)
	e.Model = model
	return e
}

func key(i int) string { return fmt.Sprintf("%08x", i+1) }

// trained is what is reported of an epoch.
func trained(n int, score float64) Epoch {
	return Epoch{
		Epoch: n, Loss: 1.5, Seconds: 0.25, Phases: epoch.Phases{Compute: 0.125}, Rows: epoch.Rows{Local: 40},
		Eval: &epoch.Eval{Seconds: 0.5, Train: new(1.0), Val: new(score), Test: new(0.5), Score: score, Loss: 1}, Hash: hash,
	}
}

// seeds are commands of each kind of each kind, as the log has them.
func seeds(f *testing.F) [][]byte {
	now := time.Unix(1000, 0).UTC()
	var list [][]byte
	for _, c := range []Command{
		Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "k"}, KeyDigest: "d"},
		AddMember{Member: Member{ID: "b", Name: "b", PublicKey: "k", Memory: 5}},
		UpdateMember{ID: "a", Device: "cuda:0", Version: "2"},
		SetLeaving{ID: "a"},
		RemoveMember{ID: "b", Why: Revoked},
		CreateToken{Token: NewToken("0123456789abcdef", now, time.Hour), Now: now},
		RevokeToken{ID: "0123456789ab"},
		RotateKey{Serial: 2, Digest: "d2", AsOf: 1},
		RetireKey{Serial: 1},
		Advance{Generation: 9},
		ReserveDataset{ID: "00000000000000d7", Name: "third", Importer: "b", Replicas: 1},
		RemoveDataset{ID: datasetID},
		RemoveDataset{ID: "00000000000000d6"},
		defined("00000000000000d6", "b", 2),
		PlaceShards{ID: datasetID, Nodes: []string{"b", "a"}, Wanted: [][]int{{0}, {0, 1}, {1}, {1, 0}}, Away: []string{"b"}},
		HoldShards{ID: datasetID, Node: "b", Shards: []int{0, 2}},
		LoseShards{ID: datasetID, Node: "a", Shards: []int{3, 0}},
		CreateJob{Key: key(9), Dataset: readyID, Recipe: "{}", Strategy: "single", Epochs: 100},
		AssignJob{ID: "j4", Nodes: []string{"b"}},
		CommitEpochs{ID: "j3", Node: "a", Generation: workingGeneration, Epochs: []Epoch{trained(2, 0.1), trained(3, 0.75), trained(9, 0.5)}},
		FinishJob{ID: "j3", Node: "a", Generation: workingGeneration, State: Failed, Error: "the loss is not a number"},
		AssignJob{ID: "j6", Nodes: []string{"b"}, Owners: []int{0, 0, 0, 0}, Generation: sharingGeneration},
		AssignJob{ID: "j6", Generation: sharingGeneration},
		AssignJob{ID: "j7", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 1, 1}},
		CommitEpochs{ID: "j6", Node: "a", Generation: sharingGeneration, Epochs: []Epoch{{Epoch: 2, Hash: hash, Strategy: "leap", Why: "it sends less", Slots: 2}}},
		FinishJob{ID: "j6", Node: "b", Generation: sharingGeneration, State: Done},
		StopJob{ID: "j6"},
		RemoveMember{ID: "a", Why: Left},
		StopJob{ID: "j3"},
		ResumeJob{ID: "j2", Recipe: "{}"},
		RemoveJob{ID: "j1"},
		CreateJob{Key: key(10), Dataset: sharedID, Recipe: "{}", Strategy: "auto", Epochs: 100, Models: 3},
		CommitEpochs{ID: "j8", Node: "a", Generation: sweepingGeneration, Epochs: []Epoch{judged(3, 0, 0.5), judged(3, 2, 0.875), judged(4, 2, 0.25)}},
		FinishJob{ID: "j8", Node: "a", Generation: sweepingGeneration, State: Done, Best: 2, BestModel: 2, Bests: []int{2, 1, 2}, Diverged: []string{"", "it did", ""}},
		AssignJob{ID: "j8", Nodes: []string{"b"}, Owners: []int{0, 0, 0, 0}, Generation: sweepingGeneration},
		RemoveDataset{ID: readyID},
		CreateToken{Token: Token{ID: "fedcba987654", Hash: "fedcba9876543210", Owner: "a", Uses: 1, Seen: []string{"b"}}, Now: now},
		Admit{Member: Member{ID: "c", Name: "c", PublicKey: "k", Knows: Newest}, Token: "fedcba987654", Now: now, Seen: []string{"b", "a"}},
		RemoveMember{ID: "b", Why: Revoked, Tokens: true},
		UpdateMember{ID: "a", Knows: Newest},
		NameAuthority{Serial: 1, Cert: []byte("a certificate"), Link: []byte("a link"), Now: now},
		RetireAuthority{Serial: 1},
		SetComputing{ID: "j2", From: 1, To: 2},
		GrantAccess{Token: access.New(hash, access.Operate, "ci", time.Unix(1000, 0), time.Hour), Now: time.Unix(1000, 0)},
		RevokeAccess{ID: access.ID(hash)},
		AssignJob{ID: "j7", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 1, 1}, Scheduled: true, Begins: &schedule.Entry{Strategy: "leap", Part: []byte("{}"), Rate: 0.5}},
		ScheduleJob{ID: "j6", Node: "a", Generation: sharingGeneration, Entry: schedule.Entry{From: 4, Strategy: "leap", Part: []byte("2"), Rate: 0.5, Why: "it is faster"}},
	} {
		data, err := Encode(c)
		if err != nil {
			f.Fatal(err)
		}
		list = append(list, data)
	}
	return append(list, nil, []byte{1, 1, 200}, []byte{2, 0, 1, '{', '}'})
}

// FuzzDecode: whatever is read can be written and read again to the same effect.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Add([]byte("\x01\x01\x1d{\"id\":\"0123456789ab\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			if c != nil {
				t.Fatalf("%v and %v", c, err)
			}
			return
		}
		again, err := Encode(c)
		if err != nil {
			if errors.Is(err, ErrOversized) {
				return // escapes can make it longer
			}
			t.Fatalf("%+v was read, but: %v", c, err)
		}
		again[atFlags] = data[atFlags] // a writer's choice, which commands do not hold
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("%+v was written, but: %v", c, err)
		}
		for _, s := range []*State{working(t), sharing(t), sweeping(t)} {
			a, errA := Apply(s, 100, data)
			b, errB := Apply(s, 100, again)
			if a.Digest() != b.Digest() || (errA == nil) != (errB == nil) {
				t.Fatalf("%+v leads to %v (%v), %+v to %v (%v)", c, a, errA, back, b, errB)
			}
		}
	})
}

// FuzzApply: two commands in a row leave a state that a snapshot keeps.
func FuzzApply(f *testing.F) {
	all := seeds(f)
	for i, s := range all {
		f.Add(s, all[(i+1)%len(all)])
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		for _, s := range []*State{working(t), sharing(t), sweeping(t)} {
			applyBoth(t, s, one, two)
		}
	})
}

// refusedAs returns a state with the Needs of the one before: a refusal changes nothing else.
func refusedAs(before, after *State) *State {
	same := *after
	same.Needs = before.Needs
	return &same
}

func applyBoth(t *testing.T, s *State, one, two []byte) {
	for i, data := range [][]byte{one, two} {
		before := s.Digest()
		next, err := Apply(s, uint64(i)+100, data)
		if s.Digest() != before {
			t.Fatal("Apply changed the state it was given")
		}
		if err != nil && refusedAs(s, next).Digest() != before {
			t.Fatalf("refused with %v, but changed", err)
		}
		if next.Generation < s.Generation || len(next.Members) == 0 {
			t.Fatalf("%+v after %+v", next, s)
		}
		s = next
	}
	b, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := UnmarshalSnapshot(b)
	if err != nil || back.Digest() != s.Digest() {
		t.Fatalf("%+v reads as %+v (%v)", s, back, err)
	}
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	for _, s := range []*State{founded(f), populated(f), working(f), sharing(f), sweeping(f)} {
		b, err := MarshalSnapshot(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(snapshotVersion + " 00\n{}"))
	f.Add([]byte(snapshotMagic + "9 x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := UnmarshalSnapshot(b)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v and %v", s, err)
		}
		if err == nil {
			s.Digest()
			for _, d := range s.Datasets {
				d.Lacks(func(string) bool { return true })
				Place(d, []PlaceNode{{ID: "a", Serving: true, Stays: true}})
			}
			for _, serving := range []func(string) bool{func(string) bool { return true }, func(id string) bool { return id != "a" }} {
				NextJobs(s, serving)
				for id := range s.Jobs {
					RenewJob(s, id, serving)
				}
			}
		}
	})
}
