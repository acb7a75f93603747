package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// letter is a request that comes from nowhere.
type letter struct {
	body  []byte
	stuck bool // its body does not arrive whole
	said  []byte
}

func (l *letter) ReadBody(dst []byte) error {
	if n := copy(dst, l.body); n < len(dst) {
		return io.ErrUnexpectedEOF
	}
	l.body = l.body[len(dst):]
	return nil
}

func (l *letter) TakeBody(into []byte, n int) ([]byte, error) {
	if l.stuck {
		return nil, mesh.ErrStalled
	}
	return append(into[:0], l.body[:n]...), nil
}

func (l *letter) Abort(error) {}

func (l *letter) ReplyCopied(count uint64, parts ...[]byte) error { return l.Reply(count, parts...) }

func (l *letter) Reply(_ uint64, parts ...[]byte) error {
	l.said = bytes.Join(parts, nil)
	return nil
}

// write makes a question as it arrives.
func write(h head, body []byte) (mesh.Header, *letter) {
	b := append(h.append(nil), body...)
	return mesh.Header{Kind: mesh.Feature, Flags: Flag, Count: 1, Length: uint64(len(b))}, &letter{body: b}
}

func about(generation uint64) head {
	return head{job: keyOf(key), service: peer.Rows, generation: generation, limit: 1 << 20}
}

// wire is a mesh that answers as its function says.
type wire func(n int, peer string, q mesh.Question) ([]byte, error)

type scripted struct {
	mu   sync.Mutex
	wire wire
	at   []time.Time
}

func (s *scripted) Fetch(_ context.Context, peer string, q mesh.Question) ([]byte, error) {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	n := len(s.at)
	s.mu.Unlock()
	return s.wire(n, peer, q)
}

func over(w wire) (*scripted, *Session) {
	m := &scripted{wire: w}
	return m, New(m, slog.New(slog.DiscardHandler)).Open(key, 7, []string{"a", "b", "c"}, []string{"na", "nb", "nc"}, 0)
}

func reasonOf(err error) string {
	if r := mesh.RefusalOf(err); r != "" {
		return r
	}
	return fmt.Sprint(err)
}

func TestAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := over(func(n int, _ string, q mesh.Question) ([]byte, error) {
			switch {
			case n == 2:
				return nil, mesh.Refuse(reasonLater, "not yet")
			case n < 8:
				return nil, []error{mesh.ErrLost, mesh.ErrOverload, mesh.ErrShutdown, mesh.ErrStalled, mesh.ErrNoAddress, io.ErrUnexpectedEOF}[n%6]
			}
			return append(q.Into[:0], q.Body...), nil
		})
		got, err := s.Ask(t.Context(), 1, rows(1, 2), nil)
		must(t, err)
		var pauses []time.Duration
		for i := range m.at[1:] {
			pauses = append(pauses, m.at[i+1].Sub(m.at[i]))
		}
		var want []time.Duration
		for _, ms := range []int64{50, 100, 200, 400, 800, 1000, 1000} {
			want = append(want, time.Duration(ms*1e6))
		}
		if !slices.Equal(pauses, want) || !bytes.Equal(got, []byte{1, 2}) {
			t.Errorf("pauses %v, answer %v", pauses, got)
		}
	})
}

func TestWhatIsNotAskedAgain(t *testing.T) {
	for _, no := range []error{mesh.ErrSuperseded, mesh.ErrUnauthorised, mesh.ErrProtocol, mesh.ErrSelf, mesh.ErrClosed, mesh.Refuse(reasonNo, "never"), mesh.Refuse("", "never")} {
		synctest.Test(t, func(t *testing.T) {
			m, s := over(func(int, string, mesh.Question) ([]byte, error) { return nil, fmt.Errorf("fetch: %w", no) })
			_, err := s.Ask(t.Context(), 2, rows(), nil)
			wantError(t, err, peer.ErrRefused)
			wantError(t, err, no)
			if len(m.at) != 1 {
				t.Errorf("%v: asked %d times", no, len(m.at))
			}
		})
	}
}

