package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/mesh"
)

// saysAll fails the test unless an error says all of it.
func saysAll(t *testing.T, err error, says ...string) {
	t.Helper()
	for _, s := range says {
		if err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
}

func TestAskIsAnsweredAsOverLoopback(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, echo)
		inside := loopback.New(2)
		inside.Node(1).Answer(peer.Rows, echo)
		inside.Node(1).Open()
		for _, q := range []peer.Query{rows(1, 2, 3), rows(), rows(bytes.Repeat([]byte{9}, 3000)...), rows(bytes.Repeat([]byte{8}, 1<<20-64)...)} {
			for kind := range peer.Kinds {
				q.Kind = kind
				var ours, theirs peer.Tally
				buf := make([]byte, 5, 64)
				q.Tally = &theirs
				want, err := inside.Node(0).Ask(t.Context(), 1, q, nil)
				must(t, err)
				q.Tally = &ours
				got, err := asker.Ask(t.Context(), 1, q, buf)
				must(t, err)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s: an answer of %d bytes, %d inside", kind, len(got), len(want))
				}
				if (len(got) <= cap(buf)) != (&got[0] == &buf[0]) {
					t.Errorf("%s: %d bytes, in the buffer of %d: %v", kind, len(got), cap(buf), &got[0] == &buf[0])
				}
				if ours.Read() != theirs.Read() {
					t.Errorf("%s: counted %+v, and inside %+v", kind, ours.Read(), theirs.Read())
				}
			}
		}
		meter := w.seats[0].mesh.Meter().Read(mesh.Gradient)
		sent, got := 0, 0
		for _, n := range []int{3, 0, 3000, 1<<20 - 64} {
			sent, got = sent+peer.QueryFraming+n, got+peer.AnswerFraming+n+19
		}
		if meter.Sent != uint64(sent) || meter.Received != uint64(got) || meter.Requests != 4 {
			t.Errorf("the mesh counts %+v, not %d and %d", meter, sent, got)
		}
	})
}

func TestQuestionWaitsForItsSession(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		time.AfterFunc(5*time.Second, func() {
			w.session(1, 6, 2).Open() // an earlier one is not it
			s := w.session(1, 7, 2)
			s.Answer(peer.Rows, echo)
			time.AfterFunc(50*time.Second, s.Open)
		})
		begin := time.Now()
		got, err := asker.Ask(t.Context(), 1, rows(5), nil)
		must(t, err)
		if took := time.Since(begin); string(got) != echoed(0, rows(5)) || took < 55*time.Second || took > 57*time.Second {
			t.Errorf("%q after %s", got, took)
		}
	})
}

func TestStaleAndStrangeQuestionsAreRefused(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		begin := time.Now()
		old := w.session(0, 7, 2)
		s := w.serving(1, 8, 2, echo)
		_, err := old.Ask(t.Context(), 1, rows(), nil)
		wantError(t, err, peer.ErrRefused)
		wantError(t, err, mesh.ErrSuperseded)
		saysAll(t, err, "ask node n1 for rows of features (epoch 3, step 14)")
		// A session that is closed is still the newest there was.
		s.Close(errors.New("over"))
		_, err = old.Ask(t.Context(), 1, rows(), nil)
		wantError(t, err, mesh.ErrSuperseded)
		w.serving(1, 9, 2, echo)
		w.serving(1, 5, 2, echo) // who comes late changes nothing
		_, err = old.Ask(t.Context(), 1, rows(), nil)
		wantError(t, err, mesh.ErrSuperseded)
		_, err = w.session(2, 9, 3).Ask(t.Context(), 1, rows(), nil)
		wantError(t, err, peer.ErrRefused)
		saysAll(t, err, "does not share this job")
		q := rows()
		q.Service = 12
		_, err = w.session(0, 9, 2).Ask(t.Context(), 1, q, nil)
		wantError(t, err, peer.ErrRefused)
		saysAll(t, err, "nothing there answers service 12")
		if took := time.Since(begin); took > time.Second {
			t.Errorf("refusals took %s", took)
		}
	})
}

