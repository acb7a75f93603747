package transport

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

const commits = 200

// commit times changes of the plan, from the leader's API to their application there, on
// three nodes with disks, and a 4 KiB fsync beside each.
func commit(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	f := fleet.New(filepath.Join(run.Dir, "commit"), run.Version)
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
		if _, err := leader.CreateToken(ctx, time.Minute, 0); err != nil {
			return nil, err
		}
		ours = append(ours, time.Since(begin))
		took, err := fsync(run.Dir)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, took)
	}
	value, ceiling := micro(stats.Median(ours)), micro(stats.Median(theirs))
	return []bench.Figure{bench.Against("Raft commit, three nodes, p50", "µs", value, "4 KiB fsync", ceiling,
		bench.Bar{Text: "at most 3x + 500 µs", Holds: func(float64) bool { return value <= 3*ceiling+500 }})}, nil
}

// fsync appends 4 KiB to a file and forces it to the disk.
func fsync(dir string) (time.Duration, error) {
	f, err := os.OpenFile(filepath.Join(dir, "fsync"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the baseline's file: %w", err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	begin := time.Now()
	if _, err := f.Write(block); err != nil {
		return 0, fmt.Errorf("write the baseline's file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, fmt.Errorf("sync the baseline's file: %w", err)
	}
	return time.Since(begin), nil
}

// form times what a person waits for: a mesh from nothing, its voters, one more node, and
// another leader after a kill.
func form(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	f := fleet.New(filepath.Join(run.Dir, "form"), run.Version)
	defer func() {
		if e := f.Stop(); err == nil {
			err = e
		}
	}()
	clock := func(what string, holds func() bool) (float64, error) {
		begin := time.Now()
		err := f.Until(ctx, what, holds)
		return time.Since(begin).Seconds(), err
	}
	begin := time.Now()
	for range 3 {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "three nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	formed := time.Since(begin).Seconds()
	voting, err := clock("three nodes vote", func() bool { return f.Nodes[0].Voters() == 3 })
	if err != nil {
		return nil, err
	}
	if _, err := f.Launch(ctx); err != nil {
		return nil, err
	}
	fourth, err := clock("the fourth is in", f.AllReady)
	if err != nil {
		return nil, err
	}
	leader := f.Leader()
	f.Kill(leader)
	takeover, err := clock("another node leads", func() bool { l := f.Leader(); return l != "" && l != leader })
	if err != nil {
		return nil, err
	}
	return []bench.Figure{
		bench.Below("three nodes, from nothing to a leader and a plan", "s", formed, 3),
		bench.Below("three voters, from the third's join", "s", voting, 10),
		bench.Below("a fourth node joins", "s", fourth, 2),
		bench.Below("another leader after a kill", "s", takeover, 5),
	}, nil
}

// Three fresh nodes settle before their idle cost is measured, for as long as watch.
const (
	settle = 15 * time.Second
	watch  = 20 * time.Second
)

// maxProgram is how large the program may be, in MB.
const maxProgram = 64

// idle starts three daemons as anyone would and measures the busiest of them, as a rule
// the leader, while it has nothing to do.
func idle(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	info, err := os.Stat(run.Program)
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	var daemons []*bench.Daemon
	defer func() {
		for _, d := range daemons {
			d.Stop()
		}
	}()
	first, err := run.Launch(ctx, "i1", "--bootstrap")
	if err != nil {
		return nil, err
	}
	daemons = append(daemons, first)
	token, err := first.CreateToken(ctx, time.Hour, 0)
	if err != nil {
		return nil, err
	}
	members, err := first.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"i2", "i3"} {
		d, err := run.Launch(ctx, name, "--join", members[0].Address, "--token", token.Token)
		if err != nil {
			return nil, err
		}
		daemons = append(daemons, d)
	}
	if err := bench.Pause(ctx, settle); err != nil {
		return nil, err
	}
	var resident, share float64
	before := make([]time.Duration, len(daemons))
	begin := time.Now()
	for i, d := range daemons {
		if before[i], err = bench.CPUTime(d.PID()); err != nil {
			return nil, err
		}
	}
	if err := bench.Pause(ctx, watch); err != nil {
		return nil, err
	}
	for i, d := range daemons {
		after, err := bench.CPUTime(d.PID())
		if err != nil {
			return nil, err
		}
		share = max(share, 100*float64(after-before[i])/float64(time.Since(begin)))
		rss, err := bench.ResidentMB(d.PID())
		if err != nil {
			return nil, err
		}
		resident = max(resident, rss)
	}
	return []bench.Figure{
		bench.Below("idle node of three, resident", "MB", resident, 60),
		bench.Below("idle node of three, of a core", "%", share, 1),
		bench.Below("the program's size", "MB", float64(info.Size())/1e6, maxProgram),
	}, nil
}
