package shards

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// A stamp tells a file from one that has been written, or replaced, since.
type stamp struct {
	device, inode     uint64
	size              int64
	modified, changed syscall.Timespec
}

// stampAt returns the stamp of the file that lies at a path.
func stampAt(path string) (stamp, bool) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return stamp{}, false
	}
	return stampOf(&st), true
}

// stampOn returns the stamp of an open file.
func stampOn(f *os.File) (stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, fmt.Errorf("stat %s: nothing of its inode is known", f.Name())
	}
	return stampOf(st), nil
}

// is reports whether an opened file is the stamp's; nil is any file.
func (s stamp) is(opened fs.FileInfo) bool {
	if opened == nil {
		return true
	}
	st, ok := opened.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	as := stampOf(st)
	return as.inode == s.inode && as.device == s.device
}

// Unusable is the error of a shard whose file here is damaged or gone. The file was dropped,
// and the leader knows.
type Unusable struct {
	Shard int
	Why   string
	// Elsewhere reports whether another node holds the shard.
	Elsewhere bool
	// Moved reports whether the plan no longer names the shard here. Nothing is known of the file.
	Moved bool
}

func (e *Unusable) Error() string { return e.Why }

// Intact reports, without reading it, whether a shard's file was verified by this process and
// has not been written or replaced since. opened is the file that the caller reads; nil: the
// one that lies there.
func (k *Keeper) Intact(dataset string, shard int, opened fs.FileInfo) bool {
	f := key{dataset, shard}
	k.mu.Lock()
	whole, verified := k.checks.whole[f]
	k.mu.Unlock()
	if !verified || !whole.is(opened) {
		return false
	}
	now, there := stampAt(k.file(f))
	return there && now == whole
}

// Suspect has the next Confirm read a shard's file again, although it looks unchanged.
func (k *Keeper) Suspect(dataset string, shard int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.checks.whole, key{dataset, shard})
	k.checks.doubted[key{dataset, shard}] = true
}

