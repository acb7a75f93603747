package plan

import "slices"

// Wait is the reason why a queued job waits. Its lists of nodes hold ids. A job that is
// not Shared uses the first five fields, a shared one all but Holders and Unlike.
type Wait struct {
	// Holders hold every shard of the dataset; no other node can run the job.
	Holders []string
	// Silent are those of Holders or Owners that don't serve or are about to leave. If
	// they are owners, other nodes are about to own their shards.
	Silent []string
	// Keeper, if not "", is the node that the job waits for because it ran there before
	// and its checkpoint is there.
	Keeper string
	// Unlike are those of Holders that compute by other numbers than the job.
	Unlike []string
	// Behind is another job, on a node that could run this one or that this one needs.
	// It runs there, or has waited for that node for longer.
	Behind string
	// Owners own the shards of the dataset; all of them together are to run the job.
	// Shards that no serving node holds have no owner here.
	Owners []string
	// Leaving are those of Silent that are about to leave. The job waits for them only
	// if other nodes stay, which are about to own their shards.
	Leaving []string
	// Busy are those of Owners that run, or are kept for, Behind or another such job.
	Busy []string
	// Unserved are the shards that no serving node holds. Last are the nodes that do
	// hold some of them: for each shard one has to come back. A shard may have no
	// holder at all.
	Unserved []int
	Last     []string
}

// NextJobs decides which queued jobs begin and on which nodes, given the nodes that
// serve. Older jobs go first. waits gives the reason why each other queued job waits.
//
// A job that is not Shared goes to one node that holds every shard of its dataset and
// runs nothing else. A shared job goes to all owners of shards, when all of them serve,
// stay and are free; while it waits for only some of them, no younger job gets the
// others. For a running shared job, begin has a replacement of its assignment when one
// of its nodes does not serve, or when other nodes own the shards by now and hold all
// that is wanted of them. If the nodes don't change, applying the result repeatedly
// reaches a fixed point.
func NextJobs(s *State, serving func(id string) bool) (begin []AssignJob, waits map[string]Wait) {
	l := newLine(s, serving)
	for _, j := range s.JobsInOrder() {
		if a, ok := l.next(j); ok {
			begin = append(begin, a)
		}
	}
	return begin, l.waits
}

// RenewJob reassigns a running shared job as NextJobs would if one of its nodes did not
// serve. It is for a node that reports that its part cannot go on. The same nodes may
// begin a new generation. It returns false if there is nothing to renew, or if it is
// too early and NextJobs will do it later.
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

// line is the state of one pass over the jobs, the oldest first.
type line struct {
	s       *State
	serving func(id string) bool
	staying bool              // a node serves and stays; leaving nodes begin nothing then
	busy    map[string]string // by node: the job that it runs, or is about to
	kept    map[string]string // by node: the oldest job that waits for other nodes besides it
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

// keep reserves nodes for a job, unless an older one waits for them.
func (l *line) keep(nodes []string, j Job) {
	for _, n := range nodes {
		if l.kept[n] == "" {
			l.kept[n] = j.ID
		}
	}
}

// ahead returns the job for which j does not get a node now, or "".
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

// taken lists those of the nodes that j does not get now, and one of the jobs ahead.
func (l *line) taken(j Job, nodes []string) (busy []string, behind string) {
	for _, n := range nodes {
		if other := l.ahead(j, n); other != "" {
			busy, behind = append(busy, n), other
		}
	}
	return busy, behind
}

// next handles one job.
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

// begin assigns a job to one node.
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
		case !l.s.Members[n].Computes.Has(j.Computing):
			w.Unlike = append(w.Unlike, n)
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

// beginShared assigns a job to the owners if all of them are available.
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

// keeper returns a node that a job must wait for so as not to start from scratch: one
// that has its checkpoint and may own shards again, because it is away or shards are
// moving.
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

// replace reassigns a running shared job if necessary.
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

// renew assigns a running shared job to the current owners, or queues it again.
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

// HoldersOfAll lists the nodes that have proven to hold every shard of a dataset.
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
