package plan

import "slices"

// crew is the set of nodes that would run a shared job: the owners of its dataset's
// shards as the plan places them now.
type crew struct {
	nodes    []string // in the order of the first shard that each owns
	owners   []int    // for each shard, the index in nodes
	unserved []int    // shards that no serving node holds
	last     []string // holders of those
	silent   []string // owners of other shards that don't serve: another holder is about to take over
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

// serves reports whether every shard has a serving owner.
func (c crew) serves() bool { return len(c.nodes) > 0 && len(c.unserved) == 0 && len(c.silent) == 0 }

// runs reports whether the job runs with the same owner of each shard.
func (c crew) runs(j Job) bool {
	return slices.EqualFunc(c.owners, j.Owners, func(mine, its int) bool { return c.nodes[mine] == j.Nodes[its] })
}

// forgets reports whether the job would start from scratch on these nodes.
func (c crew) forgets(j Job) bool { return len(j.History) > 0 && !j.knownTo(c.nodes) }

func (c crew) assigned(j Job) AssignJob {
	a := AssignJob{ID: j.ID, Nodes: c.nodes, Owners: c.owners}
	if j.State == Running {
		a.Generation = j.Generation
	}
	return a
}

// including appends one to list unless it is already there.
func including[T comparable](list []T, one T) []T {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
