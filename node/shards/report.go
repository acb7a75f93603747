package shards

import (
	"context"
	"maps"
	"slices"
	"time"
)

// reportEvery gathers what happens in a while into one change of the plan. The
// first of a burst is not held up.
const reportEvery = 200 * time.Millisecond

// report tells the leader what is here and what is not, until ctx ends.
func (k *Keeper) report(ctx context.Context) {
	for {
		select {
		case <-k.tell:
		case <-ctx.Done():
			return
		}
		if !k.reportAll(ctx) {
			continue
		}
		select {
		case <-time.After(reportEvery):
		case <-ctx.Done():
			return
		}
	}
}

// reportAll says whether there was anything to tell. What could not be told comes
// up again with the next round.
func (k *Keeper) reportAll(ctx context.Context) (said bool) {
	k.mu.Lock()
	ids := slices.Sorted(maps.Keys(k.plan.Datasets))
	k.mu.Unlock()
	for _, id := range ids {
		hold, lose := k.untold(id)
		for _, r := range []struct {
			shards []int
			tell   func(context.Context, string, []int) (uint64, error)
		}{{hold, k.cfg.Leader.Hold}, {lose, k.cfg.Leader.Lose}} {
			if len(r.shards) == 0 {
				continue
			}
			said = true
			index, err := r.tell(ctx, id, r.shards)
			if err != nil {
				k.cfg.Log.Debug("could not tell the leader what is here", "dataset", id, "shards", len(r.shards), "err", err)
				continue
			}
			k.mu.Lock()
			for _, i := range r.shards {
				k.told[key{id, i}] = index
			}
			k.mu.Unlock()
		}
	}
	return said
}

// untold lists where the plan differs from what is here, without what it is about
// to learn.
func (k *Keeper) untold(id string) (hold, lose []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.plan.Datasets[id]
	for i, want := range d.Shards {
		if index, said := k.told[key{id, i}]; said && index > k.plan.Index {
			continue
		}
		switch here := k.holds(key{id, i}, want); {
		case here && !d.Holds(k.cfg.Self, i) && (d.Wants(k.cfg.Self, i) || d.Lost(i)):
			hold = append(hold, i)
		case !here && d.Holds(k.cfg.Self, i):
			lose = append(lose, i)
		}
	}
	return hold, lose
}
