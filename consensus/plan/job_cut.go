package plan

import "slices"

// Cut is a pair of live nodes of which one cannot reach the other.
type Cut struct{ A, B string }

func (c Cut) between(n string) bool { return c.A == n || c.B == n }

// LeaveOut chooses the nodes that a running shared job must drop so that all its other
// nodes reach each other. It repeatedly drops the node with the most cuts and, of
// those, one that owns few shards. It returns nil if the remaining nodes would lack
// shards or the job's checkpoints.
func LeaveOut(s *State, id string, cuts []Cut, serving func(id string) bool) (out []string) {
	j, in := s.Jobs[id]
	if !in || j.State != Running || !j.Shared() {
		return nil
	}
	cuts = slices.DeleteFunc(slices.Clone(cuts), func(c Cut) bool {
		return c.A == c.B || !slices.Contains(j.Nodes, c.A) || !slices.Contains(j.Nodes, c.B)
	})
	owned := make([]int, len(j.Nodes))
	for _, n := range j.Owners {
		owned[n]++
	}
	for len(cuts) > 0 {
		best, most := nobody, 0
		for i, n := range j.Nodes {
			of := countOf(cuts, n)
			if of == 0 || of < most || !s.doesWithout(j, append(slices.Clip(out), n), serving) {
				continue
			}
			if of > most || owned[i] <= owned[best] { // on ties prefer fewer shards, then the later node: the first one reports
				best, most = i, of
			}
		}
		if best == nobody {
			return nil
		}
		out = append(out, j.Nodes[best])
		cuts = slices.DeleteFunc(cuts, func(c Cut) bool { return c.between(j.Nodes[best]) })
	}
	return out
}

// countOf counts the nodes from which n is cut.
func countOf(cuts []Cut, n string) int {
	var from []string
	for _, c := range cuts {
		switch n {
		case c.A:
			from = including(from, c.B)
		case c.B:
			from = including(from, c.A)
		}
	}
	return len(from)
}

// doesWithout reports whether the remaining nodes have all shards and a checkpoint of
// the job.
func (s *State) doesWithout(j Job, out []string, serving func(id string) bool) bool {
	rest := slices.DeleteFunc(slices.Clone(j.Nodes), func(n string) bool { return slices.Contains(out, n) })
	if len(j.History) > 0 && !j.knownTo(rest) {
		return false
	}
	lacks := s.Datasets[j.Dataset].Lacks(func(n string) bool { return serving(n) && !slices.Contains(out, n) })
	return lacks.Unserved == 0
}
