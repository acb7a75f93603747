package mesh

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAnswersThatAreOnlyBounded(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		random := make([]byte, 3*firstRoom+77)
		_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
		asker, owner := bulkPair(g, func(_ context.Context, r *Request) error {
			n := int(r.DType) << 12
			return r.Reply(1, random[:n/3], nil, random[n/3:n])
		})
		room := make([]byte, 0, 5<<12)
		for _, n := range []int{0, 1, 5, 6, 100, 190} {
			q := Question{Header: Header{Kind: Feature, DType: uint8(n), Count: 1}, Into: room, Limit: 190 << 12}
			got, err := asker.Fetch(t.Context(), owner.ID(), q)
			must(t, err)
			if !bytes.Equal(got, random[:n<<12]) {
				t.Fatalf("%d bytes of %d, or other ones", len(got), n<<12)
			}
			if fits := n <= 5; n > 0 && fits != (&got[0] == &room[:1][0]) {
				t.Errorf("%d bytes are in the room of %d: %v", len(got), cap(room), !fits)
			}
		}
		for _, limit := range []int{190<<12 - 1, 0, -1} {
			q := Question{Header: Header{Kind: Feature, DType: 190, Count: 1}, Limit: limit}
			_, err := asker.Fetch(t.Context(), owner.ID(), q)
			wantError(t, err, ErrProtocol)
			if !strings.Contains(err.Error(), "over the limit of") {
				t.Error(err)
			}
		}
	})
}

// A peer's word alone takes no memory, whatever the asker would take at most.
func TestAnnouncedAnswersTakeNoMemory(t *testing.T) {
	for name, c := range map[string]struct{ length, limit uint64 }{
		"within the limit": {4 << 30, 4 << 30}, "over the limit": {1 << 62, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, g *ground) {
				asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
					h := Header{Kind: Feature, Count: 1, Length: c.length}
					if err := r.flow.write(h.append(nil)); err != nil {
						return err
					}
					<-ctx.Done()
					return nil
				})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: int(c.limit)})
				runtime.ReadMemStats(&after)
				if err == nil || !errors.Is(err, ErrStalled) && !errors.Is(err, ErrProtocol) {
					t.Fatalf("got %v", err)
				}
				if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
					t.Errorf("took %d bytes", took)
				}
			})
		})
	}
}

func TestPatienceIsForTheBeginning(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		stuck := true
		asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
			select {
			case <-time.After(9 * time.Minute):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if !stuck {
				return r.Reply(1, make([]byte, 1000))
			}
			h := Header{Kind: Feature, Count: 1, Length: 1000}
			err := r.flow.write(h.append(nil))
			<-ctx.Done()
			return err
		})
		ask := func(patience time.Duration) (time.Duration, error) {
			begin := time.Now()
			_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: 1000, Patience: patience})
			return time.Since(begin).Round(time.Second), err
		}
		took, err := ask(10 * time.Minute)
		wantError(t, err, ErrStalled)
		if took != 9*time.Minute+progressTimeout {
			t.Errorf("an answer that stopped half way took %s to notice", took)
		}
		stuck = false
		took, err = ask(8 * time.Minute)
		wantError(t, err, ErrStalled)
		if took != 8*time.Minute {
			t.Errorf("waited %s", took)
		}
		took, err = ask(10 * time.Minute)
		if err != nil || took != 9*time.Minute {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A peer that is gone is not an end of this node's own mesh.
func TestLostPeerWhileItAnswers(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		asker, owner := bulkPair(g, func(ctx context.Context, _ *Request) error {
			g.net.Partition([]string{"10.0.0.1"}, []string{"10.0.0.2"})
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Patience: 10 * time.Minute})
		wantError(t, err, ErrLost)
		if took := time.Since(begin); errors.Is(err, ErrClosed) || took > idleTimeout+keepAlive+time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestRefusalIsTold(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		long := strings.Repeat("x", maxRefusal)
		asker, owner := bulkPair(g, func(_ context.Context, r *Request) error {
			if r.Count == 2 {
				return Refuse("why", "%s", long)
			}
			return Refuse("why", "because of %d bytes", r.Length)
		})
		// Also to one that is still sending, and nobody reads.
		for _, n := range []int{0, 100, MaxBody} {
			_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1, Flags: 0xff}, Preface: make([]byte, n/2), Body: make([]byte, n-n/2)})
			if r, ok := errors.AsType[*Refusal](err); !ok || r.Reason != "why" || !strings.HasPrefix(r.Message, "because of ") {
				t.Errorf("%d bytes: got %v", n, err)
			}
		}
		_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 2}})
		if r, ok := errors.AsType[*Refusal](err); !ok || !strings.HasPrefix(long, r.Message) || len(r.Message) < 100 {
			t.Errorf("got %v", err)
		}
	})
}

