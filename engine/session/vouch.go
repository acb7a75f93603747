package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Vouched is a connection to the other nodes of a run that carries nothing computed from a damaged
// shard. The others keep what they have computed if the run ends at any step, for any reason. So
// once the shards have been verified, each question and each answer is sent only after a check
// that they have not changed. Before that no node keeps anything: see train.intact.
type Vouched struct {
	peer.Peers
	verify Verify
	sure   atomic.Bool // the shards were found whole

	mu   sync.Mutex
	fail func(error) // ends the run; nil: it has not begun
}

// Vouch returns the peers of a run that verifies its shards.
func Vouch(p peer.Peers, v Verify) *Vouched { return &Vouched{Peers: p, verify: v} }

// Verify is the Verify of the run.
func (v *Vouched) Verify(ctx context.Context, wait bool) error {
	err := v.verify(ctx, wait)
	if err == nil {
		v.sure.Store(true)
	}
	return err
}

// Fails sets what ends the run when it can't vouch for its shards.
func (v *Vouched) Fails(fail func(error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fail = fail
}

// sound returns an error, and ends the run, if the shards are not whole any more.
func (v *Vouched) sound(ctx context.Context) error {
	if !v.sure.Load() || v.verify(ctx, false) == nil {
		return nil
	}
	// Something has changed in their folder. It may be another file.
	err := v.verify(ctx, true)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v.mu.Lock()
	fail := v.fail
	v.mu.Unlock()
	if fail != nil {
		fail(err)
	}
	return fmt.Errorf("%w: this node can't vouch for its shards: %w", peer.ErrRefused, err)
}

// lost ends the run if its shards can't be read any more.
func (v *Vouched) lost(err error) {
	v.mu.Lock()
	fail := v.fail
	v.mu.Unlock()
	if err != nil && fail != nil {
		fail(err)
	}
}

// dependsOnShards reports whether messages of a service are computed from shards. Those of
// Checkpoint are not, and verification needs them.
func dependsOnShards(s peer.Service) bool { return s != peer.Checkpoint }

// Ask implements peer.Peers.
func (v *Vouched) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	if dependsOnShards(q.Service) {
		if err := v.sound(ctx); err != nil {
			return nil, err
		}
	}
	return v.Peers.Ask(ctx, node, q, buf)
}

// endPatience is how long who asks is kept waiting for the end of a run that can't answer.
const endPatience = 5 * time.Second

// Answer implements peer.Peers.
func (v *Vouched) Answer(s peer.Service, h peer.Handler) {
	if !dependsOnShards(s) {
		v.Peers.Answer(s, h)
		return
	}
	v.Peers.Answer(s, func(ctx context.Context, from int, q peer.Query, reply func(parts ...[]byte) error) error {
		var unsound error
		err := h(ctx, from, q, func(parts ...[]byte) (err error) {
			if unsound = v.sound(ctx); unsound != nil {
				return unsound
			}
			// What lies in the mapped files is read by reply, which panics where it can't be.
			defer func() {
				if fault := recover(); fault != nil {
					v.lost(mapped.Unreadable(fault))
					panic(fault)
				}
				if again := v.sound(ctx); again != nil {
					err = errors.Join(err, again)
				}
			}()
			return reply(parts...)
		})
		if unsound == nil {
			return err
		}
		// The run is about to end here. To be refused would end it there, as if for good.
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(endPatience):
			return err
		}
	})
}
