package exchange

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// Memory that is offered is freed by the last answer that reads it, also of an offer that is
// forgotten meanwhile; and at once if nobody does.
func TestRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(loopback.New(2).Node(0), work(2, 0))
		tag, gate, row := Tag{Epoch: 1, Lane: LaneMirror}, make(chan struct{}), []byte("row")
		x.Offer(tag, row)
		query := peer.Query{Service: peer.Offers, Kind: peer.Activation, Epoch: 1, Part: tag.part(), Limit: len(row)}
		answered := make(chan error, 2)
		for range 2 {
			go func() {
				answered <- x.answer(t.Context(), 1, query, func(...[]byte) error {
					<-gate
					return nil
				})
			}()
		}
		synctest.Wait()
		x.Offer(Tag{Epoch: 2, Lane: LaneMirror}, row)
		x.Offer(Tag{Epoch: 3, Lane: LaneMirror}, row)
		freed := false
		x.Retire(func() { freed = true }, LaneBoundary, LaneMirror)
		query.Epoch = 3
		if err := x.answer(t.Context(), 1, query, func(...[]byte) error { return nil }); !errors.Is(err, peer.ErrRefused) {
			t.Errorf("what is withdrawn is answered: %v", err)
		}
		gate <- struct{}{}
		must(t, <-answered)
		synctest.Wait()
		if freed {
			t.Fatal("freed while an answer reads it")
		}
		gate <- struct{}{}
		must(t, <-answered)
		synctest.Wait()
		if !freed {
			t.Fatal("not freed when nobody reads it any more")
		}
		freed = false
		x.Retire(func() { freed = true }, LaneMirror)
		if !freed {
			t.Error("not freed at once")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.answer(ctx, 1, peer.Query{Epoch: 9, Part: tag.part()}, nil); err == nil {
			t.Error("what never comes is answered")
		}
	})
}
