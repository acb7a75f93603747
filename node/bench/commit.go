package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

const commits = 200

// commit takes the time of one change of the plan, from the leader's API to its
// application there, on three nodes with disks; and of a 4 KiB fsync beside each.
func (b *bench) commit(ctx context.Context) (figures []Figure, err error) {
	f := fleet.New(filepath.Join(b.dir, "commit"), b.cfg.Version)
	defer func() {
		if e := f.Stop(); err == nil {
			err = e
		}
	}()
	for range 3 {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "three nodes vote", func() bool { return f.AllReady() && f.Nodes[0].Voters() == 3 }); err != nil {
		return nil, err
	}
	var leader api.Backend
	for _, n := range f.Nodes {
		if n.Name == f.Leader() {
			leader = n.API()
		}
	}
	var ours, theirs []time.Duration
	for range commits {
		begin := time.Now()
		if _, err := leader.CreateToken(ctx, time.Minute); err != nil {
			return nil, err
		}
		ours = append(ours, time.Since(begin))
		took, err := fsync(b.dir)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, took)
	}
	value, ceiling := micro(median(ours)), micro(median(theirs))
	return []Figure{against("Raft commit, three nodes, p50", "µs", value, "4 KiB fsync", ceiling, "at most 3x + 500 µs",
		func(float64) bool { return value <= 3*ceiling+500 })}, nil
}

// fsync appends 4 KiB to a file and forces it to the disk.
func fsync(dir string) (time.Duration, error) {
	f, err := os.OpenFile(filepath.Join(dir, "fsync"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the yardstick's file: %w", err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	begin := time.Now()
	if _, err := f.Write(block); err != nil {
		return 0, fmt.Errorf("write the yardstick's file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, fmt.Errorf("sync the yardstick's file: %w", err)
	}
	return time.Since(begin), nil
}
