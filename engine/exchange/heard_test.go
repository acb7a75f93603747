package exchange

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// Heard returns once somebody has asked for an offer, whether before or after it was made, and
// for no other; or when its context ends.
func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := loopback.New(2)
		x, y := New(net.Node(0), work(2, 0)), New(net.Node(1), work(2, 1))
		net.Node(0).Open()
		net.Node(1).Open()
		first, second, third := Tag{Epoch: 1, Index: 1}, Tag{Epoch: 1, Index: 2}, Tag{Epoch: 1, Index: 3}
		x.Offer(first, []byte("a"))
		x.Offer(second, []byte("b"))
		heard := make(chan error, 1)
		go func() { heard <- x.Heard(t.Context(), first) }()
		take := func(tag Tag) {
			t.Helper()
			if err := y.Take(t.Context(), 0, peer.Activation, tag, make([]byte, 1), nil); err != nil {
				t.Fatal(err)
			}
		}
		take(second)
		synctest.Wait()
		select {
		case err := <-heard:
			t.Fatalf("heard before anybody asked: %v", err)
		default:
		}
		take(first)
		must(t, <-heard)
		must(t, x.Heard(t.Context(), first)) // at once

		early := make(chan error, 1)
		go func() { early <- y.Take(t.Context(), 0, peer.Activation, third, make([]byte, 1), nil) }()
		synctest.Wait()
		x.Offer(third, []byte("c"))
		must(t, x.Heard(t.Context(), third))
		must(t, <-early)

		must(t, x.Heard(t.Context(), Tag{Epoch: 1, Index: 9})) // never offered, or forgotten
		x.Offer(Tag{Epoch: 1, Index: 4}, []byte("d"))
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := errors.New("ended")
		cancel(ended)
		if err := x.Heard(ctx, Tag{Epoch: 1, Index: 4}); !errors.Is(err, ended) {
			t.Error(err)
		}
		if l := x.lane(0); len(l.waiting)+len(l.listening) != 0 {
			t.Errorf("%d answers wait, and %d listen", len(l.waiting), len(l.listening))
		}
	})
}
