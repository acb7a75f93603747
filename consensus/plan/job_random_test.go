package plan

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestJobsGoOnWhateverHappens: nodes join, die, come back and go while shards move
// and jobs of all kinds are asked for, stopped and end. The table checks each word of
// NextJobs; when nothing happens any more, it comes to rest; when all nodes are back,
// every job gets its turn.
func TestJobsGoOnWhateverHappens(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newTable(t, 1+r.IntN(4), 1<<r.IntN(6), r.IntN(3))
		w.seed = r
		w.settle()
		for range 60 {
			w.befall(r)
			w.work(r)
			w.place()
			if r.IntN(3) > 0 {
				w.fetch(r.Float64())
			}
			if r.IntN(4) > 0 {
				w.checkedAssign()
			}
		}
		w.drain()
	}
}

// befall changes who is there. What only one node has on disk is never lost.
func (w *table) befall(r *rand.Rand) {
	ids := slices.Sorted(maps.Keys(w.nodes))
	id := ids[r.IntN(len(ids))]
	switch r.IntN(10) {
	case 0, 1:
		if w.state.Members[id].Leaving || len(ids) > 7 {
			return
		}
		w.join(string(rune('a'+r.IntN(8))), 1+r.Uint64N(3))
	case 2, 3:
		w.down(id)
	case 4, 5, 6:
		w.up(id)
	case 7:
		if len(ids) > 1 && r.IntN(3) == 0 {
			w.remove(id)
		}
	case 8:
		if w.state.staying() > 1 {
			w.apply(SetLeaving{ID: id})
			w.set(id, func(n *PlaceNode) { n.Stays = false })
		}
	case 9:
		if len(ids) > 1 && w.state.Members[id].Leaving && !slices.Contains(w.dataset().Nodes, id) {
			w.remove(id)
		}
	}
}

// work is what users and the nodes of jobs do.
func (w *table) work(r *rand.Rand) {
	jobs := w.state.JobsInOrder()
	if len(jobs) == 0 || len(jobs) < 20 && r.IntN(3) == 0 {
		w.queue([]string{"single", "leap", "centric", "auto"}[r.IntN(4)])
		return
	}
	j := jobs[r.IntN(len(jobs))]
	switch k := r.IntN(8); {
	case j.State == Running && k < 3 && j.Last() < j.Epochs:
		w.learn(j.ID)
	case j.State == Running && k == 3:
		w.end(j.ID, []JobState{Done, Failed, Stopped}[r.IntN(3)])
	case k == 4:
		w.apply(StopJob{ID: j.ID})
	case j.Ended() && j.State != Done && k == 5:
		w.apply(ResumeJob{ID: j.ID})
	case k == 6:
		if a, ok := RenewJob(w.state, j.ID, w.serves); ok {
			w.checkAssigned(j, a)
			w.apply(a)
		}
	}
}

// checkedAssign is assign, with a look at all that NextJobs says.
func (w *table) checkedAssign() bool {
	w.t.Helper()
	before := w.state
	digest := before.Digest()
	begin, waits := NextJobs(before, w.serves)
	again, waitsAgain := NextJobs(before, w.serves)
	if before.Digest() != digest || !reflect.DeepEqual(begin, again) || !reflect.DeepEqual(waits, waitsAgain) {
		w.t.Fatalf("NextJobs says %+v, then %+v", begin, again)
	}
	spoken := map[string]AssignJob{}
	for _, a := range begin {
		j := before.Jobs[a.ID]
		w.checkAssigned(j, a)
		if j.State == Running {
			w.checkReason(j)
		}
		spoken[a.ID] = a
		w.apply(a) // nothing of it is refused, whatever came before it
	}
	for _, j := range before.JobsInOrder() {
		_, begins := spoken[j.ID]
		if wait, waiting := waits[j.ID]; waiting == begins || waiting != (j.State == Queued && !begins) {
			if j.State == Queued || waiting {
				w.t.Fatalf("%s (%s) begins: %v, waits: %+v", j.ID, j.State, begins, wait)
			}
		}
		if j.State == Queued && !begins && j.Shared() {
			w.checkWait(j, waits[j.ID], begin)
		}
	}
	return len(begin) > 0
}