func TestHandlersWordIsTold(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		var calls atomic.Int64
		w.serving(1, 7, 2, func(_ context.Context, _ int, q peer.Query, reply func(...[]byte) error) error {
			calls.Add(1)
			switch q.Body[0] {
			case 0:
				return fmt.Errorf("%w: shard 9 is not here", peer.ErrRefused)
			case 1:
				panic("a bug")
			case 2:
				return nil
			case 3:
				return reply(make([]byte, q.Limit), []byte{1})
			case 4:
				return errors.New(strings.Repeat("long ", 1000))
			}
			_ = reply([]byte("first"))
			_ = reply([]byte("second"))
			return errors.New("after the answer nobody hears of this")
		})
		for n, says := range []string{"the other node refuses: shard 9 is not here", "a fault of hopmesh itself ended the question (a bug)", "gave no answer", "an answer of 1048577 bytes is over the limit of 1048576", "long long"} {
			_, err := asker.Ask(t.Context(), 1, rows(byte(n)), nil)
			wantError(t, err, peer.ErrRefused)
			saysAll(t, err, "ask node n1 for rows of features (epoch 3, step 14)", says)
			if strings.Count(fmt.Sprint(err), peer.ErrRefused.Error()) != 1 {
				t.Error(err)
			}
		}
		got, err := asker.Ask(t.Context(), 1, rows(9), nil)
		must(t, err)
		if string(got) != "first" || calls.Load() != 6 {
			t.Errorf("%q after %d calls", got, calls.Load())
		}
	})
}

// A peer that goes down while it answers, and comes back knowing nothing.
func TestPeerRestartsMidQuestion(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		var tally peer.Tally
		asked := make(chan struct{})
		gone := make(chan error, 1)
		w.serving(1, 7, 2, func(ctx context.Context, _ int, _ peer.Query, _ func(...[]byte) error) error {
			close(asked)
			<-ctx.Done()
			gone <- context.Cause(ctx)
			return ctx.Err()
		})
		go func() {
			<-asked
			w.crash(1)
			time.Sleep(5 * time.Second)
			w.start(1)
			time.Sleep(5 * time.Second)
			w.serving(1, 7, 2, echo)
		}()
		q := rows(1)
		q.Tally = &tally
		got, err := asker.Ask(t.Context(), 1, q, nil)
		must(t, err)
		if string(got) != echoed(0, q) || tally.Read().Requests[peer.Feature] != 1 {
			t.Errorf("%q, counted %+v", got, tally.Read())
		}
		wantError(t, <-gone, context.Canceled)
	})
}

func TestDeadPeerIsNamed(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, func(ctx context.Context, _ int, _ peer.Query, _ func(...[]byte) error) error {
			w.net.Partition([]string{addrOf(0).Addr().String()}, []string{addrOf(1).Addr().String()})
			<-ctx.Done()
			return ctx.Err()
		})
		var tally peer.Tally
		q := rows(1)
		q.Tally = &tally
		begin := time.Now()
		_, err := asker.Ask(t.Context(), 1, q, nil)
		saysAll(t, err, "node n1 has not given rows of features (epoch 3, step 14) in ", "start that node again", "the network between it and node n0")
		// What the connection takes to notice, and patience.
		if took := time.Since(begin); !errors.Is(err, peer.ErrUnreached) || took < lostPatience || took > lostPatience+30*time.Second || tally.Read() != (peer.Counts{}) {
			t.Errorf("%v after %s, counted %+v", err, took, tally.Read())
		}
	})
}

// A node that computes for long is not dead while its connection lives.
func TestAnswerMayTakeLong(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
			select {
			case <-time.After(9 * time.Minute):
			case <-ctx.Done():
				return ctx.Err()
			}
			return echo(ctx, from, q, reply)
		})
		got, err := asker.Ask(t.Context(), 1, rows(1), nil)
		must(t, err)
		if string(got) != echoed(0, rows(1)) {
			t.Errorf("%q", got)
		}
	})
}

// Where a step is the whole graph, what another node offers may take most of an epoch.
// One that dies in between is noticed no later than else.
func TestOffersMayTakeAnEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		service peer.Service
		dies    bool
		least   time.Duration // that asking takes
		most    time.Duration
		answer  bool
	}{
		"an offer":         {peer.Offers, false, 40 * time.Minute, 41 * time.Minute, true},
		"rows":             {peer.Rows, false, answerPatience, answerPatience + time.Minute, false},
		"a node that dies": {peer.Offers, true, 15 * time.Minute, 17 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(t *testing.T, w *world) {
				s := w.session(1, 7, 2)
				s.Answer(c.service, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
					select {
					case <-time.After(40 * time.Minute):
					case <-ctx.Done():
						return ctx.Err()
					}
					return echo(ctx, from, q, reply)
				})
				s.Open()
				if c.dies {
					time.AfterFunc(15*time.Minute, func() {
						w.net.Partition([]string{addrOf(0).Addr().String()}, []string{addrOf(1).Addr().String()})
					})
				}
				q := rows(1)
				q.Service = c.service
				begin := time.Now()
				got, err := w.session(0, 7, 2).Ask(t.Context(), 1, q, nil)
				if took := time.Since(begin); took < c.least || took > c.most || (err == nil) != c.answer || c.answer && string(got) != echoed(0, q) {
					t.Errorf("after %s: %q, %v", took, got, err)
				}
			})
		})
	}
}

