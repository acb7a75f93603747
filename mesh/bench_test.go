package mesh

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

// benchPair is two meshes on loopback, and TLS 1.3 over TCP between the same two
// identities as the yardstick.
func benchPair(b *testing.B) (asker, owner *Mesh, client, server net.Conn) {
	b.Helper()
	g := newGround(b, nil)
	owner = g.open(nil)
	piece := make([]byte, 4<<20)
	owner.HandleBulk(Shard, func(_ context.Context, r *Request) error { return r.Reply(1, piece) })
	owner.HandleBulk(Feature, func(_ context.Context, r *Request) error {
		var body [64]byte
		if err := r.ReadBody(body[:]); err != nil {
			return err
		}
		return r.Reply(1, piece[:r.Step])
	})
	owner.Handle("echo", echo)
	owner.Ready()
	asker = g.open(nil)
	asker.Ready()
	g.wait("they know each other", func() bool { return len(alive(asker)) == 2 })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- tls.Server(c, owner.cfg.Identity.ServerTLS(anyone))
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	must(b, err)
	tc := tls.Client(raw, asker.cfg.Identity.ClientTLS(identity.ALPNBulk, owner.ID(), anyone))
	server = <-accepted
	go func() { _ = server.(*tls.Conn).Handshake() }()
	must(b, tc.Handshake())
	b.Cleanup(func() {
		_ = tc.Close()
		_ = server.Close()
	})
	return asker, owner, tc, server
}

// BenchmarkBulk moves 4 MiB a turn: by Fetch, and through TLS over TCP.
func BenchmarkBulk(b *testing.B) {
	asker, owner, client, server := benchPair(b)
	dst := make([]byte, 4<<20)
	b.Run("mesh", func(b *testing.B) {
		b.SetBytes(int64(len(dst)))
		b.ReportAllocs()
		for b.Loop() {
			must(b, fetch(b.Context(), asker, owner, Header{Kind: Shard, Count: 1}, nil, dst))
		}
	})
	b.Run("tls", func(b *testing.B) {
		source := make([]byte, len(dst))
		b.SetBytes(int64(len(dst)))
		for b.Loop() {
			sent := make(chan error, 1)
			go func() { _, err := server.Write(source); sent <- err }()
			_, err := io.ReadFull(client, dst)
			must(b, err)
			must(b, <-sent)
		}
	})
}

// BenchmarkFetch asks with 64 bytes for as many, and for what a step may need.
func BenchmarkFetch(b *testing.B) {
	asker, owner, _, _ := benchPair(b)
	body := make([]byte, 64)
	for _, n := range []int{64, 256 << 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dst := make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				must(b, fetch(b.Context(), asker, owner, Header{Kind: Feature, Count: 1, Step: uint32(n)}, body, dst))
			}
		})
	}
}

// BenchmarkRoundTrip echoes 64 bytes: by Call, and through TLS over TCP.
func BenchmarkRoundTrip(b *testing.B) {
	asker, owner, client, server := benchPair(b)
	body := make([]byte, 64)
	b.Run("mesh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := asker.Call(b.Context(), owner.ID(), "echo", body)
			must(b, err)
		}
	})
	b.Run("tls", func(b *testing.B) {
		go func() { _, _ = io.Copy(server, server) }()
		for b.Loop() {
			_, err := client.Write(body)
			must(b, err)
			_, err = io.ReadFull(client, body)
			must(b, err)
		}
	})
}
