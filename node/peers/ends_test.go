package peers

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// Who asked is gone in the middle of its answer, and nobody knows it yet: neither the
// end of the session nor that of a question waits for the network.
func TestCloseWaitsForNoNetwork(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		begun, ended := make(chan struct{}), make(chan error, 1)
		s := w.serving(1, 7, 2, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			close(begun)
			err := reply(make([]byte, 64<<20))
			ended <- err
			return err
		})
		q := rows(1)
		q.Limit = 64 << 20
		go func() { _, _ = asker.Ask(t.Context(), 1, q, nil) }()
		<-begun
		time.Sleep(5 * time.Millisecond)
		w.crash(0)
		time.Sleep(2 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("the answer was over before the session: %v", err)
		default:
		}
		begin := time.Now()
		s.Close(errors.New("the plan has changed"))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("closed after %s", took)
		}
		if err := <-ended; err == nil {
			t.Error("an answer that nobody took has arrived")
		}
	})
}

// An answer that is cut short by its session's end may be asked for again.
func TestAbortedAnswerIsAskedForAgain(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		begun := make(chan struct{})
		s := w.serving(1, 7, 2, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			close(begun)
			return reply(make([]byte, 64<<20))
		})
		w.net.Slow(addrOf(0).Addr().String(), 50*time.Millisecond)
		q := rows(1)
		q.Limit = 64 << 20
		ended := make(chan error, 1)
		go func() {
			_, err := asker.Ask(t.Context(), 1, q, nil)
			ended <- err
		}()
		<-begun
		s.Close(errors.New("the plan has changed"))
		time.Sleep(10 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("gave up at once: %v", err)
		default:
		}
		w.session(1, 8, 2)
		wantError(t, <-ended, mesh.ErrSuperseded)
	})
}

// A question to a node that is gone ends with its context, however much of it is still
// to be sent.
func TestQuestionToTheDeadEndsAtOnce(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, echo)
		_, err := asker.Ask(t.Context(), 1, rows(1), nil)
		must(t, err)
		w.crash(1)
		why := errors.New("the plan has changed")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(why) })
		begin := time.Now()
		_, err = asker.Ask(ctx, 1, rows(make([]byte, mesh.MaxBody)...), nil)
		wantError(t, err, why)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("ended after %s", took)
		}
	})
}

// One question is given up in the end, even if its node answers others.
func TestOneQuestionIsBounded(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
			if q.Step == 1 {
				return echo(ctx, from, q, reply)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		ended := make(chan error, 1)
		begin := time.Now()
		go func() {
			_, err := asker.Ask(t.Context(), 1, rows(1), nil)
			ended <- err
		}()
		other := rows()
		other.Step = 1
		for range 120 { // 20 minutes
			time.Sleep(10 * time.Second)
			_, err := asker.Ask(t.Context(), 1, other, nil)
			must(t, err)
			select {
			case err := <-ended:
				saysAll(t, err, "node n1 has not given rows of features (epoch 3, step 14) in 10m0s")
				if took := time.Since(begin); took < answerPatience || took > answerPatience+10*time.Second {
					t.Errorf("after %s", took)
				}
				return
			default:
			}
		}
		t.Fatal("asks for ever")
	})
}

// A session that has not opened says that its node is there: it is waited for, longer
// than for one that says nothing.
func TestSlowStartersAreWaitedFor(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		s := w.session(1, 7, 2)
		s.Answer(peer.Rows, echo)
		time.AfterFunc(5*time.Minute, s.Open)
		got, err := asker.Ask(t.Context(), 1, rows(5), nil)
		must(t, err)
		if string(got) != echoed(0, rows(5)) {
			t.Errorf("%q", got)
		}
		w.session(1, 8, 2) // never opens
		begin := time.Now()
		_, err = w.session(0, 8, 2).Ask(t.Context(), 1, rows(5), nil)
		saysAll(t, err, "it is not ready yet for generation 8 of the job")
		if took := time.Since(begin); took < answerPatience || took > answerPatience+openPatience+time.Second {
			t.Errorf("after %s", took)
		}
		begin = time.Now()
		_, err = w.session(0, 9, 2).Ask(t.Context(), 1, rows(5), nil)
		saysAll(t, err, "it has not begun, or has ended, its part of the job in generation 9")
		if took := time.Since(begin); took > patience+2*openPatience+time.Second {
			t.Errorf("after %s", took)
		}
	})
}

// What is made for one peer at once is bounded, and what others ask for does not wait
// for it, nor what nodes offer each other.
func TestAnswersOfOnePeerAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		limit  uint32
		peers  string
		atOnce int
	}{
		"many":            {1 << 10, "b", maxRunning},
		"large":           {256 << 20, "b", 2},
		"larger than all": {1<<32 - 1, "b", 1},
		"many peers":      {256 << 20, "bcdefghi", 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(nil, slog.New(slog.DiscardHandler))
				ids := strings.Split("abcdefghi", "")
				s := r.Open(key, 7, ids, ids, 0)
				release, running := make(chan struct{}), make(chan struct{}, 1000)
				s.Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
					running <- struct{}{}
					<-release
					return reply()
				})
				s.Answer(peer.Offers, echo)
				s.Open()
				answers := make(chan string, 1000)
				ask := func(peer string, service peer.Service) {
					about := about(7)
					about.service, about.limit = service, c.limit
					h, l := write(about, nil)
					go func() { answers <- reasonOf(r.Serve(t.Context(), peer, h, l)) }()
					synctest.Wait()
				}
				asked := 0
				for range maxRunning + 8 {
					for p := range strings.SplitSeq(c.peers, "") {
						ask(p, peer.Rows)
						asked++
					}
				}
				if len(running) != c.atOnce || len(answers) != 0 {
					t.Fatalf("%d answers are made at once, %d are done", len(running), len(answers))
				}
				ask("b", peer.Offers)
				if got := <-answers; got != "<nil>" {
					t.Fatalf("an offer: %q", got)
				}
				time.Sleep(openPatience)
				synctest.Wait()
				if late := len(answers); late != asked-c.atOnce {
					t.Fatalf("%d are to come again of %d", late, asked)
				}
				for range asked - c.atOnce {
					if got := <-answers; got != reasonLater {
						t.Fatalf("too much is %q", got)
					}
				}
				ask("b", peer.Rows)
				close(release)
				for range c.atOnce + 1 {
					if got := <-answers; got != "<nil>" {
						t.Fatalf("then: %q", got)
					}
				}
				synctest.Wait()
				if len(r.loads) != 0 || r.answers != 0 || r.waiting != 0 {
					t.Errorf("still holds %v, %d bytes, %d wait", r.loads, r.answers, r.waiting)
				}
			})
		})
	}
}
