package plan

import "slices"

// A Wait is why a queued job waits. Its lists of nodes are of ids. A job that is not
// Shared has those of the first four fields, one that is shared all but Holders.
type Wait struct {
	// Holders hold every shard of the dataset; nobody else can run the job.
	Holders []string
	// Silent are those of Holders, or of Owners, that don't serve, or are about to
	// leave. If they are owners, others are about to own their shards.
	Silent []string
	// Keeper, if not "", is a node where the job ran before and is to run again: what it
	// has learnt is there, so that it waits for that node.
	Keeper string
	// Behind is a job that runs on a node that could run this one, or that this one
	// needs; or one that has waited for such a node for longer.
	Behind string
	// Owners own the shards of the dataset; all of them together are to run the job.
	// Shards that no serving node holds have no owner here.
	Owners []string
	// Leaving are those of Silent that are about to leave. They are waited for only if
	// others stay, who are about to own their shards.
	Leaving []string
	// Busy are those of Owners that are Behind's, or another such job's.
	Busy []string
	// Unserved are the shards that no serving node holds, and Last the nodes that do
	// hold some of them: one for each shard has to come back. A shard may have no
	// holder at all.
	Unserved []int
	Last     []string
}

// NextJobs says which of the queued jobs begin, and where, by who serves. The oldest
// are served first. waits says of the others what they wait for.
//
// A job that is not Shared goes to one node that holds every shard of its dataset and
// runs nothing else. A shared one goes to all who own shards, when all of them serve,
// stay and are free; while it waits for some of them only, no younger job gets the
// others. Of shared jobs that run, begin has what replaces their assignment: when one
// of their nodes does not serve, or other nodes own the shards by now and hold all
// that is wanted of them. Carried out, with nobody coming or going, that leads to rest.
func NextJobs(s *State, serving func(id string) bool) (begin []AssignJob, waits map[string]Wait) {
	l := newLine(s, serving)
	for _, j := range s.JobsInOrder() {
		if a, ok := l.next(j); ok {
			begin = append(begin, a)
		}
	}
	return begin, l.waits
}

// RenewJob gives a shared job that runs to whoever shall run it now, as NextJobs would
// if one of its nodes did not serve: for when a node says that its part can't go on.
// The same nodes may begin a new generation. False means that there is nothing to
// renew, or that it is too early: NextJobs will.
func RenewJob(s *State, id string, serving func(id string) bool) (AssignJob, bool) {
	l := newLine(s, serving)
	for _, j := range s.JobsInOrder() {
		if j.ID != id {
			l.next(j)
			continue
		}
		if j.State != Running || !j.Shared() {
			break
		}
		return l.renew(j, crewOf(s.Datasets[j.Dataset], serving))
	}
	return AssignJob{}, false
}

// A line is the jobs as they are looked at one after the other, the oldest first.
type line struct {
	s       *State
	serving func(id string) bool
	staying bool              // a node serves and stays: those that leave begin nothing
	busy    map[string]string // by node: the job that it runs, or is about to
	kept    map[string]string // by node: the oldest job that waits for others beside it
	waits   map[string]Wait
}

func newLine(s *State, serving func(id string) bool) *line {
	l := &line{s: s, serving: serving, busy: map[string]string{}, kept: map[string]string{}, waits: map[string]Wait{}}
	for id, m := range s.Members {
		l.staying = l.staying || serving(id) && !m.Leaving
	}
	for _, j := range s.Jobs {
		if j.State == Running {
			l.take(j.Nodes, j)
		}
	}
	return l
}

func (l *line) take(nodes []string, j Job) {
	for _, n := range nodes {
		l.busy[n] = j.ID
	}
}

// keep has nodes stay free for a job, unless an older one waits for them.
func (l *line) keep(nodes []string, j Job) {
	for _, n := range nodes {
		if l.kept[n] == "" {
			l.kept[n] = j.ID
		}
	}
}

// ahead is the job for which j does not get a node now, or "".
func (l *line) ahead(j Job, node string) string {
	switch running := l.busy[node]; running {
	case j.ID:
		return ""
	case "":
		return l.kept[node]
	default:
		return running
	}
}

// taken lists those of the nodes that j does not get now, with one of the jobs ahead.
func (l *line) taken(j Job, nodes []string) (busy []string, behind string) {
	for _, n := range nodes {
		if other := l.ahead(j, n); other != "" {
			busy, behind = append(busy, n), other
		}
	}
	return busy, behind
}

