package plan

import "slices"

// A Wait is why a queued job waits. Its lists are ids of nodes.
type Wait struct {
	// Holders hold every shard of the dataset; nobody else can run the job.
	Holders []string
	// Silent are those of them that don't serve, or are about to leave.
	Silent []string
	// Keeper, if not "", is the one of them where the job ran before: what it has
	// learnt is there, so that it waits for that node.
	Keeper string
	// Behind is a job that runs on a node that could run this one.
	Behind string
}

// NextJobs says which of the queued jobs begin, and where, by who serves. Each goes
// to one node that holds every shard of its dataset and runs nothing else; the
// oldest are served first. waits says of the others what they wait for.
func NextJobs(s *State, serving func(id string) bool) (begin []AssignJob, waits map[string]Wait) {
	waits = map[string]Wait{}
	busy := map[string]string{}
	for _, j := range s.Jobs {
		if j.State == Running {
			for _, n := range j.Nodes {
				busy[n] = j.ID
			}
		}
	}
	for _, j := range s.JobsInOrder() {
		if j.State != Queued {
			continue
		}
		w := Wait{Holders: HoldersOfAll(s.Datasets[j.Dataset])}
		candidates := w.Holders
		if len(j.History) > 0 && slices.Contains(w.Holders, j.Nodes[0]) {
			w.Keeper = j.Nodes[0]
			candidates = []string{w.Keeper}
		}
		chosen := ""
		for _, n := range candidates {
			switch {
			case !serving(n) || s.Members[n].Leaving:
				w.Silent = append(w.Silent, n)
			case busy[n] != "":
				w.Behind = busy[n]
			case chosen == "" || s.Members[n].Speed > s.Members[chosen].Speed:
				chosen = n
			}
		}
		if chosen == "" {
			waits[j.ID] = w
			continue
		}
		busy[chosen] = j.ID
		begin = append(begin, AssignJob{ID: j.ID, Nodes: []string{chosen}})
	}
	return begin, waits
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