func TestCloseEndsAnswers(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		asked, told := make(chan struct{}), make(chan error, 1)
		s := w.serving(1, 7, 2, func(ctx context.Context, _ int, _ peer.Query, _ func(...[]byte) error) error {
			close(asked)
			<-ctx.Done()
			time.Sleep(3 * time.Second) // Close waits for this
			told <- context.Cause(ctx)
			return context.Cause(ctx)
		})
		ended := make(chan error, 1)
		go func() {
			_, err := asker.Ask(t.Context(), 1, rows(1), nil)
			ended <- err
		}()
		<-asked
		why := errors.New("the node stops")
		begin := time.Now()
		s.Close(why)
		if took := time.Since(begin); took < 3*time.Second {
			t.Errorf("closed after %s", took)
		}
		wantError(t, <-told, why)
		s.Open() // too late
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

func TestAskEndsWithItsContextAndItsSession(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		gone := make(chan struct{}, 1)
		w.serving(1, 7, 2, func(ctx context.Context, _ int, _ peer.Query, _ func(...[]byte) error) error {
			<-ctx.Done()
			gone <- struct{}{}
			return ctx.Err()
		})
		why := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		asker := w.session(0, 7, 2)
		_, err := asker.Ask(ctx, 1, rows(), nil)
		wantError(t, err, why)
		<-gone // the other node notices, too

		w.crash(1)
		time.AfterFunc(time.Second, func() { asker.Close(why) })
		begin := time.Now()
		_, err = asker.Ask(t.Context(), 1, rows(), nil)
		wantError(t, err, why)
		if took := time.Since(begin); took > patience {
			t.Errorf("took %s", took)
		}
	})
}

func TestLargeBodies(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		w.serving(1, 7, 2, func(_ context.Context, _ int, q peer.Query, reply func(...[]byte) error) error {
			return reply(q.Body[len(q.Body)-3:], fmt.Append(nil, len(q.Body)))
		})
		random := rand.NewChaCha8([32]byte{})
		body := make([]byte, mesh.MaxBody)
		_, _ = random.Read(body)
		got, err := asker.Ask(t.Context(), 1, rows(body...), nil)
		must(t, err)
		if want := string(body[mesh.MaxBody-3:]) + fmt.Sprint(mesh.MaxBody); string(got) != want {
			t.Errorf("%q, not %q", got, want)
		}
		_, err = asker.Ask(t.Context(), 1, rows(make([]byte, mesh.MaxBody+1)...), nil)
		saysAll(t, err, "ask node n1", "16777217 bytes is over the limit of 16777216")
	})
}

func TestManyAskAtOnce(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		var sessions []*Session
		for i := range w.seats {
			sessions = append(sessions, w.serving(i, 7, 3, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
				select {
				case <-time.After(time.Duration(q.Step%7) * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				return echo(ctx, from, q, reply)
			}))
		}
		w.net.Lose(0.01, time.Millisecond)
		var wg sync.WaitGroup
		var tally peer.Tally
		for i, s := range sessions {
			for k := range 24 {
				wg.Go(func() {
					var buf []byte
					for n := range 5 {
						to := (i + 1 + (k+n)%2) % 3
						q := rows(bytes.Repeat([]byte{byte(i), byte(k), byte(n)}, 1+k*n*50)...)
						q.Kind, q.Step, q.Tally = peer.Kind(k)%peer.Kinds, uint32(k*n), &tally
						got, err := s.Ask(t.Context(), to, q, buf)
						if err != nil || string(got) != echoed(i, q) {
							t.Errorf("node %d asked %d: %d bytes, %v", i, to, len(got), err)
							return
						}
						buf = got
					}
				})
			}
		}
		wg.Wait()
		total := uint64(0)
		for _, n := range tally.Read().Requests {
			total += n
		}
		if total != 3*24*5 {
			t.Errorf("counted %d questions", total)
		}
		synctest.Wait()
		for i, s := range w.seats {
			s.mu.Lock()
			if len(s.loads) != 0 {
				t.Errorf("node %d still holds %v", i, s.loads)
			}
			s.mu.Unlock()
		}
	})
}