// checkAssigned checks who is to run one job.
func (w *table) checkAssigned(j Job, a AssignJob) {
	w.t.Helper()
	if (a.Generation != 0) != (j.State == Running) || a.Generation != 0 && (a.Generation != j.Generation || !j.Shared()) {
		w.t.Fatalf("%+v for %+v", a, j)
	}
	staying := slices.ContainsFunc(slices.Collect(maps.Keys(w.nodes)), func(id string) bool {
		return w.serves(id) && !w.state.Members[id].Leaving
	})
	for _, n := range a.Nodes {
		if !w.serves(n) || j.State == Queued && w.state.Members[n].Leaving && (staying || !j.Shared()) {
			w.t.Fatalf("%s is to run on %s, which is away or about to go", j.ID, n)
		}
	}
	if !j.Shared() || len(a.Nodes) == 0 {
		return
	}
	d := w.dataset()
	for i, n := range a.Owners {
		if d.Owner(i) != a.Nodes[n] || !d.Holds(a.Nodes[n], i) {
			w.t.Fatalf("%s: shard %d is %s's, not %s's", j.ID, i, d.Owner(i), a.Nodes[n])
		}
	}
	if !slices.IsSorted(firsts(a.Owners)) {
		w.t.Fatalf("%s: nodes are not in the order of their first shards: %v", j.ID, a.Owners)
	}
}

// firsts lists each owner where it comes first.
func firsts(owners []int) []int {
	var list []int
	for _, n := range owners {
		list = including(list, n)
	}
	return list
}

// checkReason wants something to have changed for a job that is taken from its nodes.
func (w *table) checkReason(j Job) {
	w.t.Helper()
	d := w.dataset()
	for _, n := range j.Nodes {
		if !w.serves(n) {
			return
		}
	}
	for i, n := range j.Owners {
		if d.Owner(i) != j.Nodes[n] && d.settled() && !j.Stopping {
			return
		}
	}
	w.t.Fatalf("%+v is given out anew, and nothing has changed", j)
}

// checkWait wants a shared job to wait for something, and no younger one to get the
// nodes that it could have.
func (w *table) checkWait(j Job, wait Wait, begin []AssignJob) {
	w.t.Helper()
	if len(wait.Unserved) == 0 && wait.Keeper == "" && len(wait.Silent) == 0 && (len(wait.Busy) == 0 || wait.Behind == "") {
		w.t.Fatalf("%s waits for nothing: %+v", j.ID, wait)
	}
	if len(wait.Unserved) > 0 || wait.Keeper != "" {
		return
	}
	for _, a := range begin {
		other := w.state.Jobs[a.ID]
		if other.Number < j.Number {
			continue
		}
		for _, n := range a.Nodes {
			if slices.Contains(wait.Owners, n) && !slices.Contains(wait.Busy, n) {
				w.t.Fatalf("%s waits for %v, and %s, which is younger, gets %s", j.ID, wait.Owners, a.ID, n)
			}
		}
	}
}

// rest gives out jobs until nothing changes.
func (w *table) rest() {
	w.t.Helper()
	w.settle()
	for round := 0; w.checkedAssign(); round++ {
		if round > 4 {
			w.t.Fatalf("no end of giving out jobs: %+v", w.state.Jobs)
		}
	}
}

// drain brings all nodes back and ends one job after the other, the oldest first,
// until there are none: each gets its turn.
func (w *table) drain() {
	w.t.Helper()
	w.rest()
	for _, id := range slices.Sorted(maps.Keys(w.disk)) {
		if !w.state.Members[id].Leaving {
			w.join(id, 1)
		}
	}
	for id, m := range w.state.Members {
		w.up(id)
		if m.Leaving {
			w.set(id, func(n *PlaceNode) { n.Stays = false })
		}
	}
	for range w.state.Jobs {
		w.rest()
		for _, j := range w.state.JobsInOrder() {
			if j.State != Running {
				continue
			}
			if c := crewOf(w.dataset(), w.serves); j.Shared() && !c.runs(j) && !c.forgets(j) && w.undisputed(j) {
				w.t.Fatalf("%+v, and the shards are %s", j, w)
			}
			w.end(j.ID, Done)
			break
		}
	}
	w.rest()
	for _, j := range w.state.JobsInOrder() {
		able := slices.ContainsFunc(HoldersOfAll(w.dataset()), func(id string) bool { return !w.state.Members[id].Leaving })
		if j.State == Running || j.State == Queued && (j.Shared() || able) {
			w.t.Fatalf("%s (%s) is still %s, and waits for %+v", j.ID, j.Strategy, j.State, w.wait(j.ID))
		}
	}
}

// undisputed says whether nothing keeps a running job from more nodes: no job runs
// beside it, or has waited for longer, and it shall not stop.
func (w *table) undisputed(j Job) bool {
	for _, other := range w.state.Jobs {
		if other.ID != j.ID && other.State == Running || other.State == Queued && other.Number < j.Number {
			return false
		}
	}
	return !j.Stopping
}
