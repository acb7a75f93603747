package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

var (
	errUnwanted   = errors.New("the plan no longer wants this shard here")
	errSourceGone = errors.New("the node that it came from does not answer")
	errNoSource   = errors.New("no node that holds it answers")
	// errDamaged means that a shard arrived with other content than the plan says.
	errDamaged = errors.New("what came has not the SHA-256 that the plan names")
	// errDisk marks failures of this node's disk, not of another node.
	errDisk = errors.New("this node's disk")
)

// fetch is one shard that is being fetched.
type fetch struct {
	key
	want   plan.Shard
	peer   string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// trouble records failed attempts to fetch a shard.
type trouble struct {
	why   error
	tried map[string]bool // holders that failed since the last pause
	wait  time.Duration
	until time.Time // the next attempt is not before
}

const (
	waitFirst = time.Second
	waitLast  = time.Minute
	// waitForNode bounds the pause before nodes that don't answer are checked again,
	// since checking is cheap.
	waitForNode = 4 * time.Second
)

// next returns the shard to fetch next and its source, or nil. Called with mu held.
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

// source returns the holder to fetch a shard from. Among holders that answer and have not
// just failed, it prefers those with the fewest fetches under way, and then the owner.
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

// pause delays the next attempt, longer each time. Called with mu held.
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

// finish records how a fetch ended.
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
		delete(k.checks.losses, job.key)
		k.disk = nil
		return
	}
	switch {
	case ended != nil && !errors.Is(ended, errSourceGone):
		return // the node stops, or the plan has changed
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

// bring fetches one shard and checks it. The caller seals the part that it returns.
func (k *Keeper) bring(job *fetch, l *lane) (*part, error) {
	p, err := openPart(k.part(job.key), job.want.Bytes, l)
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

var errSilent = errors.New("does not answer")

// Borrow fetches files of shards that this node does not keep into a folder of the
// caller, under their usual names, and verifies each. The caller removes them, also if
// Borrow fails.
func (k *Keeper) Borrow(ctx context.Context, dataset string, list []int, dir string) error {
	k.mu.Lock()
	s := k.plan
	k.mu.Unlock()
	d, in := s.Datasets[dataset]
	if !in {
		return fmt.Errorf("dataset %s is no longer in the mesh: import it again, with the same options and under the same name", dataset)
	}
	var l lane
	for _, shard := range list {
		if shard < 0 || shard >= len(d.Shards) {
			return fmt.Errorf("dataset %s has no shard %d", d.Name, shard)
		}
		if err := k.borrow(ctx, s, d, shard, filepath.Join(dir, graph.ShardFile(shard)), &l); err != nil {
			return err
		}
	}
	return nil
}

// borrow asks the holders one after the other.
func (k *Keeper) borrow(ctx context.Context, s *plan.State, d plan.Dataset, shard int, path string, l *lane) error {
	failed, silent := errNoSource, false
	for _, id := range d.HoldersOf(shard) {
		if id == k.cfg.Self {
			continue
		}
		err := errSilent
		if k.cfg.Network.Serving(id) {
			err = k.borrowFrom(ctx, id, d, shard, path, l)
		} else {
			silent = true
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errDisk):
			return fmt.Errorf("keep shard %d of dataset %s for a while: %w: free some space in the data directory", shard, d.Name, err)
		case errors.Is(err, errDamaged):
			k.cfg.Network.Doubt(ctx, id, d.ID, shard)
		}
		if errors.Is(failed, errNoSource) {
			failed = fmt.Errorf("node %s: %w", s.Members[id].Name, err)
		} else {
			failed = fmt.Errorf("%w; node %s: %w", failed, s.Members[id].Name, err)
		}
	}
	advice := "ask once more in a while"
	switch {
	case errors.Is(failed, errNoSource):
		advice = "start the node again that held it, or import the dataset anew"
	case silent:
		advice = "start that node again, or import the dataset anew if it is gone for good; with --replicas 1 or more a dataset outlives a node"
	}
	return fmt.Errorf("fetch shard %d of dataset %s, which is not here: %w: %s", shard, d.Name, failed, advice)
}

func (k *Keeper) borrowFrom(ctx context.Context, id string, d plan.Dataset, shard int, path string, l *lane) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	p := newPart(f)
	p.direct = direct.Open(path)
	job := &fetch{key: key{d.ID, shard}, want: d.Shards[shard], peer: id, ctx: ctx}
	if err := l.stream(job, p, k.cfg.Network); err != nil {
		return errors.Join(err, p.leave())
	}
	if err := p.check(job.want.SHA256); err != nil {
		return err
	}
	if err := p.leave(); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return nil
}

// Serve answers a request of length bytes from an authenticated peer with a piece of a
// complete file.
func (k *Keeper) Serve(ctx context.Context, peer string, length uint64, r Request) error {
	if length != requestBytes {
		return fmt.Errorf("%w: %d bytes", errBadRequest, length)
	}
	var body [requestBytes]byte
	if err := r.ReadBody(body[:]); err != nil {
		return err
	}
	q, err := parseRequest(body[:])
	if err != nil {
		return err
	}
	if err := k.mayRead(peer, q); err != nil {
		return err
	}
	leave, err := k.serves.enter(ctx, peer)
	if err != nil {
		return err
	}
	defer leave()
	defer budget.Begin()()
	b := k.serves.spare.Get().(*[pieceBytes]byte)
	defer k.serves.spare.Put(b)
	f, err := os.Open(k.file(q.key))
	if err == nil {
		_, err = f.ReadAt(b[:q.length], int64(q.offset))
		_ = f.Close()
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) { // removed or truncated
			why := whyGone
			if errors.Is(err, io.EOF) {
				why = whyTruncated
			}
			k.forget(q.key, why)
		}
		return fmt.Errorf("read shard %d of %s: %w", q.shard, q.dataset, err)
	}
	return r.Reply(1, b[:q.length])
}

// mayRead checks a request against the plan and this node's files before anything is
// opened.
func (k *Keeper) mayRead(peer string, q request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, in := k.plan.Members[peer]; !in {
		return errStranger
	}
	d, in := k.plan.Datasets[q.dataset]
	if !in || q.shard >= len(d.Shards) || !k.holds(q.key, d.Shards[q.shard]) {
		return errNotHere
	}
	if size := d.Shards[q.shard].Bytes; q.offset > size || q.length > size-q.offset {
		return fmt.Errorf("%w: %d bytes at %d of %d", errBadRequest, q.length, q.offset, size)
	}
	return nil
}