// next is the turn of one job.
func (l *line) next(j Job) (AssignJob, bool) {
	switch {
	case j.State == Queued && j.Shared():
		return l.beginShared(j)
	case j.State == Queued:
		return l.begin(j)
	case j.State == Running && j.Shared():
		return l.replace(j)
	}
	return AssignJob{}, false
}

// begin finds the one node that a job goes to.
func (l *line) begin(j Job) (AssignJob, bool) {
	w := Wait{Holders: HoldersOfAll(l.s.Datasets[j.Dataset])}
	candidates := w.Holders
	if len(j.History) > 0 && slices.Contains(w.Holders, j.keepers()[0]) {
		w.Keeper = j.keepers()[0]
		candidates = []string{w.Keeper}
	}
	chosen := ""
	for _, n := range candidates {
		switch {
		case !l.serving(n) || l.s.Members[n].Leaving:
			w.Silent = append(w.Silent, n)
		case l.ahead(j, n) != "":
			w.Behind = l.ahead(j, n)
		case chosen == "" || l.s.Members[n].Speed > l.s.Members[chosen].Speed:
			chosen = n
		}
	}
	if chosen == "" {
		l.waits[j.ID] = w
		return AssignJob{}, false
	}
	l.take([]string{chosen}, j)
	return AssignJob{ID: j.ID, Nodes: []string{chosen}}, true
}

// beginShared gives a job to the owners, if it can have all of them.
func (l *line) beginShared(j Job) (AssignJob, bool) {
	d := l.s.Datasets[j.Dataset]
	c := crewOf(d, l.serving)
	w := Wait{Owners: c.nodes, Silent: c.silent, Keeper: l.keeper(j, c, d), Unserved: c.unserved, Last: c.last}
	for _, n := range c.nodes {
		if l.staying && l.s.Members[n].Leaving {
			w.Leaving, w.Silent = append(w.Leaving, n), including(w.Silent, n)
		}
	}
	w.Busy, w.Behind = l.taken(j, c.nodes)
	if !c.serves() || w.Keeper != "" || len(w.Silent)+len(w.Busy) > 0 {
		l.waits[j.ID] = w
		if len(w.Unserved) == 0 && w.Keeper == "" { // else it may wait for long
			l.keep(c.nodes, j)
		}
		return AssignJob{}, false
	}
	l.take(c.nodes, j)
	return c.assigned(j), true
}

// keeper is a node for which a job has to wait, or it would begin anew: one that has
// what the job has learnt and may own shards again, since it is away or shards are on
// their way.
func (l *line) keeper(j Job, c crew, d Dataset) string {
	if !c.forgets(j) {
		return ""
	}
	for _, n := range j.keepers() {
		if _, in := l.s.Members[n]; in && (!l.serving(n) || !d.settled()) {
			return n
		}
	}
	return ""
}

// replace looks after a shared job that runs.
func (l *line) replace(j Job) (AssignJob, bool) {
	d := l.s.Datasets[j.Dataset]
	c := crewOf(d, l.serving)
	if slices.ContainsFunc(j.Nodes, func(n string) bool { return !l.serving(n) }) {
		return l.renew(j, c)
	}
	if j.Stopping || !d.settled() || !c.serves() || c.runs(j) || c.forgets(j) {
		return AssignJob{}, false
	}
	if busy, _ := l.taken(j, c.nodes); len(busy) > 0 {
		l.keep(c.nodes, j)
		return AssignJob{}, false
	}
	l.take(c.nodes, j)
	return c.assigned(j), true
}

// renew gives a shared job that runs to others, or back to the queue, where it waits
// as others do.
func (l *line) renew(j Job, c crew) (AssignJob, bool) {
	busy, _ := l.taken(j, c.nodes)
	switch {
	case j.Stopping, len(c.unserved) > 0, c.forgets(j):
	case len(c.silent) > 0:
		return AssignJob{}, false
	case len(busy) == 0:
		l.take(c.nodes, j)
		return c.assigned(j), true
	}
	return AssignJob{ID: j.ID, Generation: j.Generation}, true
}

// HoldersOfAll lists who has proven to hold every shard of a dataset.
func HoldersOfAll(d Dataset) []string {
	var list []string
	for _, n := range d.Nodes {
		all := true
		for i := range d.Shards {
			all = all && d.Holds(n, i)
		}
		if all {
			list = append(list, n)
		}
	}
	return list
}
