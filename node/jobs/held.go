package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/shards"
)

// Files are this node's shard files.
type Files interface {
	// Confirm returns nil if a file has the content that the plan names, and a
	// *shards.Unusable once the leader knows that it has not. Intact reports whether it was
	// confirmed and has not changed since. opened is the file that is mapped; nil: any.
	Confirm(ctx context.Context, dataset string, shard int, opened fs.FileInfo) error
	Intact(dataset string, shard int, opened fs.FileInfo) bool
	// Recognise spares Confirm to read a mapped file that has been verified before.
	Recognise(ctx context.Context, dataset string, shard int, opened shards.Opened)
	// Suspect has the next Confirm read the file again, although it looks unchanged.
	Suspect(dataset string, shard int)
	// Restored reports whether a shard that was lost is here again, or may yet be.
	Restored(dataset string, shard int) (here, hope bool)
}

var _ Files = (*shards.Keeper)(nil)

// LostShards is the error of what could not go on since files of shards here are damaged or
// gone. They were dropped, and the leader knows.
type LostShards struct {
	Dataset string
	Lost    []*shards.Unusable // not empty
}

func (e *LostShards) Error() string {
	first, more := e.Lost[0], ""
	if n := len(e.Lost) - 1; n == 1 {
		more = ", nor can another"
	} else if n > 1 {
		more = fmt.Sprintf(", nor can %d others", n)
	}
	text := fmt.Sprintf("shard %d of dataset %s can't be used (%s)%s", first.Shard, e.Dataset, first.Why, more)
	if !e.Elsewhere() {
		text += ", and no other node has a copy: remove the dataset and import it again"
	}
	return text
}

// Elsewhere reports whether other nodes hold all of them.
func (e *LostShards) Elsewhere() bool {
	for _, l := range e.Lost {
		if !l.Elsewhere {
			return false
		}
	}
	return true
}

// held are the shards that a run has mapped, and what is known of their content.
type held struct {
	files   Files // nil: they are trusted
	dataset plan.Dataset
	shards  []*graph.Shard // nil where others hold them
	folder  string         // of their files
	watch   *watch         // of the folder; nil if the system has no watch for it
	looking sync.Mutex     // one at a time looks at what the watch has noticed

	cancel context.CancelFunc // nil: nothing is being verified
	done   chan struct{}      // closed when all have been read once

	// With looking held:
	err  error        // of the last confirm
	left map[int]bool // whole mappings of files that are gone, since the plan has moved them away
}

// begin verifies the shards beside the training.
func (h *held) begin(folder string) {
	if h.files == nil {
		return
	}
	h.folder = folder
	var err error
	mapped := map[string]bool{}
	for i, s := range h.shards {
		if s != nil {
			mapped[graph.ShardFile(i)] = true
		}
	}
	if h.watch, err = newWatch(folder, mapped); err != nil {
		h.watch = nil // all files are looked at, each time
	}
	h.err, h.left = nil, map[int]bool{}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		_ = h.confirm(ctx) // it is kept
	}()
}

// end unmaps the shards. Nobody may read them any more.
func (h *held) end() {
	if h.cancel != nil {
		h.cancel()
		<-h.done
		h.cancel = nil
		h.watch.close()
	}
	CloseShards(h.shards)
	h.shards = nil
}

// confirm reads those shards that are not known to be whole. Its error is a *LostShards if
// some are not.
func (h *held) confirm(ctx context.Context) error {
	if h.files == nil {
		return nil
	}
	err := h.confirmAll(ctx)
	h.looking.Lock()
	defer h.looking.Unlock()
	if _, lost := errors.AsType[*LostShards](h.err); !lost {
		h.err = err
	}
	return err
}

func (h *held) confirmAll(ctx context.Context) error {
	var lost []*shards.Unusable
	for i, s := range h.shards {
		if s == nil || h.hasLeft(i) {
			continue
		}
		if s.Broken() {
			h.files.Suspect(h.dataset.ID, i)
		} else {
			h.files.Recognise(ctx, h.dataset.ID, i, s)
		}
		err := h.files.Confirm(ctx, h.dataset.ID, i, s.Info())
		u, is := errors.AsType[*shards.Unusable](err)
		switch {
		case err == nil || is && u.Moved && h.mapsWhole(i):
		case is:
			lost = append(lost, u)
		default:
			return err
		}
	}
	if len(lost) > 0 {
		return &LostShards{h.dataset.Name, lost}
	}
	return nil
}

// mapsWhole reports whether the mapping of a file that the plan has moved away is whole. The file may
// have been written since it was last confirmed, so the mapping is read.
func (h *held) mapsWhole(shard int) bool {
	s := h.shards[shard]
	named, err := os.Stat(filepath.Join(h.folder, graph.ShardFile(shard)))
	gone := err != nil || !os.SameFile(named, s.Info())
	if digest, err := s.SHA256(); err != nil || digest != h.dataset.Shards[shard].SHA256 {
		return false
	}
	h.looking.Lock()
	defer h.looking.Unlock()
	if gone && h.left != nil { // nobody can write it any more
		h.left[shard] = true
	}
	return true
}

// hasLeft reports whether the mapping of a file is whole, and nobody can write the file any more.
func (h *held) hasLeft(shard int) bool {
	h.looking.Lock()
	defer h.looking.Unlock()
	return h.left[shard] && !h.shards[shard].Broken()
}

// broken reports whether a mapped file could not be read.
func (h *held) broken() bool {
	return slices.ContainsFunc(h.shards, func(s *graph.Shard) bool { return s != nil && s.Broken() })
}

// intact reports whether no file has changed since it was confirmed, and all could be read.
func (h *held) intact() bool {
	h.looking.Lock() // else another may take a change for seen before it has been looked at
	defer h.looking.Unlock()
	changed := h.watch.changed()
	if changed {
		h.watch.seen()
	}
	for i, s := range h.shards {
		if s != nil && (s.Broken() || changed && !h.left[i] && !h.files.Intact(h.dataset.ID, i, s.Info())) {
			h.watch.again()
			return false
		}
	}
	return true
}

// verify is the run's train.Verify.
func (h *held) verify(ctx context.Context, wait bool) error {
	if !wait {
		select {
		case <-h.done:
		default:
			return train.ErrUnverified
		}
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.looking.Lock()
	err := h.err
	h.looking.Unlock()
	_, lost := errors.AsType[*LostShards](err)
	switch {
	case lost:
		return err
	case err == nil && h.intact():
		return nil
	case !wait:
		return train.ErrUnverified
	}
	err = h.confirm(ctx)
	if _, lost := errors.AsType[*LostShards](err); err != nil && !lost && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", train.ErrUnverified, err) // it is no damage
	}
	return err
}

// open maps one shard. If it can't be used, and is damaged, the error is a *shards.Unusable.
func (h *held) open(ctx context.Context, path string, shard int) (*graph.Shard, error) {
	s, err := graph.OpenShard(path)
	if err == nil || h.files == nil {
		return s, err
	}
	if damage := h.files.Confirm(ctx, h.dataset.ID, shard, nil); damage != nil {
		return nil, damage
	}
	return nil, err
}
