package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/damage"
)

// reportEvery is the interval in which changes are gathered into one change of the plan.
// The first of a burst is not delayed.
const reportEvery = 200 * time.Millisecond

// report reports to the leader which shards are here and which are not, until ctx ends.
func (k *Keeper) report(ctx context.Context) {
	for {
		select {
		case <-k.news:
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

// reportAll reports whether there was anything to report. Failed reports are repeated in
// the next round.
func (k *Keeper) reportAll(ctx context.Context) (said bool) {
	k.mu.Lock()
	ids := slices.Sorted(maps.Keys(k.plan.Datasets))
	k.mu.Unlock()
	for _, id := range ids {
		hold, lose := k.untold(id)
		for _, r := range []struct {
			shards []int
			report func(context.Context, string, []int) (uint64, error)
		}{{hold, k.cfg.Leader.Hold}, {lose, k.cfg.Leader.Lose}} {
			if len(r.shards) == 0 {
				continue
			}
			said = true
			index, err := r.report(ctx, id, r.shards)
			if err != nil {
				k.cfg.Log.Debug("could not report shards to the leader", "dataset", id, "shards", len(r.shards), "err", err)
				continue
			}
			k.mu.Lock()
			for _, i := range r.shards {
				k.reported[key{id, i}] = index
			}
			k.mu.Unlock()
		}
	}
	return said
}

// untold lists the differences between the plan and this node's files that are not being
// reported already.
func (k *Keeper) untold(id string) (hold, lose []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.plan.Datasets[id]
	for i, want := range d.Shards {
		if index, said := k.reported[key{id, i}]; said && index > k.plan.Index {
			continue
		}
		switch here := k.holds(key{id, i}, want); {
		case here && !d.Holds(k.cfg.Self, i) && (d.Wants(k.cfg.Self, i) || d.Lost(i)):
			hold = append(hold, i)
		case !here && d.Holds(k.cfg.Self, i):
			k.lose(key{id, i}, whyGone)
			lose = append(lose, i)
		}
	}
	return hold, lose
}

// Stock counts this node's files, for its metrics.
type Stock struct {
	Shards   int
	Bytes    uint64
	Fetching int
}

// Stock counts the complete files.
func (k *Keeper) Stock() Stock {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Stock{Fetching: len(k.fetches)}
	for _, f := range k.folders {
		for _, bytes := range f.held {
			s.Shards++
			s.Bytes += bytes
		}
	}
	return s
}

// Problems returns sentences about what keeps this node from holding the shards that the
// plan wants it to hold.
func (k *Keeper) Problems() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []string
	if k.disk != nil {
		list = append(list, fmt.Sprintf("this node can't use its folder for shards: %v; see to it and start the node again", k.disk))
	}
	type cause struct{ dataset, text string }
	count := map[cause]int{}
	for f, t := range k.trouble {
		d, in := k.plan.Datasets[f.dataset]
		if !in || t.until.IsZero() || d.Lost(f.shard) {
			continue // another holder is about to be asked, or there is none
		}
		count[cause{d.Name, k.explain(t.why)}]++
	}
	for c, n := range count {
		what := "1 shard"
		if n > 1 {
			what = fmt.Sprintf("%d shards", n)
		}
		list = append(list, fmt.Sprintf("this node lacks %s of dataset %s: %s", what, c.dataset, c.text))
	}
	slices.Sort(list)
	return list
}

// explain describes the cause of a problem, and what to do.
func (k *Keeper) explain(why error) string {
	switch {
	case errors.Is(why, syscall.ENOSPC), errors.Is(why, syscall.EDQUOT):
		return fmt.Sprintf("the disk of %s is full; free some space, and it goes on by itself", k.cfg.Dir)
	case errors.Is(why, errDisk):
		return fmt.Sprintf("they can't be kept in %s (%v); it is tried again", k.cfg.Dir, why)
	case errors.Is(why, errDamaged):
		return "what other nodes serve is damaged; `hopmesh dataset verify` says which"
	case errors.Is(why, errNoSource):
		return "no node that holds them answers; start such a node again"
	}
	return "the nodes that hold them could not be read; it is tried again"
}

// lose records why a shard's file is not here any more, and logs it. Called with mu held.
func (k *Keeper) lose(f key, why string) {
	delete(k.checks.whole, f)
	delete(k.checks.doubted, f)
	if k.checks.losses[f] != nil {
		return
	}
	k.checks.losses[f] = &loss{why: why}
	k.cfg.Log.Warn("this node has lost a shard; another copy is fetched, if there is one", "dataset", k.plan.Datasets[f.dataset].Name, "shard", f.shard, "path", k.file(f), "why", why)
}

// tell tells users which shards this node has lost and does not have again yet. Only Run calls
// it.
func (k *Keeper) tell() {
	if k.cfg.Damage == nil {
		return
	}
	k.mu.Lock()
	now := map[string]string{}
	for id, d := range k.plan.Datasets {
		if what := k.missing(id, d); what != "" {
			now[id] = what
		}
	}
	before, names := k.checks.told, map[string]string{}
	for id := range before {
		names[id] = k.plan.Datasets[id].Name
	}
	k.checks.told = now
	k.mu.Unlock()
	for id, what := range now {
		if before[id] != what {
			k.cfg.Damage.Found(damage.Shard, id, what)
		}
	}
	for id := range before {
		switch _, still := now[id]; {
		case still:
		case names[id] == "":
			k.cfg.Damage.Clear(damage.Shard, id)
		default:
			k.cfg.Damage.Repaired(damage.Shard, id, fmt.Sprintf("what was lost of dataset %s is here again, or with other nodes", names[id]))
		}
	}
}

// missing says which shards of a dataset this node has lost, why, and what becomes of them; ""
// if it has lost none. They count as heard. Called with mu held.
func (k *Keeper) missing(id string, d plan.Dataset) string {
	var lost, last []int // last: no other node has a copy
	why := ""
	for i := range d.Shards {
		l := k.checks.losses[key{id, i}]
		if l == nil {
			continue
		}
		if l.heard = true; why == "" {
			why = l.why
		}
		if others := slices.ContainsFunc(d.HoldersOf(i), func(n string) bool { return n != k.cfg.Self }); others {
			lost = append(lost, i)
		} else {
			last = append(last, i)
		}
	}
	switch {
	case len(last) > 0:
		return fmt.Sprintf("%s of dataset %s can't be used (%s), and no other node has a copy: remove the dataset and import it again", listed(last), d.Name, why)
	case len(lost) > 0:
		return fmt.Sprintf("%s of dataset %s can't be used (%s): another copy is fetched", listed(lost), d.Name, why)
	}
	return ""
}

// listed names shards.
func listed(shards []int) string {
	if len(shards) == 1 {
		return fmt.Sprintf("shard %d", shards[0])
	}
	return fmt.Sprintf("%d shards (%d and others)", len(shards), shards[0])
}
