package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// A request whose answer may have been lost with a retired connection is not made again.
func TestOnlyRequestsThatNobodyHasBegunMove(t *testing.T) {
	closed := &quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(CodeIdle)}
	refused := &quic.StreamError{Remote: true, ErrorCode: quic.StreamErrorCode(CodeIdle)}
	for _, c := range []struct {
		err  error
		age  time.Duration
		want bool
	}{
		{fmt.Errorf("ask: %w", closed), time.Second, true},
		{closed, retireQuiet * retireCheck, false},
		{refused, time.Minute, true},
		{&quic.ApplicationError{ErrorCode: closed.ErrorCode}, 0, false},
		{&quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(CodeShutdown)}, 0, false},
		{errors.New("another"), 0, false},
	} {
		if got := movedOn(c.err, c.age); got != c.want {
			t.Errorf("%v after %v: %v", c.err, c.age, got)
		}
	}
}

// A node that retires its connections loses no request of its peers, which know nothing of
// it, and makes none twice: those on a connection that it refuses go to another.
func TestRetiredConnectionsLoseNoRequest(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		var begun atomic.Int64
		asker, owner := g.meshes[0], g.open(nil)
		owner.Handle("echo", echo)
		owner.HandleBulk(Feature, func(_ context.Context, r *Request) error {
			begun.Add(1)
			return r.Reply(1, []byte("answer"))
		})
		owner.Ready()
		g.wait("they know each other", func() bool { return len(alive(asker)) == 2 && len(alive(owner)) == 2 })
		renewed := time.NewTicker(700 * time.Millisecond)
		defer renewed.Stop()
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		asked := int64(0)
		for begin := time.Now(); time.Since(begin) < 10*time.Second; {
			select {
			case <-renewed.C:
				owner.Redial()
			case <-pace.C:
				asked++
				got, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: 10})
				if err != nil || string(got) != "answer" {
					t.Fatalf("request %d: %q, %v", asked, got, err)
				}
				if _, err := asker.Call(t.Context(), owner.ID(), "echo", []byte("b")); err != nil {
					t.Fatalf("call %d: %v", asked, err)
				}
			}
		}
		if begun.Load() != asked || asked < 1000 {
			t.Errorf("%d requests were begun %d times", asked, begun.Load())
		}
	})
}
