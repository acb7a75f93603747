package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// queue puts a job on the table's dataset into the queue.
func (w *table) queue(strategy string) string {
	w.t.Helper()
	w.apply(CreateJob{Key: key(int(w.state.JobsMade)), Dataset: datasetID, Recipe: "{}", Strategy: strategy, Epochs: 50})
	return jobID(w.state.JobsMade)
}

// round is one of the leader's: shards are placed, then jobs are given out.
func (w *table) round() []AssignJob {
	w.t.Helper()
	w.place()
	return w.assign()
}

// assign carries out what NextJobs says, once.
func (w *table) assign() []AssignJob {
	w.t.Helper()
	begin, _ := NextJobs(w.state, w.serves)
	for _, c := range begin {
		w.apply(c)
	}
	return begin
}

func (w *table) wait(id string) Wait {
	_, waits := NextJobs(w.state, w.serves)
	return waits[id]
}

// job is one that is there.
func (w *table) job(id string) Job {
	w.t.Helper()
	j, err := w.state.job(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// learn reports one more epoch, and end that the job has ended.
func (w *table) learn(id string) {
	w.t.Helper()
	j := w.job(id)
	w.apply(CommitEpochs{ID: id, Node: j.Nodes[0], Generation: j.Generation, Epochs: []Epoch{trained(j.Last()+1, 0.5)}})
}

func (w *table) end(id string, as JobState) {
	w.t.Helper()
	j := w.job(id)
	w.apply(FinishJob{ID: id, Node: j.Nodes[0], Generation: j.Generation, State: as})
}

// runsOn wants a job to run on these nodes, in this order, by the owners of shards.
func (w *table) runsOn(id, nodes string) {
	w.t.Helper()
	j := w.job(id)
	if j.State != Running || strings.Join(j.Nodes, "") != nodes {
		w.t.Fatalf("%s is %s on %v, not running on %s", id, j.State, j.Nodes, nodes)
	}
	for i, n := range j.Owners {
		if owner := w.dataset().Owner(i); owner != j.Nodes[n] {
			w.t.Fatalf("%s: shard %d is %s's, and %s is to compute it", id, i, owner, j.Nodes[n])
		}
	}
}

func TestSharedJobGoesToTheOwners(t *testing.T) {
	w := newTable(t, 3, 8, 1)
	// All shards are a's until others have fetched theirs: a job that may be shared runs
	// on one node, too.
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a"}, Wanted: rowsOf(0)})
	id := w.queue("leap")
	w.assign()
	w.runsOn(id, "a")
	w.end(id, Stopped)
	w.settle()
	w.apply(ResumeJob{ID: id})
	w.assign()
	w.runsOn(id, "abc")
	if again := w.assign(); len(again) != 0 {
		t.Errorf("nothing has changed, and %+v begins", again)
	}
}

// rowsOf wants all eight shards on these nodes, the owner first.
func rowsOf(nodes ...int) [][]int {
	rows := make([][]int, 8)
	for i := range rows {
		rows[i] = nodes
	}
	return rows
}

// ready is a table with a shared job that has run for an epoch.
func ready(t *testing.T, nodes, replicas int) (w *table, id string) {
	w = newTable(t, nodes, 8, replicas)
	w.settle()
	id = w.queue("leap")
	w.assign()
	w.learn(id)
	return w, id
}

func TestDeathReplacesTheNodes(t *testing.T) {
	w, id := ready(t, 3, 1)
	before := w.job(id)
	w.down("b")
	if begin := w.assign(); len(begin) != 0 {
		t.Errorf("before others own b's shards: %+v", begin)
	}
	if a, ok := RenewJob(w.state, id, w.serves); ok {
		t.Errorf("b's shards are nobody's who serves, and %+v begins", a)
	}
	w.round()
	w.runsOn(id, "ac")
	j := w.job(id)
	if j.Generation <= before.Generation || j.Last() != 1 {
		t.Errorf("%+v", j)
	}
	w.settle()
	w.assign()
	if w.job(id).Generation != j.Generation {
		t.Error("copies move, and the job begins anew")
	}
	// b comes back, and gets work when it has its shards again.
	w.up("b")
	if begin := w.round(); !w.dataset().settled() && len(begin) > 0 {
		t.Errorf("while shards move: %+v", begin)
	}
	w.settle()
	w.assign()
	w.runsOn(id, "acb")
}

func TestJoiningNodeGetsWork(t *testing.T) {
	w, id := ready(t, 2, 1)
	w.join("c", 1)
	w.place()
	if begin := w.assign(); len(begin) > 0 {
		t.Errorf("before c has its shards: %+v", begin)
	}
	w.settle()
	w.down("c")
	if begin := w.assign(); len(begin) > 0 {
		t.Errorf("c has gone again: %+v", begin)
	}
	w.up("c")
	// c runs something else: the job goes on, and nobody else gets c after that.
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c"}, Wanted: everywhere(w)})
	w.fetch(1)
	running := w.queue("single")
	w.apply(AssignJob{ID: running, Nodes: []string{"c"}})
	waiting := w.queue("single")
	if begin := w.assign(); len(begin) > 0 || w.wait(waiting).Behind == "" {
		t.Errorf("%+v begins, %+v", begin, w.wait(waiting))
	}
	w.end(running, Done)
	w.assign()
	w.runsOn(id, strings.Join(crewOf(w.dataset(), w.serves).nodes, ""))
	if !slices.Contains(w.job(id).Nodes, "c") || w.job(waiting).State != Queued || w.job(id).Last() != 1 {
		t.Errorf("%+v, and %+v", w.job(id), w.job(waiting))
	}
}

// everywhere wants copies on all of a, b and c, of owners as they are.
func everywhere(w *table) [][]int {
	var rows [][]int
	for i := range w.dataset().Shards {
		owner := strings.Index("abc", w.dataset().Owner(i))
		rows = append(rows, []int{owner, (owner + 1) % 3, (owner + 2) % 3})
	}
	return rows
}

func TestWithoutCopiesAJobWaits(t *testing.T) {
	w, id := ready(t, 3, 0)
	w.down("b")
	if begin := w.round(); len(begin) != 1 || len(begin[0].Nodes) != 0 {
		t.Fatalf("%+v", begin)
	}
	j := w.job(id)
	if j.State != Queued || j.Last() != 1 || len(j.Nodes) != 3 {
		t.Errorf("%+v", j)
	}
	want := Wait{Owners: []string{"a", "c"}, Unserved: []int{3, 4, 5}, Last: []string{"b"}}
	if got := w.wait(id); !reflect.DeepEqual(got, want) {
		t.Errorf("waits for %+v, not %+v", got, want)
	}
	// Who can never begin keeps nobody from working.
	w.apply(AddMember{Member: Member{ID: "x", Name: "x", PublicKey: "kx"}})
	w.apply(ReserveDataset{ID: readyID, Name: "ready", Importer: "a"})
	w.apply(defined(readyID, "a", 2))
	w.apply(PlaceShards{ID: readyID, Nodes: []string{"a"}, Wanted: [][]int{{0}, {0}}})
	w.apply(CreateJob{Key: key(77), Dataset: readyID, Recipe: "{}", Strategy: "leap", Epochs: 5})
	if begin := w.assign(); len(begin) != 1 || !slices.Equal(begin[0].Nodes, []string{"a"}) {
		t.Errorf("%+v", begin)
	}
	other := jobID(w.state.JobsMade)
	w.up("b")
	if begin := w.assign(); len(begin) != 0 || w.wait(id).Behind != other || !slices.Equal(w.wait(id).Busy, []string{"a"}) {
		t.Errorf("%+v, %+v", begin, w.wait(id))
	}
	w.end(other, Failed)
	w.assign()
	w.runsOn(id, "abc")
	// A wish to stop needs no node that is away.
	w.apply(StopJob{ID: id})
	if begin := w.assign(); len(begin) != 0 {
		t.Errorf("it is about to stop, and %+v", begin)
	}
	w.down("c")
	w.assign()
	if j := w.job(id); j.State != Stopped || j.Stopping {
		t.Errorf("%+v", j)
	}
}

func TestYoungerJobsDontTakeNodes(t *testing.T) {
	w := newTable(t, 3, 8, 2)
	w.settle()
	first, shared := w.queue("single"), w.queue("leap")
	second, third := w.queue("single"), w.queue("p3")
	if begin := w.assign(); len(begin) != 1 || begin[0].ID != first {
		t.Fatalf("%+v", begin)
	}
	busy := w.job(first).Nodes
	want := Wait{Owners: []string{"a", "b", "c"}, Busy: busy, Behind: first}
	if got := w.wait(shared); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	if got := w.wait(second); got.Behind != shared && got.Behind != first {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{third, w.queue("leap")} {
		if got := w.wait(id); len(got.Busy) != 3 || got.Behind != shared && got.Behind != first {
			t.Errorf("%+v", got)
		}
	}
	w.end(first, Done)
	w.assign()
	w.runsOn(shared, "abc")
	w.end(shared, Done)
	if begin := w.assign(); len(begin) != 1 || begin[0].ID != second {
		t.Errorf("%+v", begin)
	}
}

// While an owner leaves, its shards are on their way to others; if all leave, nobody
// waits for that.
func TestLeavingOwners(t *testing.T) {
	w := newTable(t, 2, 8, 1)
	w.settle()
	id := w.queue("leap")
	w.apply(SetLeaving{ID: "b"})
	want := Wait{Owners: []string{"a", "b"}, Silent: []string{"b"}, Leaving: []string{"b"}}
	if got := w.wait(id); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	w.down("a")
	w.place()
	w.assign()
	w.runsOn(id, "b")
}

// Those who leave take nothing along: who stays goes on, and knows what was learnt.
func TestLeavingWhileAJobRuns(t *testing.T) {
	w, id := ready(t, 3, 1)
	w.apply(SetLeaving{ID: "c"})
	w.set("c", func(n *PlaceNode) { n.Stays = false })
	w.settle()
	w.assign()
	w.runsOn(id, "ab")
	w.remove("c")
	if j := w.job(id); j.State != Running || j.Last() != 1 {
		t.Errorf("%+v", j)
	}
	// It may go before the leader has seen that nobody needs it any more.
	w.remove("b")
	if j := w.job(id); j.State != Queued || j.Last() != 1 {
		t.Errorf("%+v", j)
	}
	w.round()
	w.runsOn(id, "a")
	if j := w.job(id); j.Last() != 1 {
		t.Errorf("%+v", j)
	}
}

// A job does not begin anew as long as a node that knows it may come back.
func TestWhatWasLearntIsWaitedFor(t *testing.T) {
	w := newTable(t, 2, 8, 1)
	w.apply(PlaceShards{ID: datasetID, Nodes: []string{"a", "b"}, Wanted: rowsOf(0, 1)})
	w.fetch(1)
	id := w.queue("leap")
	w.assign()
	w.runsOn(id, "a")
	fresh := w.state
	w.learn(id)
	w.down("a")
	w.round()
	if j := w.job(id); j.State != Queued || w.wait(id).Keeper != "a" || w.dataset().Owner(0) != "b" {
		t.Fatalf("%+v waits for %+v", j, w.wait(id))
	}
	waiting := w.state
	other := w.queue("centric")
	w.assign()
	w.runsOn(other, "b") // nobody knows when a comes back
	w.end(other, Done)
	// a comes back without its files, and fetches them.
	w.up("a")
	w.disk["a"] = map[int]bool{}
	w.apply(LoseShards{ID: datasetID, Node: "a", Shards: []int{0, 1, 2, 3, 4, 5, 6, 7}})
	if begin := w.round(); len(begin) > 0 || w.wait(id).Keeper != "a" {
		t.Errorf("%+v, waits for %+v", begin, w.wait(id))
	}
	w.settle()
	w.assign()
	if j := w.job(id); j.State != Running || j.Last() != 1 {
		t.Errorf("%+v", j)
	}
	// What has learnt nothing yet begins at once, wherever it can.
	w.state = fresh
	w.down("a")
	w.round()
	w.runsOn(id, "b")
	// Nor is anybody waited for who is no member any more.
	w.state = waiting
	w.remove("a")
	w.round()
	w.runsOn(id, "b")
	if j := w.job(id); j.Last() != 0 {
		t.Errorf("%+v", j)
	}
}

// Of many nodes only the first keep what is learnt: the others alone can't go on with
// it, and wait. Those that join have nothing before the next epoch.
func TestWhoKeepsWhatWasLearnt(t *testing.T) {
	w := newTable(t, 5, 8, 3)
	w.settle()
	id := w.queue("leap")
	w.assign()
	w.runsOn(id, "abcde")
	fresh := w.state
	w.learn(id)
	if j := w.job(id); !slices.Equal(j.Keepers, []string{"a", "b", "c"}) {
		t.Fatalf("kept by %v", j.Keepers)
	}
	known := w.state
	// One of them is enough.
	w.down("a")
	w.down("b")
	w.round()
	if j := w.job(id); j.State != Running || !slices.Contains(j.Nodes, "c") || j.Last() != 1 || !slices.Equal(j.Keepers, []string{"a", "b", "c"}) {
		t.Fatalf("%+v", j)
	}
	w.learn(id)
	if j := w.job(id); !slices.Equal(j.Keepers, j.Nodes) || len(j.Nodes) != 3 {
		t.Fatalf("%v run it, and it is kept by %v", j.Nodes, j.Keepers)
	}
	// Without any it waits.
	w.state = known
	w.down("a")
	w.down("b")
	w.down("c")
	w.round()
	w.round()
	if j := w.job(id); j.State != Queued || w.wait(id).Keeper == "" || j.Last() != 1 {
		t.Fatalf("%+v waits for %+v", j, w.wait(id))
	}
	waiting := w.state
	w.up("b")
	w.settle()
	w.assign()
	if j := w.job(id); j.State != Running || j.Last() != 1 || !slices.Contains(j.Nodes, "b") {
		t.Errorf("%+v", j)
	}
	// When they are no members any more, it begins anew, and so do its keepers.
	w.state = waiting
	for _, n := range []string{"a", "b", "c"} {
		w.remove(n)
	}
	w.settle()
	w.assign()
	if j := w.job(id); j.State != Running || j.Last() != 0 || len(j.Keepers) != 0 {
		t.Errorf("%+v", j)
	}
	// Of what has learnt nothing nobody has more than others.
	w.state = fresh
	if j := w.job(id); len(j.Keepers) != 0 || !j.knownTo([]string{"e"}) {
		t.Errorf("%+v", j)
	}
}

func TestKeepersAreChecked(t *testing.T) {
	w, id := ready(t, 5, 3)
	w.learn(id)
	if err := w.state.checkJobs(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Job){
		"too many": func(j *Job) { j.Keepers = j.Nodes },
		"no epoch": func(j *Job) { j.History = nil },
	} {
		j := w.job(id)
		change(&j)
		w.state.Jobs[id] = j
		if err := w.state.checkJobs(); err == nil {
			t.Errorf("%s: %v of %d epochs", name, j.Keepers, len(j.History))
		}
	}
}

func TestRenewal(t *testing.T) {
	w, id := ready(t, 3, 1)
	renew := func(id string) (AssignJob, bool) {
		t.Helper()
		a, ok := RenewJob(w.state, id, w.serves)
		if ok {
			w.apply(a)
		}
		return a, ok
	}
	before := w.job(id)
	if _, ok := renew(id); !ok || w.job(id).Generation <= before.Generation || w.job(id).Last() != 1 {
		t.Errorf("%+v", w.job(id))
	}
	w.runsOn(id, "abc")
	if begin := w.assign(); len(begin) > 0 {
		t.Errorf("%+v", begin)
	}
	w.down("c")
	w.place()
	renew(id)
	w.runsOn(id, "ab")
	w.up("c")
	// While shards move, too, those who own them now are asked for.
	w.place()
	renew(id)
	w.runsOn(id, strings.Join(crewOf(w.dataset(), w.serves).nodes, ""))
	w.apply(StopJob{ID: id})
	if _, ok := renew(id); !ok || w.job(id).State != Stopped {
		t.Errorf("%+v", w.job(id))
	}
	alone := w.queue("single")
	for _, id := range []string{id, alone, "j99"} {
		if a, ok := renew(id); ok {
			t.Errorf("%+v", a)
		}
	}
}
