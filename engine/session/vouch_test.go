package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/mapped/mappedtest"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// Once its shards were found whole, a node answers and asks only while they are.
func TestVouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damage := errors.New("a shard is damaged")
		var changed, damaged atomic.Bool
		net := loopback.New(2)
		v := Vouch(net.Node(0), func(_ context.Context, wait bool) error {
			switch {
			case wait && damaged.Load():
				return damage
			case wait:
				changed.Store(false)
				return nil
			case changed.Load():
				return ErrUnverified
			}
			return nil
		})
		v.Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			return reply([]byte("rows"))
		})
		v.Answer(peer.Checkpoint, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			return reply([]byte("word"))
		})
		net.Node(1).Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			return reply([]byte("others"))
		})
		v.Open()
		net.Node(1).Open()
		var ended error
		v.Fails(func(err error) { ended = err })
		ask := func(s peer.Service) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b, err := net.Node(1).Ask(ctx, 0, peer.Query{Service: s, Limit: 100}, nil)
			return string(b), err
		}
		asks := func() error {
			_, err := v.Ask(t.Context(), 1, peer.Query{Service: peer.Rows, Limit: 100}, nil)
			return err
		}
		both := func() []error {
			_, err := ask(peer.Rows)
			return []error{err, asks()}
		}
		changed.Store(true)
		damaged.Store(true)
		if err := errors.Join(both()...); err != nil || ended != nil {
			t.Errorf("before anything was verified: %v, %v", err, ended)
		}
		changed.Store(false)
		if err := v.Verify(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(both()...); err != nil || ended != nil {
			t.Errorf("while they are whole: %v, %v", err, ended)
		}
		damaged.Store(false)
		changed.Store(true)
		if err := errors.Join(both()...); err != nil || ended != nil || changed.Load() {
			t.Errorf("where another file changed: %v, %v", err, ended)
		}
		damaged.Store(true)
		changed.Store(true)
		begin := time.Now()
		if got := both(); slices.Contains(got, nil) || !errors.Is(ended, damage) {
			t.Errorf("where a shard is damaged: %v, %v", got, ended)
		}
		if waited := time.Since(begin); waited != endPatience {
			t.Errorf("who asked was kept waiting for %v", waited)
		}
		if word, err := ask(peer.Checkpoint); err != nil || word != "word" {
			t.Errorf("of other things: %q, %v", word, err)
		}
	})
}

// An answer is looked at again once it was read, or could not be: what lies in a mapped file is read
// while it is sent.
func TestVouchedAgain(t *testing.T) {
	looks := 0
	net := loopback.New(2)
	v := Vouch(net.Node(0), func(_ context.Context, wait bool) error {
		if looks++; looks == 3 && !wait { // the first is Verify's, the second before the answer
			return ErrUnverified
		}
		if wait {
			return errors.New("a shard is damaged")
		}
		return nil
	})
	v.Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error { return reply(nil) })
	v.Open()
	ended := false
	v.Fails(func(error) { ended = true })
	if err := v.Verify(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	_, _ = net.Node(1).Ask(t.Context(), 0, peer.Query{Service: peer.Rows, Limit: 100}, nil)
	if !ended {
		t.Errorf("after %d looks the run goes on", looks)
	}
}

// unreadable is a connection whose only handler a test calls.
type unreadable struct {
	peer.Peers
	answer peer.Handler
}

func (u *unreadable) Answer(_ peer.Service, h peer.Handler) { u.answer = h }

// A shard that is cut short while it is sent ends the run, even before the shards were verified.
func TestVouchedOfWhatCanNotBeRead(t *testing.T) {
	b := mappedtest.Cut(t, 1<<16, 0)
	defer mapped.End(mapped.Guard())
	u := &unreadable{}
	v := Vouch(u, func(context.Context, bool) error { return nil })
	v.Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error { return reply(b) })
	var ended error
	v.Fails(func(err error) { ended = err })
	ask := func() (err error) {
		defer mapped.Caught(&err)
		return u.answer(t.Context(), 1, peer.Query{Service: peer.Rows}, func(parts ...[]byte) error {
			return fmt.Errorf("sent %d", parts[0][0])
		})
	}
	if err := ask(); !errors.Is(err, mapped.ErrUnreadable) || !errors.Is(ended, mapped.ErrUnreadable) {
		t.Errorf("the answer ended with %v, and the run with %v", err, ended)
	}
}
