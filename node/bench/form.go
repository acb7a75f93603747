package bench

import (
	"context"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node/fleet"
)

// form takes the time of what a person waits for: a mesh from nothing, voters, a
// node more, and another leader after a kill.
func (b *bench) form(ctx context.Context) (figures []Figure, err error) {
	f := fleet.New(filepath.Join(b.dir, "form"), b.cfg.Version)
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
	return []Figure{
		below("three nodes, from nothing to a leader and a plan", "s", formed, 3),
		below("three voters, from the third's join", "s", voting, 10),
		below("a fourth node joins", "s", fourth, 2),
		below("another leader after a kill", "s", takeover, 5),
	}, nil
}
