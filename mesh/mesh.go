package mesh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/hopmesh/hopmesh/mesh/gone"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// Config configures a Mesh. All fields not marked optional are required.
type Config struct {
	// Conn is the mesh's UDP socket. Pass a bare *net.UDPConn: behind a wrapper quic-go
	// loses segmentation offload. The caller closes it, after Close.
	Conn     net.PacketConn
	Identity *identity.Identity
	// Advertise is the address that others dial; never a wildcard.
	Advertise netip.AddrPort
	// Name and Version describe this node to others through gossip.
	Name, Version string
	// Numbers are what this program works with. The wire's default is Wire. Optional.
	Numbers Numbers
	// Peers are nodes known from before. Optional.
	Peers []Peer
	// Seeds are addresses of members with unknown ids, to be tried as long as this node
	// is not settled. Optional.
	Seeds []netip.AddrPort
	// Settled reports whether this node is in contact with the mesh. Until then it
	// tries its peers every second, afterwards every ten. Called from one goroutine.
	// Optional.
	Settled func() bool
	// Allow returns an error to refuse a peer. Called often, from any goroutine.
	Allow func(id string) error
	// Admit decides on a newcomer's request. Without it, newcomers are sent to other
	// nodes. Optional.
	Admit func(ctx context.Context, r JoinRequest) (identity.Grant, error)
	// OnChange is called with every change that gossip reports, and when a node says that
	// it stops. Called from one goroutine; must not block. Optional.
	OnChange func(Change)
	// OnRefused is called when a proven peer ends a connection because this node is
	// not, or no longer, a member. Must not block. Optional.
	OnRefused func(peer string)
	Log       *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Conn == nil, c.Identity == nil, c.Allow == nil, c.Log == nil:
		return errors.New("mesh: Conn, Identity, Allow and Log are required")
	case !c.Advertise.IsValid(), c.Advertise.Addr().IsUnspecified(), c.Advertise.Port() == 0:
		return fmt.Errorf("mesh: %s is no address that others could dial", c.Advertise)
	case len(c.Identity.GossipKeys()) == 0:
		return errors.New("mesh: gossip without a key would be readable by anyone")
	}
	return nil
}

// Peer is a node and its last known address.
type Peer struct {
	ID   string         `json:"id"`
	Addr netip.AddrPort `json:"addr"`
}

// Mesh is this node's connection to the mesh, from Open to Close.
type Mesh struct {
	cfg       Config
	transport *quic.Transport
	listener  *quic.Listener
	windows   *windows
	pool      *pool
	meter     Meter
	joins     *joinDesk
	keyring   *memberlist.Keyring

	raft   *Layer
	gossip *Layer

	packets chan *memberlist.Packet
	dropped atomic.Uint64 // gossip packets for which there was no room

	serf    *serf.Serf
	members members

	handlers handlers
	current  generation

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	closed sync.Once
}

// Open starts serving peers and gossip on the socket. Register handlers with Handle and
// HandleBulk at once; a request that comes earlier waits a little for its handler.
func Open(cfg Config) (*Mesh, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Numbers.Wire == (Range{}) {
		cfg.Numbers.Wire = Wire
	}
	cfg.Identity.Speak(cfg.Numbers.Wire)
	m := &Mesh{cfg: cfg, windows: newWindows(), packets: make(chan *memberlist.Packet, 1024)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.pool = newPool(m)
	m.joins = newJoinDesk(m)
	m.raft, m.gossip = newLayer(m, streamRaft), newLayer(m, streamGossip)
	m.handlers.init()
	m.current.init()
	m.members.init(cfg.Peers)

	resetKey := quic.StatelessResetKey(cfg.Identity.ResetKey())
	m.transport = &quic.Transport{
		Conn: joining(cfg.Conn),
		// With this key a restarted node ends its peers' stale connections at once.
		StatelessResetKey:   &resetKey,
		VerifySourceAddress: m.joins.gate.MustProve,
		ConnContext:         m.joins.gate.Begin,
	}
	var err error
	m.listener, err = m.transport.Listen(cfg.Identity.ServerTLS(anyone), quicConfig(bulk, m.windows))
	if err != nil {
		m.cancel()
		return nil, fmt.Errorf("listen on %s: %w", cfg.Conn.LocalAddr(), err)
	}
	// Packets that arrive before the first read are lost, so the reader starts before
	// gossip joins anyone. There must be only one.
	m.wg.Go(m.readPackets)
	m.wg.Go(m.accept)
	if err := m.startGossip(); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	m.wg.Go(m.seekPeers)
	m.wg.Go(paths{m}.watch)
	m.wg.Go(func() { gone.Watch(m.ctx, cfg.Conn, paths{m}.links) })
	return m, nil
}

// Close ends gossip without announcing a leave, then closes every connection with its
// code, then stops using the socket.
func (m *Mesh) Close() error {
	m.closed.Do(func() {
		m.cancel()
		if m.serf != nil {
			_ = m.serf.Shutdown()
		}
		close(m.members.stop)
		_ = m.listener.Close() // first, so that no new connection contradicts a goodbye
		m.pool.close()
		m.joins.close()
		_ = m.transport.Close()
		m.wg.Wait()
	})
	return nil
}

// ID returns this node's id.
func (m *Mesh) ID() string { return m.cfg.Identity.ID() }

// Raft returns the Layer for Raft's streams.
func (m *Mesh) Raft() *Layer { return m.raft }

// Meter returns the byte counts by kind.
func (m *Mesh) Meter() *Meter { return &m.meter }

// Traffic returns the traffic of each connection that is open.
func (m *Mesh) Traffic() []Traffic {
	links := m.pool.links()
	list := make([]Traffic, len(links))
	for i, l := range links {
		s := l.conn.ConnectionStats()
		list[i] = Traffic{Peer: l.peer, Connection: l.number, Sent: s.BytesSent, Received: s.BytesReceived, RTT: s.SmoothedRTT}
	}
	return list
}

// DroppedPackets returns how many gossip packets were lost for lack of room.
func (m *Mesh) DroppedPackets() uint64 { return m.dropped.Load() }

// Enforce closes the connections of peers that Allow now refuses.
func (m *Mesh) Enforce() { m.pool.enforce() }

// Distrust retires the connections of peers whose certificates are of an authority that is not
// trusted any more. Their streams have some time to end.
func (m *Mesh) Distrust() { m.pool.distrust() }

// Redial retires all connections, so that new ones use the renewed certificate.
func (m *Mesh) Redial() { m.pool.renew() }

// address returns a node's address: the last that gossip saw, else the one known from
// before.
func (m *Mesh) address(id string) (netip.AddrPort, bool) { return m.members.address(id) }

// anyone accepts every proven id. The pool authorises peers later.
func anyone(string) error { return nil }

// openTimeout bounds how long a stream may stay without naming its kind, and how long
// it may wait to be accepted.
const openTimeout = 5 * time.Second
