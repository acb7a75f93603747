package plan

import (
	"slices"
	"strings"
	"testing"
)

// A running job whose shards fall to a node that is busy waits for that node.
func TestBusyHeir(t *testing.T) {
	w := newTable(t, 3, 8, 2)
	w.settle()
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c"}, Wanted: threes(0, 1, 2)})
	shared := w.queue("leap")
	w.assign()
	w.runsOn(shared, "ab")
	w.learn(shared)
	single := w.queue("single")
	w.assign()
	if got := w.job(single).Nodes; !slices.Equal(got, []string{"c"}) {
		t.Fatalf("it runs on %v", got)
	}
	w.down("b")
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c"}, Wanted: threes(0, 2, 1), Away: []string{"b"}})
	w.assign()
	if j := w.job(shared); j.State != Queued || j.Last() != 1 || w.wait(shared).Behind != single {
		t.Errorf("%+v waits for %+v", j, w.wait(shared))
	}
	w.end(single, Done)
	w.assign()
	w.runsOn(shared, "ac")
}

// threes gives the first shards to one node and the last to another.
func threes(first, last, third int) [][]int {
	rows := make([][]int, 8)
	for i := range rows {
		rows[i] = []int{first, last, third}
		if i > 3 {
			rows[i] = []int{last, first, third}
		}
	}
	return rows
}

// A job that runs is not given to others where it would begin anew.
func TestNothingIsForgottenForANeighbour(t *testing.T) {
	w := newTable(t, 2, 8, 1)
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b"}, Wanted: rowsOf(0, 1)})
	w.fetch(1)
	id := w.queue("leap")
	w.assign()
	w.learn(id)
	w.apply(SetLeaving{ID: "a"})
	w.set("a", func(n *PlaceNode) { n.Stays = false })
	w.settle()
	if begin := w.assign(); len(begin) > 0 || w.dataset().Owner(0) != "b" {
		t.Errorf("%+v, the shards are %s", begin, w)
	}
	w.remove("a")
	if j := w.job(id); j.State != Stopped || j.Last() != 1 || !strings.Contains(j.Error, "begins it anew") {
		t.Errorf("%+v", j)
	}
}

// allHold is a table of four nodes that hold all shards, which the first own.
func allHold(t *testing.T, owners int) *table {
	w := newTable(t, 4, 8, 3)
	w.settle()
	w.own(owners)
	return w
}

// own gives the shards to so many nodes, the first ones.
func (w *table) own(owners int) {
	var rows [][]int
	for i := range 8 {
		owner := i * owners / 8
		rows = append(rows, append([]int{owner}, without([]int{0, 1, 2, 3}, owner)...))
	}
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c", "d"}, Wanted: rows})
}

// A job that waits for one node more is not outrun by younger ones at the other.
func TestGrowingJobKeepsFreeNodes(t *testing.T) {
	w := allHold(t, 2)
	id := w.queue("leap")
	w.assign()
	w.runsOn(id, "ab")
	first := w.queue("single")
	w.apply(AssignJob{ID: first, Nodes: []string{"c"}})
	w.own(4)
	second := w.queue("single")
	if begin := w.assign(); len(begin) > 0 || w.wait(second).Behind == "" {
		t.Errorf("%+v, %+v", begin, w.wait(second))
	}
	w.end(first, Done)
	w.assign()
	w.runsOn(id, "abcd")
}

// Nor does a job that is begun anew get what an older one waits for.
func TestRenewalStandsInLine(t *testing.T) {
	w := allHold(t, 1)
	older, younger := w.queue("leap"), w.queue("leap")
	w.apply(AssignJob{ID: younger, Nodes: []string{"a"}, Owners: make([]int, 8)})
	w.own(2)
	a, ok := RenewJob(w.state, younger, w.serves)
	if !ok || len(a.Nodes) > 0 {
		t.Fatalf("%+v", a)
	}
	w.apply(a)
	w.assign()
	w.runsOn(older, "ab")
	if got := w.wait(younger).Behind; got != older {
		t.Errorf("it waits behind %q", got)
	}
}

// A dataset that is imported under the id of another has no shards yet.
func TestNobodySharesNothing(t *testing.T) {
	s := sharing(t)
	index := uint64(50)
	for _, c := range []Command{
		StopJob{ID: "j7"},
		FinishJob{ID: "j6", Node: "a", Generation: sharingGeneration, State: Stopped},
		RemoveDataset{ID: sharedID},
		ReserveDataset{ID: sharedID, Name: "shared", Importer: "a"},
		ResumeJob{ID: "j6"},
	} {
		s = must(t, s, index, c)
		index++
	}
	begin, waits := NextJobs(s, func(string) bool { return true })
	if _, in := waits["j6"]; !in || slices.ContainsFunc(begin, func(a AssignJob) bool { return a.ID == "j6" }) {
		t.Errorf("%+v begins, %+v", begin, waits)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}
