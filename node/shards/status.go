package shards

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Stock is what this node has, for its metrics.
type Stock struct {
	Shards   int
	Bytes    uint64
	Fetching int
}

// Stock counts what lies here whole.
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

// Problems says in sentences what keeps this node from having what the plan wants
// it to have.
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
			continue // another holder is about to be asked, or there will be none
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

// explain is the part of a sentence that says why, and what to do.
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
