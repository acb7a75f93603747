package fit

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// Slots returns how many batches are in memory at once where there is enough of it, and how
// many goroutines prepare them, if so many steps are under way. A run on one thread samples
// and computes in turn, unless it waits for other nodes meanwhile.
func Slots(threads, inflight int, alone bool) (slots, workers int) {
	if threads == 1 && alone {
		return inflight, 1
	}
	workers = max(1, threads/4)
	return 1 + inflight + workers, workers
}

// Ahead gives up batches that are prepared ahead, down to so many slots. need is what the
// run needs as it is now.
func Ahead(has uint64, b *slot.Batches, least int, need *Needs) budget.Way {
	deep := b.Depth
	return budget.Way{
		Possible: func() bool { return need.Slot > 0 && b.Depth > least },
		Take: func(bytes uint64) (string, error) {
			slots := need.Of(budget.Slots)
			if need.Late {
				slots -= min(slots, need.Rows) // all slots share them
			}
			each := max(1, slots/uint64(b.Depth))
			b.Depth = max(least, b.Depth-int(min((bytes+each-1)/each, 1<<20)))
			b.Hands = max(1, min(b.Hands, b.Depth-1))
			return fmt.Sprintf("a node has %s of memory for this job, so %d batches are in memory at once there, not %d: an epoch takes longer", budget.Format(has), b.Depth, deep), nil
		},
	}
}

// Cached gives up cached rows of other nodes, of which there are so many. held is their
// memory; cache caches fewer, and returns what these take.
func Cached(has uint64, held *uint64, rows int, cache func(rows int) (uint64, error)) budget.Way {
	now := rows
	return budget.Way{
		Possible: func() bool { return *held > 0 },
		Take: func(bytes uint64) (said string, err error) {
			keep := int(float64(now) * float64(*held-min(*held, bytes)) / float64(*held) * (1 - Margin))
			if keep < rows/8 {
				keep = 0 // what is not cached takes memory in batches
			}
			now = keep
			*held, err = cache(keep)
			return fmt.Sprintf("a node has %s of memory for this job, so %d rows of other nodes are cached there, not %d: more bytes are sent", budget.Format(has), keep, rows), err
		},
	}
}

// Edges gives up the edges of other nodes' shards, which take so many bytes, if that is enough:
// the node asks for what it draws. need is what the run needs as it is now.
func Edges(has, bytes uint64, need *Needs, shed func() error) budget.Way {
	done := false
	return budget.Way{
		Possible: func() bool { return !done && need.OnHost() <= has+bytes },
		Take: func(uint64) (string, error) {
			done = true
			return Without(has, bytes), shed()
		},
	}
}

// Without returns what is said of a node that does without the edges of other nodes' shards.
func Without(has, bytes uint64) string {
	return fmt.Sprintf("a node has %s of memory for this job, so it asks others for edges, as with {topology}=sharded, and does not keep their %s there: an epoch takes longer", budget.Format(has), budget.Format(bytes))
}
