package mesh

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// The wrapper must be as good a net.Conn as any. Over real sockets, because the
// suite makes its own goroutines and deadlines.
func TestStreamIsANetConn(t *testing.T) {
	g := newGround(t, nil)
	a, b := g.open(nil), g.open(nil)
	a.Ready()
	b.Ready()
	g.wait("they know each other", func() bool { return len(alive(a)) == 2 && len(alive(b)) == 2 })
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		c1, err := a.Raft().Dial(b.ID(), 5*time.Second)
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err := b.Raft().Accept()
		if err != nil {
			return nil, nil, nil, err
		}
		return c1, c2, func() {
			_ = c1.Close()
			_ = c2.Close()
		}, nil
	})
}

func TestLayerNamesItsPeersAndEndsWithTheMesh(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		c, err := a.Raft().Dial(b.ID(), time.Second)
		must(t, err)
		in, err := b.Raft().Accept()
		must(t, err)
		if c.RemoteAddr().String() != b.ID() || in.RemoteAddr().String() != a.ID() || a.Raft().Addr().String() != a.ID() {
			t.Fatalf("%s → %s at %s", in.RemoteAddr(), c.RemoteAddr(), a.Raft().Addr())
		}
		ended := make(chan error, 1)
		go func() { _, err := b.Raft().Accept(); ended <- err }()
		must(t, b.Close())
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Fatalf("Accept ended with %v", err)
		}
		if _, err := b.Raft().Dial(a.ID(), time.Second); err == nil {
			t.Fatal("dialled through a closed mesh")
		}
	})
}
