package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// rows serves Count rows of 64 bytes, each filled with its number as asked for
// in the request's body.
func rows(ctx context.Context, r *Request) error {
	ids := make([]byte, r.Length)
	if err := r.ReadBody(ids); err != nil {
		return err
	}
	var out []byte
	for i := 0; i+4 <= len(ids); i += 4 {
		out = append(out, bytes.Repeat(ids[i:i+1], 64)...)
	}
	return r.Reply(uint64(len(ids)/4), out)
}

func bulkPair(g *ground, serve BulkHandler) (asker, owner *Mesh) {
	asker = g.meshes[0]
	owner = g.open(nil)
	owner.HandleBulk(Feature, serve)
	owner.Ready()
	g.wait("they know each other", func() bool { return len(alive(asker)) == 2 && len(alive(owner)) == 2 })
	return asker, owner
}

// fetch asks for exactly as many bytes as dst has.
func fetch(ctx context.Context, asker, owner *Mesh, h Header, body, dst []byte) error {
	got, err := asker.Fetch(ctx, owner.ID(), Question{Header: h, Body: body, Into: dst, Limit: len(dst), Exact: true})
	if err == nil && (len(got) != len(dst) || len(dst) > 0 && &got[0] != &dst[0]) {
		return errors.New("the answer is not where it was asked for")
	}
	return err
}

func request(ids ...uint32) []byte {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

func TestFetchReadsIntoTheBufferAndMetersBothEnds(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		asker, owner := bulkPair(g, rows)
		dst := make([]byte, 3*64)
		req := request(7, 1, 9)
		must(t, fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 3}, req, dst))
		for i, want := range []byte{7, 1, 9} {
			if !bytes.Equal(dst[i*64:(i+1)*64], bytes.Repeat([]byte{want}, 64)) {
				t.Fatalf("row %d is %v", i, dst[i*64:(i+1)*64])
			}
		}
		sent, got := asker.Meter().Read(Feature), owner.Meter().Read(Feature)
		if want := uint64(headerSize + len(req)); sent.Sent != want || got.Received != want {
			t.Fatalf("request: sent %d, received %d, want %d", sent.Sent, got.Received, want)
		}
		if want := uint64(headerSize + len(dst)); got.Sent != want || sent.Received != want {
			t.Fatalf("answer: sent %d, received %d, want %d", got.Sent, sent.Received, want)
		}
		if sent.Requests != 1 {
			t.Fatalf("counted %d requests", sent.Requests)
		}
	})
}

// An answer of many parts, small, large or empty, arrives as if it were one.
func TestManyPartsArriveInOrder(t *testing.T) {
	var parts [][]byte
	var want []byte
	for i, size := range []int{400, 0, writeChunk - 300, 1, writeChunk, 7, 3*writeChunk + 5, 400, 0, 400, 2, 3} {
		part := bytes.Repeat([]byte{byte(i + 1)}, size)
		parts, want = append(parts, part), append(want, part...)
	}
	for _, n := range []int{few, len(parts)} {
		virtual(t, 1, func(t *testing.T, g *ground) {
			asker, owner := bulkPair(g, func(_ context.Context, r *Request) error { return r.Reply(1, parts[:n]...) })
			size := 0
			for _, p := range parts[:n] {
				size += len(p)
			}
			dst := make([]byte, size)
			must(t, fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1}, nil, dst))
			if !bytes.Equal(dst, want[:size]) {
				t.Errorf("%d parts arrive as something else", n)
			}
			if sent := owner.Meter().Read(Feature).Sent; sent != uint64(headerSize+size) {
				t.Errorf("%d parts: sent %d, not %d", n, sent, headerSize+size)
			}
		})
	}
}

func TestFetchRefusesAnAnswerThatIsNotWhatItAskedFor(t *testing.T) {
	for name, reply := range map[string]func(*Request) error{
		"more rows":   func(r *Request) error { return r.Reply(4, make([]byte, 3*64)) },
		"more bytes":  func(r *Request) error { return r.Reply(3, make([]byte, 4*64)) },
		"fewer bytes": func(r *Request) error { return r.Reply(3, make([]byte, 64)) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, g *ground) {
				asker, owner := bulkPair(g, func(_ context.Context, r *Request) error { return reply(r) })
				err := fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 3}, nil, make([]byte, 3*64))
				wantError(t, err, ErrProtocol)
			})
		})
	}
}

func TestFetchOfAKindThatNobodyServesFails(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		asker, owner := bulkPair(g, rows)
		err := fetch(t.Context(), asker, owner, Header{Kind: Gradient, Count: 1}, nil, make([]byte, 8))
		wantError(t, err, ErrProtocol)
	})
}