func TestHostileRefusals(t *testing.T) {
	for name, says := range map[string][]byte{
		"too long":        encodeAnswer(nil, Refuse("why", "%s", make([]byte, maxRefusal))),
		"no refusal":      encodeAnswer([]byte("yes"), nil),
		"cut short":       encodeAnswer(nil, Refuse("why", "because"))[:9],
		"nothing":         nil,
		"a status unlike": {7},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, g *ground) {
				asker, owner := bulkPair(g, func(_ context.Context, r *Request) error { return r.reply(flagRefusal, 0, says) })
				_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: 1 << 20})
				if RefusalOf(err) != "" || err == nil {
					t.Errorf("got %v", err)
				}
				if _, ok := errors.AsType[*Refusal](err); ok {
					t.Errorf("taken for a refusal: %v", err)
				}
			})
		})
	}
}

func TestBodies(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		asker, owner := bulkPair(g, func(_ context.Context, r *Request) error {
			var first [7]byte
			if err := r.ReadBody(first[:]); err != nil {
				return err
			}
			rest, err := r.TakeBody(make([]byte, 0, 3), int(r.Length)-7)
			if err != nil {
				return err
			}
			if _, err := r.TakeBody(nil, 1); !errors.Is(err, ErrProtocol) {
				return Refuse("beyond", "%v", err)
			}
			return r.Reply(1, first[:], rest)
		})
		body := make([]byte, MaxBody)
		_, _ = rand.NewChaCha8([32]byte{2}).Read(body)
		for _, n := range []int{2, 1000, 3000, firstRoom + 1, MaxBody} {
			got, err := asker.Fetch(t.Context(), owner.ID(), Question{
				Header: Header{Kind: Feature, Count: 1, Flags: 0xff}, Preface: []byte("preface"), Body: body[:n], Limit: n + 7, Exact: true,
			})
			must(t, err)
			if !bytes.Equal(got, append([]byte("preface"), body[:n]...)) {
				t.Fatalf("%d bytes came back as %d others", n, len(got))
			}
		}
		_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Preface: make([]byte, 1<<10+1), Body: body})
		if err == nil || !strings.Contains(err.Error(), "over the limit") {
			t.Errorf("got %v", err)
		}
	})
}

// An answer may be here before the question's end was told: over real sockets, with
// more goroutines than cores, that happens all the time.
func TestAnswersThatAreFast(t *testing.T) {
	g := newGround(t, nil)
	owner := g.open(nil)
	owner.HandleBulk(Feature, rows)
	owner.Ready()
	asker := g.open(nil)
	asker.Ready()
	g.wait("they know each other", func() bool { return len(alive(asker)) == 2 })
	var wg sync.WaitGroup
	for i := range uint32(32) {
		wg.Go(func() {
			dst := make([]byte, 64)
			for range 100 {
				if err := fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1}, request(i), dst); err != nil || dst[63] != byte(i) {
					t.Errorf("%v, %v", err, dst[63])
					return
				}
			}
		})
	}
	wg.Wait()
}

// A stream is gone when its answer has come, also where its end comes later: nothing of past
// questions stays in memory.
func TestStreamsEndWithTheirAnswers(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		body := make([]byte, 3000)
		asker, owner := bulkPair(g, func(_ context.Context, r *Request) error {
			h := Header{Kind: Feature, Count: 1, Length: uint64(len(body))}
			r.replied = true
			if err := r.flow.write(append(h.append(nil), body...)); err != nil {
				return err
			}
			<-time.After(time.Millisecond) // the end is sent by itself
			return r.flow.close(nil)
		})
		room := make([]byte, 0, len(body))
		ask := func(times int) uint64 {
			for range times {
				_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Into: room, Limit: len(body)})
				must(t, err)
			}
			<-time.After(time.Second)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := ask(100)
		const times = 1000
		if after := ask(times); after > before+times*500 {
			t.Errorf("%d questions left %d bytes", times, after-before)
		}
	})
}
