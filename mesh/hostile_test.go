package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// hostile is a proven member that does not keep to the protocol: it has a
// certificate and a transport of its own, and none of this package's manners.
type hostile struct {
	t    testing.TB
	conn *quic.Conn
}

func (g *ground) hostile(victim *Mesh, c class) *hostile {
	g.t.Helper()
	id := g.admit("hostile")
	socket := g.socket(100 + int(c))
	tr := &quic.Transport{Conn: socket}
	g.t.Cleanup(func() {
		_ = tr.Close()
		_ = socket.Close()
	})
	conf := id.ClientTLS(c.alpn(), victim.ID(), func(string) error { return nil })
	conn, err := tr.Dial(g.t.(*testing.T).Context(), net.UDPAddrFromAddrPort(victim.cfg.Advertise), conf, &quic.Config{MaxIdleTimeout: time.Minute, KeepAlivePeriod: 5 * time.Second})
	must(g.t, err)
	return &hostile{g.t, conn}
}

// open opens a stream and writes these bytes.
func (h *hostile) open(b []byte) *quic.Stream {
	h.t.Helper()
	s, err := h.conn.OpenStreamSync(context.Background())
	must(h.t, err)
	_, err = s.Write(b)
	must(h.t, err)
	return s
}

// ends waits until the victim resets the stream and returns its code.
func (h *hostile) ends(s *quic.Stream) Code {
	h.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := io.ReadAll(s)
	se, ok := errors.AsType[*quic.StreamError](err)
	if !ok {
		h.t.Fatalf("the stream was not reset: %v", err)
	}
	return Code(se.ErrorCode)
}

func TestHostileControlStreams(t *testing.T) {
	for name, c := range map[string]struct {
		says []byte
		want Code
	}{
		"a kind that does not exist":   {[]byte{'?'}, CodeProtocol},
		"a call with a name too long":  {[]byte{streamCall, 255}, CodeProtocol},
		"a call with a body too long":  {append([]byte{streamCall, 1, 'x'}, 0xff, 0xff, 0xff, 0xff), CodeProtocol},
		"a call that stops half way":   {[]byte{streamCall, 4, 'e', 'c'}, CodeProtocol},
		"a kind byte and then nothing": {[]byte{streamCall}, CodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 1, func(t *testing.T, g *ground) {
				victim := g.meshes[0]
				h := g.hostile(victim, control)
				if got := h.ends(h.open(c.says)); got != c.want {
					t.Fatalf("ended with code %d, want %d", got, c.want)
				}
				g.stillServes(victim)
			})
		})
	}
}

// Streams for Raft, with no Raft that accepts them: only so many may wait.
func TestStreamsThatNobodyTakesAreTurnedAway(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		victim := g.meshes[0]
		h := g.hostile(victim, control)
		ends := make(chan error)
		for range cap(victim.raft.conns) + 1 {
			s := h.open([]byte{streamRaft})
			_ = s.SetReadDeadline(time.Now().Add(time.Minute))
			go func() {
				_, err := io.ReadAll(s)
				ends <- err
			}()
		}
		turned := 0
		for range cap(victim.raft.conns) + 1 {
			if se, ok := errors.AsType[*quic.StreamError](<-ends); ok && Code(se.ErrorCode) == CodeOverload {
				turned++
			}
		}
		if turned != 1 {
			t.Fatalf("%d streams were turned away", turned)
		}
		g.stillServes(victim)
	})
}

func TestHostileBulkStreams(t *testing.T) {
	huge := Header{Kind: Feature, Length: 1 << 62}.append(nil)
	badKind := Header{Kind: Feature}.append(nil)
	badKind[1] = 200
	for name, c := range map[string]struct {
		says []byte
		want Code
	}{
		"a request of four exabytes":    {huge, CodeProtocol},
		"a kind that does not exist":    {badKind, CodeProtocol},
		"half a header, then nothing":   {huge[:10], CodeProtocol},
		"a plan from the far future":    {Header{Kind: Feature, Generation: 1 << 60}.append(nil), CodeOverload},
		"a payload announced, not sent": {Header{Kind: Feature, Length: 64}.append(nil), CodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 0, func(t *testing.T, g *ground) {
				victim := g.open(nil)
				victim.HandleBulk(Feature, rows)
				victim.Handle("echo", echo)
				victim.Ready()
				h := g.hostile(victim, bulk)
				if got := h.ends(h.open(c.says)); got != c.want {
					t.Fatalf("ended with code %d, want %d", got, c.want)
				}
				g.stillServes(victim)
			})
		})
	}
}

// stillServes proves that an honest node gets its answer.
func (g *ground) stillServes(victim *Mesh) {
	g.t.Helper()
	honest := g.open(nil)
	honest.Ready()
	g.wait("the honest node knows the victim", func() bool { return len(alive(honest)) >= 2 })
	_, err := honest.Call(context.Background(), victim.ID(), "echo", []byte("still there?"))
	must(g.t, err)
}

