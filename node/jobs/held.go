package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
	if n := len(e.Lost) - 1; n > 0 {
		more = fmt.Sprintf(", and so are %d others", n)
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
	watch   *watch         // of their folder; nil: there is none

	cancel context.CancelFunc // nil: nothing is being verified
	done   chan struct{}      // closed when all have been read once
	err    error              // set before
}

// begin verifies the shards beside the training.
func (h *held) begin(folder string) {
	if h.files == nil {
		return
	}
	var err error
	if h.watch, err = newWatch(folder); err != nil {
		h.watch = nil // all files are looked at, each time
	}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		h.err = h.confirm(ctx)
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
	var lost []*shards.Unusable
	for i, s := range h.shards {
		if s == nil {
			continue
		}
		if s.Broken() {
			h.files.Suspect(h.dataset.ID, i)
		}
		err := h.files.Confirm(ctx, h.dataset.ID, i, s.Info())
		if u, is := errors.AsType[*shards.Unusable](err); is {
			lost = append(lost, u)
		} else if err != nil {
			return err
		}
	}
	if len(lost) > 0 {
		return &LostShards{h.dataset.Name, lost}
	}
	return nil
}

// intact reports whether no file has changed since it was confirmed, and all could be read.
func (h *held) intact() bool {
	changed := h.watch.changed()
	if changed {
		h.watch.seen()
	}
	for i, s := range h.shards {
		if s != nil && (s.Broken() || changed && !h.files.Intact(h.dataset.ID, i, s.Info())) {
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
	switch {
	case h.err != nil:
		return h.err
	case h.intact():
		return nil
	case !wait:
		return train.ErrUnverified
	}
	return h.confirm(ctx)
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
