package fit

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
)

// Advice is what to change where a run does not fit, by the places of budget.Node.Instead.
var Advice = [budget.Settings]budget.Advice{
	batch:    "take {batch}=%d, which needs %[2]s",
	topology: "{topology}=sharded, which needs %[2]s",
	fanout:   "divide each {fanout} by %d, which needs %[2]s",
	hidden:   "take {hidden}=%d, which needs %[2]s",
}

const (
	batch = iota
	topology
	fanout
	hidden
)

// Lent returns the bytes of the edges of shards that are not held here, in memory or in files; held reports of a
// vertex whether its shard is.
func Lent(r *replica.Replica, held func(v uint32) bool) (bytes uint64) {
	for _, s := range r.Shards {
		if s.Vertices > 0 && !held(s.First) {
			bytes += uint64(8*len(s.Indptr) + 4*(len(s.Indices)+len(s.Weights)))
		}
	}
	return min(bytes, r.Bytes+r.Filed)
}

// Topology notes that a run would fit without edges that take so many bytes.
func Topology(n *budget.Node, edges uint64) {
	if without := n.Needs - min(n.Needs, edges); edges > 0 && without <= n.Has {
		n.Instead[topology].Needs = without
	}
}

// A Change is a setting that may be made smaller.
type Change struct {
	place, most int                          // of budget.Node.Instead; how often it can be halved
	set         func(halves int) (value int) // halves it so many times, 0: as it was; 0 if it can't be so
}

// Batch changes the size of batches, which is whole now.
func Batch(whole int, set func(batch int)) Change {
	return Change{batch, max(0, bits.Len(uint(whole))-1), func(halves int) int {
		set(whole >> halves)
		return whole >> halves
	}}
}

// Fanout changes all fan-outs, if there are any and all are limited.
func Fanout(whole []int, set func(fanouts []int)) Change {
	c := Change{place: fanout, set: func(halves int) int {
		smaller := slices.Clone(whole)
		for i := range smaller {
			smaller[i] = max(1, smaller[i]>>halves)
		}
		set(smaller)
		return 1 << halves
	}}
	if len(whole) > 0 && !slices.Contains(whole, 0) {
		c.most = bits.Len(uint(slices.Max(whole))) - 1
	}
	return c
}

// Hidden changes the width of hidden rows. set makes the model.
func Hidden(whole int, set func(hidden int) error) Change {
	return Change{hidden, max(0, bits.Len(uint(whole))-1), func(halves int) int {
		if set(whole>>halves) != nil {
			return 0 // there is no such model
		}
		return whole >> halves
	}}
}

const (
	mostHalves = 6
	// patience is how long changes are looked for, so that a refusal is fast. The first is
	// always looked for.
	patience = 200 * time.Millisecond
)

// Search looks for values with which a run would fit, of each setting by itself. needs
// forecasts the run.
func Search(n *budget.Node, needs func() (uint64, error), changes ...Change) error {
	begun := time.Now()
	for i, c := range changes {
		if c.most == 0 {
			continue
		}
		if i > 0 && time.Since(begun) > patience {
			return nil
		}
		err := c.search(n, needs)
		c.set(0)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) search(n *budget.Node, needs func() (uint64, error)) error {
	most := min(mostHalves, c.most)
	for half := range most {
		// The smallest comes first: if that does not fit, none does.
		if half == 0 {
			half = most
		}
		value := c.set(half)
		if value == 0 {
			return nil
		}
		need, err := needs()
		if err != nil {
			return err
		}
		if need <= n.Has {
			n.Instead[c.place] = budget.Instead{Value: uint64(value), Needs: need}
		}
		if (need <= n.Has) != (half == most) {
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
