package shards

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stalled is a request whose answer is read only once it is let go.
type stalled struct {
	asked
	let chan struct{}
}

func (s *stalled) Reply(count uint64, parts ...[]byte) error {
	<-s.let
	return s.asked.Reply(count, parts...)
}

// A peer that reads slowly leaves places to others, and nothing is kept of peers that are served.
func TestASlowReaderLeavesPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		k := w.open("a")
		k.serves = newServes(1 << 20)
		if n := cap(k.serves.running); n != 2 {
			t.Fatalf("there are %d places", n)
		}
		body, let := request{key{dataset, 0}, 100, 400}.append(nil), make(chan struct{})
		var slow sync.WaitGroup
		for range 2 {
			slow.Go(func() {
				if err := k.Serve(t.Context(), "b", requestBytes, &stalled{asked{body, make([]byte, 400)}, let}); err != nil {
					t.Errorf("the slow reader: %v", err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := k.Serve(ctx, "c", requestBytes, &asked{body, make([]byte, 400)}); err != nil {
			t.Errorf("another peer: %v", err)
		}
		if err := k.Serve(ctx, "b", requestBytes, &asked{body, make([]byte, 400)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the slow reader once more: %v", err)
		}
		close(let)
		slow.Wait()
		if n := len(k.serves.running); n > 0 || len(k.serves.peers) > 0 {
			t.Errorf("%d places are taken, and %d peers are known", n, len(k.serves.peers))
		}
	})
}
