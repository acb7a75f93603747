package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/mesh/meshtest"
)

// key is that of the job in tests.
const key = "0badcafe"

// world is nodes with a mesh and a registry each, in virtual time.
type world struct {
	t     *testing.T
	net   *meshtest.Network
	seats []*seat
}

// seat is one node; its mesh may come and go.
type seat struct {
	*Registry
	id     *identity.Identity
	mesh   *mesh.Mesh
	socket *meshtest.Socket
}

// inWorld runs f with n nodes that know each other's addresses.
func inWorld(t *testing.T, n int, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// memberlist's probes outlive its shutdown by their timeout, and the bubble
		// must not end before them. Cleanups run last in, first out.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		w := &world{t: t, net: meshtest.NewNetwork(1)}
		first, err := identity.Found(filepath.Join(t.TempDir(), "identity"), "n0", identity.Options{})
		must(t, err)
		w.seats = append(w.seats, &seat{id: first})
		for i := 1; i < n; i++ {
			w.seats = append(w.seats, &seat{id: admit(t, first, fmt.Sprintf("n%d", i))})
		}
		for i := range w.seats {
			w.start(i)
			t.Cleanup(func() { w.stop(i) })
		}
		f(t, w)
	})
}

// admit makes the identity of one more node.
func admit(t *testing.T, first *identity.Identity, name string) *identity.Identity {
	t.Helper()
	req, err := identity.NewRequest(filepath.Join(t.TempDir(), "identity"), name)
	must(t, err)
	chain, err := first.Sign(req.CSR(), req.ID(), time.Now())
	must(t, err)
	id, err := req.Accept(identity.Grant{MeshID: first.MeshID(), Chain: chain, Keys: first.GossipKeys()}, first.CAHash())
	must(t, err)
	return id
}

func addrOf(i int) netip.AddrPort {
	return netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:7946", i+1))
}

// start opens a node's mesh, with a registry that knows nothing.
func (w *world) start(i int) {
	s := w.seats[i]
	s.socket = w.net.Listen(addrOf(i).Addr().String(), int(addrOf(i).Port()))
	cfg := mesh.Config{
		Conn: net.PacketConn(s.socket), Identity: s.id, Advertise: addrOf(i), Name: s.id.Name(), Version: "test",
		Allow: func(string) error { return nil }, Log: slog.New(slog.DiscardHandler),
	}
	for k, other := range w.seats {
		if k != i {
			cfg.Peers = append(cfg.Peers, mesh.Peer{ID: other.id.ID(), Addr: addrOf(k)})
		}
	}
	var err error
	s.mesh, err = mesh.Open(cfg)
	must(w.t, err)
	s.Registry = New(s.mesh, cfg.Log)
	registry := s.Registry
	for _, kind := range Kinds() {
		s.mesh.HandleBulk(kind, func(ctx context.Context, r *mesh.Request) error {
			if r.Flags != Flag {
				return fmt.Errorf("flags %x", r.Flags)
			}
			return registry.Serve(ctx, r.Peer, r.Header, r)
		})
	}
	s.mesh.Ready()
}

// crash takes a node off the network without a word.
func (w *world) crash(i int) {
	_ = w.seats[i].socket.Close()
	_ = w.seats[i].mesh.Close()
}

func (w *world) stop(i int) {
	_ = w.seats[i].mesh.Close()
	_ = w.seats[i].socket.Close()
}

// session opens a job's session on node i, shared by the first so many nodes.
func (w *world) session(i int, generation uint64, nodes int) *Session {
	var ids, names []string
	for _, s := range w.seats[:nodes] {
		ids, names = append(ids, s.id.ID()), append(names, s.id.Name())
	}
	return w.seats[i].Open(key, generation, ids, names, i)
}

// serving is a session that answers with h.
func (w *world) serving(i int, generation uint64, nodes int, h peer.Handler) *Session {
	s := w.session(i, generation, nodes)
	s.Answer(peer.Rows, h)
	s.Open()
	return s
}

// rows asks for what is in body.
func rows(body ...byte) peer.Query {
	return peer.Query{Service: peer.Rows, Kind: peer.Feature, Epoch: 3, Step: 14, Part: 15, Body: body, Limit: 1 << 20}
}

// echo answers with what it was asked and by whom.
func echo(_ context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
	about := []byte{byte(from), byte(q.Service), byte(q.Kind)}
	for _, n := range []uint32{q.Epoch, q.Step, q.Part, uint32(q.Limit)} {
		about = binary.LittleEndian.AppendUint32(about, n)
	}
	return reply(about, q.Body)
}

// echoed is what echo answers.
func echoed(from int, q peer.Query) (answer string) {
	_ = echo(context.Background(), from, q, func(parts ...[]byte) error {
		for _, p := range parts {
			answer += string(p)
		}
		return nil
	})
	return answer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}
