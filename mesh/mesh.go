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
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// Config says what a Mesh runs on. All fields without a remark are required.
type Config struct {
	// Conn is the one socket. Pass a bare *net.UDPConn: behind a wrapper quic-go
	// loses segmentation offload. The caller closes it, after Close.
	Conn     net.PacketConn
	Identity *identity.Identity
	// Advertise is the address that others dial; never a wildcard.
	Advertise netip.AddrPort
	// Name and Version are what gossip tells others about this node.
	Name, Version string
	// Peers are nodes known from before. Optional.
	Peers []Peer
	// Seeds are addresses of members whose ids are not known, to be tried as long as
	// this node is not settled. Optional.
	Seeds []netip.AddrPort
	// Settled says that this node is in contact with the mesh; until then it
	// tries its peers every second rather than every ten. Called from one
	// goroutine. Optional.
	Settled func() bool
	// Allow refuses a peer: nil lets it in. Called often, from any goroutine.
	Allow func(id string) error
	// Admit judges a newcomer's request. Optional: without it, newcomers are sent
	// elsewhere.
	Admit func(ctx context.Context, r JoinRequest) (identity.Grant, error)
	// OnChange is told of every change that gossip reports. Called from one
	// goroutine; must not block. Optional.
	OnChange func(Change)
	// OnRefused is told when a proven peer ends a connection because this node is
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

// A Peer is a node and where it was last heard of.
type Peer struct {
	ID   string         `json:"id"`
	Addr netip.AddrPort `json:"addr"`
}

// Mesh is this node's place in the mesh, from Open to Close.
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

// Open takes the socket into use: from its return on, peers are served and
// gossip runs. Register handlers with Handle and HandleBulk at once; a request
// that comes earlier waits a little for its handler.
func Open(cfg Config) (*Mesh, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Mesh{cfg: cfg, windows: newWindows(), packets: make(chan *memberlist.Packet, 1024)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.pool = newPool(m)
	m.joins = newJoinDesk(m)
	m.raft, m.gossip = newLayer(m, streamRaft), newLayer(m, streamGossip)
	m.handlers.init()
	m.current.init()
	m.members.init(cfg.Peers)

	resetKey := quic.StatelessResetKey(cfg.Identity.ResetKey())
	handshakes := rate.NewLimiter(100, 200)
	m.transport = &quic.Transport{
		Conn: joining(cfg.Conn),
		// With it a restarted node ends its peers' stale connections at once.
		StatelessResetKey: &resetKey,
		// Under a flood of handshakes, make the sender prove its address first.
		VerifySourceAddress: func(net.Addr) bool { return !handshakes.Allow() },
	}
	var err error
	m.listener, err = m.transport.Listen(cfg.Identity.ServerTLS(anyone), quicConfig(bulk, m.windows))
	if err != nil {
		m.cancel()
		return nil, fmt.Errorf("listen on %s: %w", cfg.Conn.LocalAddr(), err)
	}
	// Packets that arrive before the first read are lost, so the reader starts
	// before anybody joins. There must be only one.
	m.wg.Go(m.readPackets)
	m.wg.Go(m.accept)
	if err := m.startGossip(); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	m.wg.Go(m.seekPeers)
	return m, nil
}

// Close ends gossip without a word (a stop is not a leave), then every
// connection with its code, then the use of the socket.
func (m *Mesh) Close() error {
	m.closed.Do(func() {
		m.cancel()
		if m.serf != nil {
			_ = m.serf.Shutdown()
		}
		close(m.members.stop)
		m.pool.close()
		m.joins.close()
		_ = m.listener.Close()
		_ = m.transport.Close()
		m.wg.Wait()
	})
	return nil
}

// ID is this node's id.
func (m *Mesh) ID() string { return m.cfg.Identity.ID() }

// Raft is where Raft's streams come and go.
func (m *Mesh) Raft() *Layer { return m.raft }

// Meter counts every byte by kind.
func (m *Mesh) Meter() *Meter { return &m.meter }

// DroppedPackets is how many gossip packets were lost for want of room.
func (m *Mesh) DroppedPackets() uint64 { return m.dropped.Load() }

// Enforce closes the connections of peers that Allow now refuses.
func (m *Mesh) Enforce() { m.pool.enforce() }

// Redial lets connections be replaced, because the certificate was.
func (m *Mesh) Redial() { m.pool.renew() }

// address is where to dial a node: where gossip last saw it, else where it was
// known to be from before.
func (m *Mesh) address(id string) (netip.AddrPort, bool) { return m.members.address(id) }

// anyone leaves it to the pool to authorise those who have proven who they are.
func anyone(string) error { return nil }

// openTimeout bounds how long a stream may stay without saying what it is, and
// how long it may wait for somebody to take it.
const openTimeout = 5 * time.Second
