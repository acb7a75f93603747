// Package pair connects two nodes of this process by the mesh's transport, without
// consensus, to measure it.
package pair

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// A Pair is two nodes of one mesh on loopback.
type Pair struct {
	A, B  *mesh.Mesh
	conns []net.PacketConn
	ids   [2]*identity.Identity
}

// Open opens a pair that keeps its files in a folder of dir. serve registers what a node
// answers.
func Open(dir, version string, log *slog.Logger, serve func(m *mesh.Mesh)) (*Pair, error) {
	dir, err := os.MkdirTemp(dir, "pair")
	if err != nil {
		return nil, fmt.Errorf("make a folder to measure in: %w", err)
	}
	first, second, err := identities(dir)
	if err != nil {
		return nil, err
	}
	p := &Pair{ids: [2]*identity.Identity{first, second}}
	addrs := make([]netip.AddrPort, 2)
	for i := range 2 {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.conns = append(p.conns, c)
		addrs[i] = c.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	open := func(i int) (*mesh.Mesh, error) {
		m, err := mesh.Open(mesh.Config{
			Conn: p.conns[i], Identity: p.ids[i], Advertise: addrs[i], Name: p.ids[i].Name(), Version: version,
			Peers: []mesh.Peer{{ID: p.ids[1-i].ID(), Addr: addrs[1-i]}},
			Allow: func(string) error { return nil }, Log: log,
		})
		if err == nil {
			serve(m)
			m.Ready()
		}
		return m, err
	}
	if p.A, err = open(0); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if p.B, err = open(1); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// identities makes a founder and a node that it admitted.
func identities(dir string) (*identity.Identity, *identity.Identity, error) {
	first, err := identity.Found(filepath.Join(dir, "a"), "a", identity.Options{})
	if err != nil {
		return nil, nil, err
	}
	req, err := identity.NewRequest(filepath.Join(dir, "b"), "b")
	if err != nil {
		return nil, nil, err
	}
	chain, err := first.Sign(req.CSR(), req.ID(), time.Now())
	if err != nil {
		return nil, nil, err
	}
	second, err := req.Accept(identity.Grant{MeshID: first.MeshID(), Chain: chain, Keys: first.GossipKeys()}, first.CAHash())
	return first, second, err
}

// Close closes both nodes.
func (p *Pair) Close() error {
	var errs []error
	for _, m := range []*mesh.Mesh{p.A, p.B} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// OverTLS opens the baseline: TLS 1.3 over TCP on loopback, with the same
// certificates.
func (p *Pair) OverTLS(ctx context.Context) (client, server net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen for the baseline: %w", err)
	}
	defer l.Close()
	type accepted struct {
		conn net.Conn
		err  error
	}
	in := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		in <- accepted{c, err}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, fmt.Errorf("dial the baseline: %w", err)
	}
	got := <-in
	if got.err != nil {
		return nil, nil, fmt.Errorf("accept the baseline: %w", got.err)
	}
	anyone := func(string) error { return nil }
	s := tls.Server(got.conn, p.ids[0].ServerTLS(anyone))
	c := tls.Client(raw, p.ids[1].ClientTLS(identity.ALPNBulk, p.ids[0].ID(), anyone))
	done := make(chan error, 1)
	go func() { done <- s.HandshakeContext(ctx) }()
	return c, s, errors.Join(c.HandshakeContext(ctx), <-done)
}