// As long as a node answers anything, it is not given up.
func TestPatienceIsWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, s := over(func(_ int, peer string, q mesh.Question) ([]byte, error) {
			if peer == "b" && q.Step == 1 && time.Since(begin) < 3*time.Minute {
				return nil, nil
			}
			return nil, mesh.ErrOverload
		})
		ended := make(chan time.Duration, 2)
		for _, to := range []int{1, 2} {
			go func() {
				if _, err := s.Ask(t.Context(), to, rows(), nil); !errors.Is(err, mesh.ErrOverload) {
					t.Errorf("got %v", err)
				}
				ended <- time.Since(begin)
			}()
		}
		other := rows()
		other.Step = 1
		for time.Since(begin) < 3*time.Minute {
			_, err := s.Ask(t.Context(), 1, other, nil)
			must(t, err)
			time.Sleep(30 * time.Second)
		}
		if silent, busy := <-ended, <-ended; silent < patience || silent > patience+2*time.Second || busy < 3*time.Minute+patience/2 || busy > 4*time.Minute+2*time.Second {
			t.Errorf("gave one up after %s, the other after %s", silent, busy)
		}
	})
}

func TestAskThatMakesNoSense(t *testing.T) {
	m, s := over(func(int, string, mesh.Question) ([]byte, error) { return nil, nil })
	for what, ask := range map[string]func() (int, peer.Query){
		"itself":       func() (int, peer.Query) { return 0, rows() },
		"nobody":       func() (int, peer.Query) { return 3, rows() },
		"less":         func() (int, peer.Query) { return -1, rows() },
		"no kind":      func() (int, peer.Query) { q := rows(); q.Kind = peer.Kinds; return 1, q },
		"no service":   func() (int, peer.Query) { q := rows(); q.Service = 0; return 1, q },
		"high service": func() (int, peer.Query) { q := rows(); q.Service = services; return 1, q },
	} {
		node, q := ask()
		if _, err := s.Ask(t.Context(), node, q, nil); err == nil {
			t.Errorf("asked %s", what)
		}
	}
	if len(m.at) != 0 {
		t.Errorf("asked %d times", len(m.at))
	}
}

func TestAskAllocatesNothing(t *testing.T) {
	s := New(still{}, slog.New(slog.DiscardHandler)).Open(key, 7, []string{"a", "b"}, []string{"na", "nb"}, 0)
	var tally peer.Tally
	q, buf, ctx := rows(1, 2, 3), make([]byte, 64), t.Context()
	q.Tally = &tally
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Ask(ctx, 1, q, buf) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// still is a mesh whose answers are in the buffer already.
type still struct{}

func (still) Fetch(_ context.Context, _ string, q mesh.Question) ([]byte, error) { return q.Into, nil }

func TestQuestionsOfOnePeerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, slog.New(slog.DiscardHandler))
		s := r.Open(key, 7, []string{"a", "b", "c"}, []string{"na", "nb", "nc"}, 0)
		release := make(chan struct{})
		s.Answer(peer.Rows, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			<-release
			return reply()
		})
		answers := make(chan string, 2*maxWaiting)
		ask := func(peer string, bytes int) {
			h, l := write(about(7), make([]byte, bytes))
			go func() { answers <- reasonOf(r.Serve(t.Context(), peer, h, l)) }()
			synctest.Wait()
		}
		for range maxBodies / mesh.MaxBody {
			ask("b", mesh.MaxBody)
		}
		if len(answers) != 0 {
			t.Fatalf("answered %q", <-answers)
		}
		ask("b", 1)
		if got := <-answers; got != reasonLater {
			t.Fatalf("one byte too much: %q", got)
		}
		for range maxWaiting {
			ask("c", 0)
		}
		if len(answers) != 0 {
			t.Fatalf("answered %q", <-answers)
		}
		ask("c", 0)
		if got := <-answers; got != reasonLater {
			t.Fatalf("one question too many: %q", got)
		}
		s.Open()
		close(release)
		for range maxWaiting + maxBodies/mesh.MaxBody {
			if got := <-answers; got != "<nil>" {
				t.Fatalf("then: %q", got)
			}
		}
		synctest.Wait()
		if len(r.loads) != 0 {
			t.Errorf("still holds %v", r.loads)
		}
	})
}

func TestWaitForASessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, slog.New(slog.DiscardHandler))
		begin := time.Now()
		h, l := write(about(7), nil)
		if got := reasonOf(r.Serve(t.Context(), "b", h, l)); got != reasonLater || time.Since(begin) != 30*time.Second {
			t.Errorf("%q after %s", got, time.Since(begin))
		}
		why := errors.New("the asker has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		h, l = write(about(7), nil)
		wantError(t, r.Serve(ctx, "b", h, l), why)
	})
}

