package fit

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
)

// Advice is what to change where a run does not fit, by the places of budget.Node.Instead.
var Advice = [2]budget.Advice{"take {batch}=%d, which needs %[2]s", "{topology}=sharded, which needs %[2]s"}

// Lent returns the memory of the edges of shards that are not held here; held reports of a
// vertex whether its shard is.
func Lent(r *replica.Replica, held func(v uint32) bool) (bytes uint64) {
	for _, s := range r.Shards {
		if s.Vertices > 0 && !held(s.First) {
			bytes += uint64(8*len(s.Indptr) + 4*(len(s.Indices)+len(s.Weights)))
		}
	}
	return min(bytes, r.Bytes)
}

// Topology notes that a run would fit without edges that take so many bytes.
func Topology(n *budget.Node, edges uint64) {
	if without := n.Needs - min(n.Needs, edges); edges > 0 && without <= n.Has {
		n.Instead[1].Needs = without
	}
}

// Batch looks for a batch with which a run would fit, smaller than this one. needs forecasts
// the run with a batch.
func Batch(n *budget.Node, whole int, needs func(batch int) (uint64, error)) error {
	const halves = 6
	for i := range halves + 1 {
		// The smallest comes first: if that does not fit, none does.
		half := i
		if i == 0 {
			half = halves
		}
		batch := whole >> half
		if batch == 0 {
			continue
		}
		need, err := needs(batch)
		if err != nil {
			return err
		}
		switch fits := need <= n.Has; {
		case fits:
			n.Instead[0] = budget.Instead{Value: uint64(batch), Needs: need}
			if i > 0 {
				return nil
			}
		case i == 0:
			return nil
		}
	}
	return nil
}

// Smaller returns the advice for a run of mini-batches that lacks memory: of a sweep, to
// train fewer models first; what is full can't be a smaller number.
func Smaller(r *recipe.Recipe) (advice []budget.Advice) {
	if len(r.Sweep) > 1 {
		advice = append(advice, budget.Advice(fmt.Sprintf("give fewer values to {sweep}, which makes %d models", len(r.Sweep))))
	}
	some := slices.ContainsFunc(r.Fanouts, func(n int) bool { return n > 0 })
	switch {
	case r.Batch > 0 && some:
		return append(advice, "take a smaller {batch}, {fanout} or {hidden}")
	case r.Batch > 0:
		return append(advice, "take a smaller {batch} or {hidden}")
	case some:
		return append(advice, "take a smaller {fanout} or {hidden}", "give a number for {batch}")
	}
	return append(advice, "take a smaller {hidden}", "give numbers for {batch} and {fanout}")
}
