package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

var errSilent = errors.New("does not answer")

// Borrow fetches the files of shards that this node is not to keep into a folder of
// the caller's, under their usual names, each compared with the plan. What is there if
// it fails is the caller's to remove, too.
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

// borrow asks one holder after the other.
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
