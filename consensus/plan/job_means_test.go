package plan

import (
	"reflect"
	"testing"
)

// A job knows who of its nodes holds copies and how much each can do, as it was when they
// were given the job: what changes afterwards is for the next assignment.
func TestAJobKnowsWhoHoldsCopies(t *testing.T) {
	w := allHold(t, 3)
	for id, speed := range map[string]uint64{"a": OrdinarySpeed, "b": 1, "c": OrdinarySpeed} {
		w.apply(UpdateMember{ID: id, Speed: speed})
	}
	id := w.queue("leap")
	w.assign()
	j := w.job(id)
	if len(j.Nodes) != 3 || len(j.Holders) != len(j.Owners) {
		t.Fatalf("it runs on %v, with holders %v", j.Nodes, j.Holders)
	}
	d := w.dataset()
	copies := 0
	for i, holders := range j.Holders {
		for n, node := range j.Nodes {
			listed := false
			for _, h := range holders {
				listed = listed || h == n
			}
			if want := n != j.Owners[i] && d.Holds(node, i); listed != want {
				t.Errorf("shard %d of %v: holders are %v", i, d.HoldersOf(i), holders)
			}
			if listed {
				copies++
			}
		}
	}
	if copies == 0 {
		t.Error("nobody holds a copy: nothing is shown")
	}
	for n, node := range j.Nodes {
		want := uint64(OrdinarySpeed)
		if node == "b" {
			want = 1
		}
		if j.Weights[n] != want {
			t.Errorf("%s weighs %d, want %d", node, j.Weights[n], want)
		}
	}
	w.apply(UpdateMember{ID: "b", Speed: 4000})
	if now := w.job(id); !reflect.DeepEqual(now, j) {
		t.Errorf("it was %+v and is %+v", j, now)
	}
	b, err := MarshalSnapshot(w.state)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := UnmarshalSnapshot(b); err != nil || !reflect.DeepEqual(back.Jobs[id], j) {
		t.Errorf("read again it is %+v, %v", back.Jobs[id], err)
	}
	w.end(id, Done)
	if j := w.job(id); j.Holders != nil || j.Weights != nil {
		t.Errorf("done, it still has holders %v and weights %v", j.Holders, j.Weights)
	}
}

func TestMeansThatCantBe(t *testing.T) {
	good := Job{State: Running, Nodes: []string{"a", "b"}, Owners: []int{0, 1}, Holders: [][]int{{1}, {}}, Weights: []uint64{1, 2}}
	if err := good.checkMeans(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(j *Job){
		"done":           func(j *Job) { j.State = Done },
		"too few":        func(j *Job) { j.Holders = j.Holders[:1] },
		"none":           func(j *Job) { j.Holders = nil },
		"no weights":     func(j *Job) { j.Weights = nil },
		"a weight of 0":  func(j *Job) { j.Weights = []uint64{0, 1} },
		"the owner":      func(j *Job) { j.Holders = [][]int{{0}, {}} },
		"no such node":   func(j *Job) { j.Holders = [][]int{{2}, {}} },
		"below all":      func(j *Job) { j.Holders = [][]int{{-1}, {}} },
		"one node twice": func(j *Job) { j.Holders = [][]int{{1, 1}, {}} },
	} {
		j := good
		if spoil(&j); j.checkMeans() == nil {
			t.Errorf("%s: %+v is taken", name, j)
		}
	}
}
