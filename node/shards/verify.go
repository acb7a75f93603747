package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A Verdict is what a verification of one shard's file found.
type Verdict string

const (
	// Pending: the file is still being read. Ask again.
	Pending Verdict = "pending"
	Whole   Verdict = "whole"
	// Damaged: the file was not what the plan says, or not there, and was dropped.
	Damaged Verdict = "damaged"
	// Absent: the plan that this node knows does not say that it holds the shard.
	Absent Verdict = "absent"
)

// check is a verification under way.
type check struct {
	done  chan struct{}
	found Verdict // set before done is closed
	err   error
}

// Verify reads a shard's file through. It waits until ctx ends, and then answers
// Pending: reading goes on, and whoever asks again waits for the same. A damaged
// file is dropped, for the plan to have it replaced.
func (k *Keeper) Verify(ctx context.Context, dataset string, shard int) (Verdict, error) {
	f := key{dataset, shard}
	k.mu.Lock()
	d, in := k.plan.Datasets[dataset]
	if !in || shard < 0 || shard >= len(d.Shards) || !d.Holds(k.cfg.Self, shard) {
		k.mu.Unlock()
		return Absent, nil
	}
	c := k.checks[f]
	if c == nil {
		if k.life == nil {
			k.mu.Unlock()
			return Pending, nil
		}
		c = &check{done: make(chan struct{})}
		k.checks[f] = c
		life, want := k.life, d.Shards[shard].SHA256
		k.running.Go(func() { k.check(life, f, want, c) })
	}
	k.mu.Unlock()
	select {
	case <-c.done:
		return c.found, c.err
	case <-ctx.Done():
		return Pending, nil
	}
}

func (k *Keeper) check(ctx context.Context, f key, want string, c *check) {
	defer close(c.done)
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.checks, f)
	}()
	select {
	case k.hashing <- struct{}{}:
		defer func() { <-k.hashing }()
	case <-ctx.Done():
		c.found = Pending
		return
	}
	sum, err := hashFile(ctx, k.file(f))
	switch {
	case ctx.Err() != nil:
		c.found = Pending
	case err == nil && sum == want:
		c.found = Whole
	case err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errUnreadable):
		c.err = err
	default:
		k.cfg.Log.Warn("a shard is damaged; it will be fetched anew", "dataset", f.dataset, "shard", f.shard, "err", err)
		k.forget(f)
		c.found = Damaged
	}
}

// errUnreadable marks what the disk can no longer read.
var errUnreadable = errors.New("can't be read")

func hashFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("verify a shard: %w", err)
	}
	defer f.Close()
	sum, b := sha256.New(), make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(b)
		sum.Write(b[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("verify a shard: %w: %w", errUnreadable, err)
		}
	}
	return "", context.Cause(ctx)
}