// A flood of streams is stopped by the limit on streams, not by memory.
func TestFloodOfSilentStreams(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		victim := g.meshes[0]
		h := g.hostile(victim, control)
		opened := 0
		for {
			s, err := h.conn.OpenStream()
			if err != nil {
				break
			}
			if _, err := s.Write(nil); err != nil {
				t.Fatal(err)
			}
			opened++
		}
		if opened > maxStreams {
			t.Fatalf("%d streams at once", opened)
		}
		g.stillServes(victim)
	})
}

// One peer can't hold many connections.
func TestFloodOfConnections(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		victim := g.meshes[0]
		id := g.admit("many")
		socket := g.socket(50)
		tr := &quic.Transport{Conn: socket}
		defer socket.Close()
		defer tr.Close()
		conf := id.ClientTLS(identity.ALPNControl, victim.ID(), func(string) error { return nil })
		for range 3 * maxLinks {
			_, err := tr.Dial(t.Context(), net.UDPAddrFromAddrPort(victim.cfg.Advertise), conf, &quic.Config{KeepAlivePeriod: time.Second})
			must(t, err)
		}
		// Soon enough that none of them has been retired as a spare.
		<-time.After(retireCheck / 4)
		victim.pool.mu.Lock()
		held := victim.pool.count(id.ID())
		victim.pool.mu.Unlock()
		if held == 0 || held > maxLinks {
			t.Errorf("the victim holds %d connections of one peer", held)
		}
		g.stillServes(victim)
	})
}

// Raw packets that are neither gossip nor QUIC do no harm, and gossip without
// the key is not believed.
func TestGarbagePackets(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		victim := g.meshes[0]
		socket := g.socket(60)
		defer socket.Close()
		for i := range 2000 {
			b := bytes.Repeat([]byte{byte(i), byte(i >> 3)}, 1+i%300)
			if i%2 == 0 {
				b[0] = tagGossip
			}
			_, err := socket.WriteTo(b, net.UDPAddrFromAddrPort(victim.cfg.Advertise))
			must(t, err)
		}
		g.stillServes(victim)
		if n := len(alive(victim)); n != 3 {
			t.Fatalf("the victim sees %d nodes", n)
		}
	})
}

// A peer that stops reading blocks neither calls nor Raft's streams to others,
// nor those to itself: bulk has its own connection.
func TestStalledReaderDisturbsNobody(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		victim := g.open(nil)
		victim.Handle("echo", echo)
		victim.HandleBulk(Feature, func(_ context.Context, r *Request) error { return r.Reply(1, make([]byte, 256<<20)) })
		victim.Ready()
		g.wait("it is known", func() bool { return len(alive(g.meshes[0])) == 2 })
		h := g.hostile(victim, bulk)
		for range 8 {
			h.open(Header{Kind: Feature, Count: 1}.append(nil)) // and never read
		}
		begin := time.Now()
		for range 50 {
			_, err := g.meshes[0].Call(t.Context(), victim.ID(), "echo", nil)
			must(t, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("50 calls took %s", took)
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(Header{Kind: Feature, Count: 3, Length: 192}.append(nil))
	f.Add(bytes.Repeat([]byte{0xff}, headerSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		in := [headerSize]byte(b)
		h, err := parseHeader(&in)
		if err == nil && !bytes.Equal(h.append(nil), in[:]) {
			t.Fatalf("%x was read as %+v", in, h)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{4, 'e', 'c', 'h', 'o', 2, 0, 0, 0, 'h', 'i'})
	f.Add([]byte{200})
	f.Add(append([]byte{0}, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		method, body, err := readRequest(bytes.NewReader(b))
		if err == nil && (len(method) > maxMethod || len(body) > maxCallBody) {
			t.Fatalf("took a method of %d and a body of %d bytes", len(method), len(body))
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(encodeAnswer([]byte("yes"), nil))
	f.Add(encodeAnswer(nil, Refuse("no", "because")))
	f.Add(binary.LittleEndian.AppendUint32([]byte{0}, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := readAnswer(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, encodeAnswer(body, nil)) {
			t.Fatalf("%x was read as %x", b, body)
		}
	})
}

func FuzzDeskRequest(f *testing.F) {
	f.Add([]byte(`{"join":{"secret":"00","id":"ab","name":"n1","csr":"AA=="}}`))
	f.Add([]byte(`{"probe":{"nonce":"AAAA"}}`))
	f.Add([]byte(`{"join":{},"probe":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parseDeskRequest(b)
		if err == nil && (q.Join == nil) == (q.Probe == nil) {
			t.Fatalf("%q was taken", b)
		}
	})
}