func TestBrokenQuestions(t *testing.T) {
	r := New(nil, slog.New(slog.DiscardHandler))
	s := r.Open(key, 7, []string{"a", "b"}, []string{"na", "nb"}, 0)
	s.Answer(peer.Rows, echo)
	s.Open()
	h, l := write(about(7), nil)
	h.Length = headBytes - 1
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrProtocol)
	h.Length = headBytes + mesh.MaxBody + 1
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrProtocol)
	h.Length = 1 << 63
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrProtocol)
	h, l = write(about(7), nil)
	h.Kind = 99
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrProtocol)
	h, l = write(about(7), []byte{1})
	l.stuck = true
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrOverload) // it may come again
	l.body = l.body[:3]
	wantError(t, r.Serve(t.Context(), "b", h, l), mesh.ErrOverload)
	h, l = write(about(7), []byte{1, 2})
	must(t, r.Serve(t.Context(), "b", h, l))
	if len(r.loads) != 0 || !bytes.HasSuffix(l.said, []byte{1, 2}) {
		t.Errorf("said %v, holds %v", l.said, r.loads)
	}
}

// Jobs come and go for as long as a daemon runs.
func TestFewJobsAreRemembered(t *testing.T) {
	r := New(nil, slog.New(slog.DiscardHandler))
	kept := r.Open(key, 7, []string{"a"}, []string{"na"}, 0)
	for i := range 3 * maxClosed {
		r.Open(fmt.Sprintf("%08x", i), 1, []string{"a"}, []string{"na"}, 0).Close(nil)
	}
	if len(r.jobs) != maxClosed || r.jobs[keyOf(key)].session != kept {
		t.Errorf("remembers %d jobs", len(r.jobs))
	}
}

func TestHeadSurvivesTheWire(t *testing.T) {
	h := head{job: keyOf("01fe23dc"), service: peer.Columns, generation: 1 << 60, epoch: 2, step: 3, part: 4, limit: 1<<32 - 1}
	b := h.append(nil)
	if len(b) != headBytes || len(b)+peer.AnswerFraming != peer.QueryFraming {
		t.Fatalf("%d bytes", len(b))
	}
	got, err := parseHead((*[headBytes]byte)(b))
	if err != nil || got != h {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, at := range []int{5, 6, 7} {
		bad := [headBytes]byte(b)
		bad[at] = 1
		_, err := parseHead(&bad)
		wantError(t, err, mesh.ErrProtocol)
	}
	for _, service := range []byte{0, services, 255} {
		bad := [headBytes]byte(b)
		bad[4] = service
		_, err := parseHead(&bad)
		wantError(t, err, mesh.ErrProtocol)
	}
}

func TestKindsAreThoseOfTheMesh(t *testing.T) {
	for k := range peer.Kinds {
		if back, in := fromWire(onWire[k]); k.String() != onWire[k].String() || back != k || !in {
			t.Errorf("%s is %s on the wire, and %s again", k, onWire[k], back)
		}
	}
	if len(Kinds()) != len(mesh.Kinds()) {
		t.Errorf("%d kinds of %d", len(Kinds()), len(mesh.Kinds()))
	}
}

func FuzzHead(f *testing.F) {
	f.Add(about(7).append(nil))
	f.Add(bytes.Repeat([]byte{0xff}, headBytes))
	short := about(7)
	short.limit = 18 // a byte less than the echo of nothing
	f.Add(short.append(nil))
	f.Add(make([]byte, headBytes))
	r := New(nil, slog.New(slog.DiscardHandler))
	s := r.Open(key, 7, []string{"a", "b"}, []string{"na", "nb"}, 0)
	s.Answer(peer.Rows, echo)
	s.Open()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headBytes {
			return
		}
		in := [headBytes]byte(b)
		h, err := parseHead(&in)
		if err == nil && !bytes.Equal(h.append(nil), in[:]) {
			t.Fatalf("%x was read as %+v", in, h)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody waits
		q := mesh.Header{Kind: mesh.Feature, Length: uint64(len(b))}
		l := &letter{body: b}
		if err := r.Serve(ctx, "b", q, l); err == nil && (h.job != keyOf(key) || h.generation != 7 || uint32(len(l.said)) > h.limit) {
			t.Fatalf("%+v was answered with %x", h, l.said)
		}
	})
}
