package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

var (
	errUnwanted   = errors.New("the plan no longer wants this shard here")
	errSourceGone = errors.New("the node that it came from does not answer")
	errNoSource   = errors.New("no node that holds it answers")
	// errDamaged: what came is not what the plan says it is.
	errDamaged = errors.New("what came has not the SHA-256 that the plan names")
	// errDisk marks trouble with this node's disk, for which no other node is to
	// blame.
	errDisk = errors.New("this node's disk")
)

// A fetch is one shard on its way here.
type fetch struct {
	key
	want   plan.Shard
	peer   string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// trouble is what went wrong with a shard.
type trouble struct {
	why   error
	tried map[string]bool // holders that failed since the last pause
	wait  time.Duration
	until time.Time // no attempt before
}

const (
	waitFirst = time.Second
	waitLast  = time.Minute
	// waitForNode is for how long at most to look away from nodes that don't answer:
	// looking again costs nothing.
	waitForNode = 4 * time.Second
)

// next picks the shard to fetch next and from whom, nil if there is none. Called
// with mu held.
func (k *Keeper) next(ctx context.Context, now time.Time) *fetch {
	for _, id := range slices.Sorted(maps.Keys(k.plan.Datasets)) {
		d := k.plan.Datasets[id]
		for i, want := range d.Shards {
			f := key{id, i}
			t := k.trouble[f]
			if k.fetches[f] != nil || t != nil && now.Before(t.until) || !k.wanted(f) {
				continue
			}
			peer := k.source(d, f)
			if peer == "" {
				k.pause(f, cmp.Or(k.why(f), errNoSource), now)
				continue
			}
			job := &fetch{key: f, want: want, peer: peer}
			job.ctx, job.cancel = context.WithCancelCause(ctx)
			k.fetches[f] = job
			k.made(id).parts[i] = true
			return job
		}
	}
	return nil
}

func (k *Keeper) why(f key) error {
	if t := k.trouble[f]; t != nil {
		return t.why
	}
	return nil
}

// source is the holder to fetch a shard from: of those that answer and have not
// just failed, the one from which the least is under way, the owner first.
// Called with mu held.
func (k *Keeper) source(d plan.Dataset, f key) string {
	busy := map[string]int{}
	for _, job := range k.fetches {
		busy[job.peer]++
	}
	best := ""
	for _, id := range d.HoldersOf(f.shard) {
		t := k.trouble[f]
		if id == k.cfg.Self || !k.cfg.Network.Serving(id) || t != nil && t.tried[id] {
			continue
		}
		if best == "" || busy[id] < busy[best] {
			best = id
		}
	}
	return best
}

// pause puts the next attempt off, longer each time. Called with mu held.
func (k *Keeper) pause(f key, why error, now time.Time) {
	t := k.trouble[f]
	if t == nil {
		t = &trouble{}
		k.trouble[f] = t
	}
	t.why, t.tried = why, nil
	t.wait = min(max(2*t.wait, waitFirst), waitLast)
	if !errors.Is(why, errDisk) && !errors.Is(why, errDamaged) {
		t.wait = min(t.wait, waitForNode)
	}
	t.until = now.Add(t.wait)
}

// finish notes how a fetch ended.
func (k *Keeper) finish(job *fetch, err error) {
	ended := context.Cause(job.ctx)
	job.cancel(nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.fetches, job.key)
	folder := k.made(job.dataset)
	if err == nil {
		delete(folder.parts, job.shard)
		folder.held[job.shard] = job.want.Bytes
		delete(k.trouble, job.key)
		k.disk = nil
		return
	}
	switch {
	case ended != nil && !errors.Is(ended, errSourceGone):
		return // the stop of the node, or the plan's word
	case errors.Is(err, errDisk):
		k.cfg.Log.Warn("could not keep a shard; trying again later", "dataset", job.dataset, "shard", job.shard, "err", err)
		k.pause(job.key, err, time.Now())
		return
	}
	k.cfg.Log.Info("could not fetch a shard; another node may serve it", "dataset", job.dataset, "shard", job.shard, "from", job.peer, "err", err)
	t := k.trouble[job.key]
	if t == nil {
		t = &trouble{}
		k.trouble[job.key] = t
	}
	if t.tried == nil {
		t.tried = map[string]bool{}
	}
	t.why, t.tried[job.peer] = err, true
}

// bring fetches one shard and checks it. What it returns is to be sealed.
func (k *Keeper) bring(job *fetch, l *lane) (*part, error) {
	p, err := k.openPart(job, l)
	if err != nil {
		return nil, err
	}
	err = l.stream(job, p, k.cfg.Network)
	if err == nil {
		return p, p.check(job.want.SHA256)
	}
	if cause := context.Cause(job.ctx); cause != nil {
		err = cause
	}
	return nil, errors.Join(fmt.Errorf("fetch shard %d from node %s: %w", job.shard, job.peer, err), p.leave())
}
