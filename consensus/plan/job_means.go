package plan

import (
	"fmt"
	"slices"
)

// means returns what the nodes of a shared job can do for each other, as the plan knows
// it at assignment: which nodes hold copies of which shards, and the relative capacity
// of each node. It is fixed while they run the job, so that all of them use the same
// values.
func (s *State) means(j Job, nodes []string, owners []int) (holders [][]int, weights []uint64) {
	if !j.Shared() {
		return nil, nil
	}
	copies := false
	holders = make([][]int, len(owners))
	d := s.Datasets[j.Dataset]
	for i, owner := range owners {
		for n, id := range nodes {
			if n != owner && d.Holds(id, i) {
				holders[i], copies = append(holders[i], n), true
			}
		}
	}
	if !copies {
		return nil, nil
	}
	all := Weights(s)
	for _, id := range nodes {
		weights = append(weights, all[id])
	}
	return holders, weights
}

// checkMeans returns an error unless a job's Holders and Weights are valid.
func (j Job) checkMeans() error {
	switch {
	case len(j.Holders) == 0 && len(j.Weights) == 0:
		return nil
	case j.State != Running || len(j.Holders) != len(j.Owners) || len(j.Weights) != len(j.Nodes) || slices.Contains(j.Weights, 0):
		return fmt.Errorf("%w: %s, it names the holders of %d shards of %d, and %d weights of %d nodes", ErrInvalid, j.State, len(j.Holders), len(j.Owners), len(j.Weights), len(j.Nodes))
	}
	for i, holders := range j.Holders {
		for k, n := range holders {
			if n < 0 || n >= len(j.Nodes) || n == j.Owners[i] || k > 0 && n <= holders[k-1] {
				return fmt.Errorf("%w: shard %d is held by node %d of %d beside its owner", ErrInvalid, i, n, len(j.Nodes))
			}
		}
	}
	return nil
}
