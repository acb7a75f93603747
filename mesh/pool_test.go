package mesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
		{fmt.Errorf("ask: %w", closed), retireCheck / 2, true},
		{closed, retireCheck, false},
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

// A request that was begun, and whose connection is closed as if nobody had, is not made again: it
// fails, and the error says that it may have been done.
func TestARequestThatWasBegunIsMadeOnce(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		var begun atomic.Int64
		asker, owner := g.meshes[0], g.open(nil)
		ends := func() {
			begun.Add(1)
			<-time.After(retireQuiet * retireCheck)
			for _, l := range owner.pool.links() {
				_ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodeIdle), "spare connection")
			}
		}
		owner.Handle("echo", func(context.Context, string, []byte) ([]byte, error) { ends(); return nil, nil })
		owner.HandleBulk(Feature, func(_ context.Context, r *Request) error { ends(); return r.Reply(1) })
		owner.Ready()
		g.wait("they know each other", func() bool { return len(alive(asker)) == 2 && len(alive(owner)) == 2 })
		for i, ask := range []func() error{
			func() error { _, err := asker.Call(t.Context(), owner.ID(), "echo", nil); return err },
			func() error {
				_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: 10})
				return err
			},
		} {
			if err := ask(); !errors.Is(err, ErrShutdown) || !strings.Contains(err.Error(), "may have been done") || begun.Load() != int64(i+1) {
				t.Errorf("request %d, begun %d times by now: %v", i, begun.Load(), err)
			}
		}
	})
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
