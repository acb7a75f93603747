package plan

import "slices"

// A crew is who runs a shared job, as the plan places the shards of its dataset now:
// their owners.
type crew struct {
	nodes    []string // in the order of the first shard that each owns
	owners   []int    // of each shard: who of nodes
	unserved []int    // shards that no node that serves holds
	last     []string // who holds some of those
	silent   []string // owners of others that don't serve: another holder is about to take over
}

func crewOf(d Dataset, serving func(id string) bool) crew {
	var c crew
	up, at := make([]bool, len(d.Nodes)), make([]int, len(d.Nodes))
	for n, id := range d.Nodes {
		up[n], at[n] = serving(id), nobody
	}
	for i, s := range d.Shards {
		if !slices.ContainsFunc(s.Holders, func(n int) bool { return up[n] }) {
			c.unserved = append(c.unserved, i)
			for _, n := range s.Holders {
				c.last = including(c.last, d.Nodes[n])
			}
			continue
		}
		owner := s.Holders[0]
		if at[owner] == nobody {
			at[owner] = len(c.nodes)
			c.nodes = append(c.nodes, d.Nodes[owner])
			if !up[owner] {
				c.silent = append(c.silent, d.Nodes[owner])
			}
		}
		c.owners = append(c.owners, at[owner])
	}
	return c
}

// serves says whether every shard has an owner that serves.
func (c crew) serves() bool { return len(c.nodes) > 0 && len(c.unserved) == 0 && len(c.silent) == 0 }

// runs says whether each shard has the owner here with whom the job runs.
func (c crew) runs(j Job) bool {
	return slices.EqualFunc(c.owners, j.Owners, func(mine, its int) bool { return c.nodes[mine] == j.Nodes[its] })
}

// forgets says whether the job would begin anew with this crew.
func (c crew) forgets(j Job) bool { return len(j.History) > 0 && !j.knownTo(c.nodes) }

func (c crew) assigned(j Job) AssignJob {
	a := AssignJob{ID: j.ID, Nodes: c.nodes, Owners: c.owners}
	if j.State == Running {
		a.Generation = j.Generation
	}
	return a
}

// including appends what is not there yet.
func including[T comparable](list []T, one T) []T {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