func TestGenerations(t *testing.T) {
	t.Run("a stale request is reset", func(t *testing.T) {
		virtual(t, 1, func(t *testing.T, g *ground) {
			asker, owner := bulkPair(g, rows)
			asker.SetGeneration(4)
			owner.SetGeneration(5)
			err := fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1, Generation: 4}, request(1), make([]byte, 64))
			wantError(t, err, ErrSuperseded)
		})
	})
	t.Run("a request from ahead waits for the plan", func(t *testing.T) {
		virtual(t, 1, func(t *testing.T, g *ground) {
			asker, owner := bulkPair(g, rows)
			asker.SetGeneration(5)
			owner.SetGeneration(4)
			time.AfterFunc(time.Second, func() { owner.SetGeneration(5) })
			begin := time.Now()
			must(t, fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1, Generation: 5}, request(1), make([]byte, 64)))
			if took := time.Since(begin); took < time.Second {
				t.Fatalf("answered after %s, before the plan was there", took)
			}
		})
	})
	t.Run("a new plan ends what is under way, on both ends", func(t *testing.T) {
		virtual(t, 1, func(t *testing.T, g *ground) {
			ended := make(chan error, 1)
			asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return context.Cause(ctx)
			})
			asker.SetGeneration(1)
			owner.SetGeneration(1)
			time.AfterFunc(time.Second, func() { owner.SetGeneration(2) })
			err := fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1, Generation: 1}, nil, make([]byte, 64))
			wantError(t, err, ErrSuperseded)
			wantError(t, <-ended, ErrSuperseded)
		})
	})
}

func TestFetchGivesUpOnAStall(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		release := make(chan struct{})
		asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
			<-release
			return errors.New("too late")
		})
		begin := time.Now()
		err := fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1}, nil, make([]byte, 64))
		close(release)
		wantError(t, err, ErrStalled)
		if took := time.Since(begin); took > progressTimeout+time.Second {
			t.Fatalf("took %s to notice", took)
		}
	})
}

// A slow transfer that moves is no stall, however long it takes.
func TestFetchIsBoundedByProgressNotByTime(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		const pieces = 6
		asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
			var b [headerSize]byte
			h := r.Header
			h.Count, h.Length = 1, pieces*1000
			if err := r.flow.write(h.append(b[:0])); err != nil {
				return err
			}
			for range pieces {
				<-time.After(progressTimeout * 2 / 5)
				if err := r.flow.write(make([]byte, 1000)); err != nil {
					return err
				}
			}
			return r.flow.stream.Close()
		})
		begin := time.Now()
		must(t, fetch(t.Context(), asker, owner, Header{Kind: Feature, Count: 1}, nil, make([]byte, pieces*1000)))
		if took := time.Since(begin); took < 2*progressTimeout {
			t.Fatalf("took %s: too fast to prove anything", took)
		}
	})
}

func TestFetchEndsWithItsContext(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		gone := make(chan struct{})
		asker, owner := bulkPair(g, func(ctx context.Context, r *Request) error {
			<-ctx.Done() // the owner must notice, too
			close(gone)
			return ctx.Err()
		})
		why := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		err := fetch(ctx, asker, owner, Header{Kind: Feature, Count: 1}, nil, make([]byte, 64))
		wantError(t, err, why)
		<-gone
	})
}

func TestHeaderSurvivesTheWire(t *testing.T) {
	h := Header{Kind: Shard, DType: 3, Flags: 9, Step: 77, Generation: 1 << 50, Count: 12, Length: 1 << 40}
	b := [headerSize]byte(h.append(nil))
	got, err := parseHeader(&b)
	if err != nil || got != h {
		t.Fatalf("got %+v, %v", got, err)
	}
	b[0] = 2
	if _, err := parseHeader(&b); !errors.Is(err, ErrProtocol) {
		t.Fatalf("another version was taken: %v", err)
	}
	b[0], b[1] = headerVersion, byte(kinds)
	if _, err := parseHeader(&b); !errors.Is(err, ErrProtocol) {
		t.Fatalf("an unknown kind was taken: %v", err)
	}
}

// Whoever answers can end that from elsewhere, at once, also when nobody reads; the
// asker may ask again.
func TestAbort(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		ended := make(chan time.Duration, 1)
		asker, owner := bulkPair(g, func(_ context.Context, r *Request) error {
			begin := time.Now()
			time.AfterFunc(time.Second, func() { r.Abort(ErrShutdown) })
			err := r.Reply(1, make([]byte, 256<<20))
			if err == nil {
				t.Error("all of it was taken")
			}
			ended <- time.Since(begin)
			time.AfterFunc(time.Second, func() { r.Abort(ErrShutdown) }) // too late, and of no effect
			return err
		})
		g.net.Slow("10.0.0.1", 100*time.Millisecond)
		_, err := asker.Fetch(t.Context(), owner.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Limit: 256 << 20})
		wantError(t, err, ErrShutdown)
		if took := <-ended; took > 1100*time.Millisecond {
			t.Errorf("ended after %s", took)
		}
		<-time.After(2 * time.Second)
	})
}
