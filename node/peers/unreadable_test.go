package peers

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/mapped/mappedtest"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// An answer that can't be read while it is sent does not look like one of another version, which
// nobody asks for again.
func TestAnswerThatCanNotBeReadIsAskedForAgain(t *testing.T) {
	short := mappedtest.Cut(t, 1<<16, 0)
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		var calls atomic.Int64
		w.serving(1, 7, 2, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			if calls.Add(1) == 1 {
				return reply(short)
			}
			return reply([]byte("whole"))
		})
		got, err := asker.Ask(t.Context(), 1, rows(1), nil)
		must(t, err)
		if string(got) != "whole" || calls.Load() != 2 {
			t.Errorf("%q after %d calls", got, calls.Load())
		}
	})
}