// Confirm returns nil if a shard's file has the content that the plan names. It reads the
// file, unless it is Intact. An Unusable file is dropped; then Confirm returns when the leader
// knows, so that no job is given this shard here before it is whole again.
func (k *Keeper) Confirm(ctx context.Context, dataset string, shard int, opened fs.FileInfo) error {
	for {
		if k.Intact(dataset, shard, opened) {
			return nil
		}
		read := func(path, digest string) (stamp, bool) { return recognise(ctx, path, digest) }
		if k.recognised(key{dataset, shard}, read) {
			continue
		}
		found, err := k.Verify(ctx, dataset, shard)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case found == Whole && k.Intact(dataset, shard, opened):
			return nil
		case found == Whole && k.lies(key{dataset, shard}, opened):
			// It was written while it was read, and is read again.
		case found != Pending:
			return k.lost(ctx, key{dataset, shard}, found == Absent)
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// Recognise spares the next Confirm of a mapped file that has the sums that it had when it was last
// verified. It reads the caller's mapping, whose pages the caller needs anyway: to copy them, or to
// map them once more, would take longer than the sums.
func (k *Keeper) Recognise(ctx context.Context, dataset string, shard int, opened Opened) {
	f := key{dataset, shard}
	if !k.Intact(dataset, shard, opened.Info()) {
		k.recognised(f, func(path, digest string) (stamp, bool) { return recogniseMapped(ctx, path, digest, opened) })
	}
}

// lies reports whether the file that a caller has opened, nil is any, is the one at its path.
func (k *Keeper) lies(f key, opened fs.FileInfo) bool {
	now, there := stampAt(k.file(f))
	return there && now.is(opened)
}

// recognised reports whether a file has the sums that it had when it was last verified, as read
// finds. It counts as verified then.
func (k *Keeper) recognised(f key, read func(path, digest string) (stamp, bool)) bool {
	k.mu.Lock()
	d, in := k.plan.Datasets[f.dataset]
	doubted := k.checks.doubted[f]
	k.mu.Unlock()
	if !in || doubted || f.shard < 0 || f.shard >= len(d.Shards) || !d.Holds(k.cfg.Self, f.shard) {
		return false
	}
	as, ok := read(k.file(f), d.Shards[f.shard].SHA256)
	if !ok {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before, was := k.checks.whole[f]
	k.checks.whole[f] = as
	return !was || before != as // else it is not what the caller has open
}

// found notes that a file has the SHA-256 that the plan names.
func (k *Keeper) found(f key, digest string, quick quicksum.Sums, as stamp) {
	k.mu.Lock()
	before, was := k.checks.whole[f]
	k.mu.Unlock()
	if !was || before != as {
		as = mark(k.file(f), digest, quick, as)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checks.whole[f] = as
	delete(k.checks.doubted, f)
}

// lost reports to the leader that a file was dropped, until it knows, and returns why. absent:
// by the plan it is not here.
func (k *Keeper) lost(ctx context.Context, f key, absent bool) error {
	for {
		_, lose := k.untold(f.dataset)
		tell := false
		for _, shard := range lose {
			tell = tell || shard == f.shard
		}
		if !tell {
			break // it knows, or the file has been replaced meanwhile
		}
		index, err := k.cfg.Leader.Lose(ctx, f.dataset, lose)
		if err == nil {
			k.mu.Lock()
			for _, shard := range lose {
				k.reported[key{f.dataset, shard}] = index
			}
			k.mu.Unlock()
			break
		}
		if !pause(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := &Unusable{Shard: f.shard, Why: "its file has been replaced meanwhile"}
	if l := k.checks.losses[f]; l != nil {
		e.Why = l.why
	} else {
		e.Moved = absent
	}
	d := k.plan.Datasets[f.dataset]
	if f.shard < len(d.Shards) {
		for _, id := range d.HoldersOf(f.shard) {
			e.Elsewhere = e.Elsewhere || id != k.cfg.Self
		}
		e.Elsewhere = e.Elsewhere || k.holds(f, d.Shards[f.shard])
	}
	return e
}

// Restored reports whether a shard is here again, and whether that may still come to pass.
func (k *Keeper) Restored(dataset string, shard int) (here, hope bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, in := k.plan.Datasets[dataset]
	if !in || shard >= len(d.Shards) {
		return false, false
	}
	here = d.Holds(k.cfg.Self, shard) && k.holds(key{dataset, shard}, d.Shards[shard])
	return here, !d.Lost(shard)
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Verdict is the result of a verification of one shard's file.
type Verdict string

const (
	// Pending means that the file is still being read. Ask again.
	Pending Verdict = "pending"
	Whole   Verdict = "whole"
	// Damaged means that the file was missing or differed from the plan, and was dropped.
	Damaged Verdict = "damaged"
	// Absent means that by this node's plan it does not hold the shard.
	Absent Verdict = "absent"
)

// checks holds the verifications in progress.
type checks struct {
	hashing chan struct{} // bounds how many files are hashed on request at once
	under   map[key]*check
	life    context.Context // Run's; nil before and after
	group   *sync.WaitGroup // what Run waits for
	health
}

// check is one verification.
type check struct {
	done  chan struct{}
	found Verdict // set before done is closed
	err   error
}

// Verify verifies a shard's file. If ctx ends first, it returns Pending and reading goes
// on; a later call waits for the same verification. A damaged file is dropped, so that
// the plan replaces it.
func (k *Keeper) Verify(ctx context.Context, dataset string, shard int) (Verdict, error) {
	f := key{dataset, shard}
	k.mu.Lock()
	d, in := k.plan.Datasets[dataset]
	if !in || shard < 0 || shard >= len(d.Shards) || !d.Holds(k.cfg.Self, shard) {
		k.mu.Unlock()
		return Absent, nil
	}
	c := k.checks.under[f]
	if c == nil {
		if k.checks.life == nil {
			k.mu.Unlock()
			return Pending, nil
		}
		c = &check{done: make(chan struct{})}
		k.checks.under[f] = c
		life, want := k.checks.life, d.Shards[shard]
		k.checks.group.Go(func() { k.check(life, f, want, c) })
	}
	k.mu.Unlock()
	select {
	case <-c.done:
		return c.found, c.err
	case <-ctx.Done():
		return Pending, nil
	}
}

func (k *Keeper) check(ctx context.Context, f key, want plan.Shard, c *check) {
	defer close(c.done)
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.checks.under, f)
	}()
	select {
	case k.checks.hashing <- struct{}{}:
		defer func() { <-k.checks.hashing }()
	case <-ctx.Done():
		c.found = Pending
		return
	}
	quick, as, err := readWhole(ctx, k.file(f), want.SHA256, nil)
	switch {
	case ctx.Err() != nil:
		c.found = Pending
	case err == nil:
		c.found = Whole
		k.found(f, want.SHA256, quick, as)
	case isDamage(err):
		k.forget(f, whyOf(k.file(f), want, err))
		c.found = Damaged
	default:
		c.err = err
	}
}
