package mesh

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
)

// Raw packets beside QUIC begin with a tag. quic-go takes a packet for foreign when the
// top two bits of its first byte are zero, so tags stay below 0x40.
const (
	tagGossip byte = 0x01
	tagProbe  byte = 0x02 // to `doctor`, from a socket that has not contacted it before
	tagPing   byte = 0x03 // asks whether a packet of this size arrives
	tagPong   byte = 0x04 // it has
)

// readPackets is the only reader of raw packets. quic-go queues only 32, so it forwards
// them at once and drops those for which there is no room: gossip repeats itself.
func (m *Mesh) readPackets() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := m.transport.ReadNonQUICPacket(m.ctx, buf)
		if err != nil {
			return
		}
		if n >= 2 && buf[0] == tagPing {
			if pong := m.joins.pings.answer(buf[:n], from); pong != nil {
				m.meter.sent(Control, len(pong))
				_, _ = m.transport.WriteTo(pong, from)
			}
			continue
		}
		if n < 2 || buf[0] != tagGossip {
			continue
		}
		m.meter.received(Control, n)
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[1:n]...), From: from, Timestamp: time.Now()}
		select {
		case m.packets <- p:
		default:
			m.dropped.Add(1)
		}
	}
}

// gossipTransport runs memberlist over the mesh's socket and control connections.
// Sending a packet never dials: memberlist gossips serially, and one handshake with a
// dead peer would stall all of it.
type gossipTransport struct {
	mesh    *Mesh
	streams chan net.Conn
}

var _ memberlist.NodeAwareTransport = (*gossipTransport)(nil)

func (t *gossipTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a := t.mesh.cfg.Advertise
	return a.Addr().AsSlice(), int(a.Port()), nil
}

func (t *gossipTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *gossipTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip to %s: %w", a.Addr, err)
	}
	packet := append([]byte{tagGossip}, b...)
	t.mesh.meter.sent(Control, len(packet))
	_, err = t.mesh.transport.WriteTo(packet, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

func (t *gossipTransport) DialTimeout(addr string, d time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, d)
}

// DialAddressTimeout requires the peer to have the node's id, if memberlist knows it.
func (t *gossipTransport) DialAddressTimeout(a memberlist.Address, d time.Duration) (net.Conn, error) {
	m := t.mesh
	ctx, cancel := context.WithTimeout(m.ctx, d)
	defer cancel()
	addr, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return nil, fmt.Errorf("gossip with %s: %w", a.Addr, err)
	}
	l, err := m.pool.getAt(ctx, addr, a.Name)
	if err != nil {
		return nil, err
	}
	c, err := m.openControl(ctx, l, streamGossip)
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}

func (t *gossipTransport) PacketCh() <-chan *memberlist.Packet { return t.mesh.packets }
func (t *gossipTransport) StreamCh() <-chan net.Conn           { return t.streams }
func (t *gossipTransport) Shutdown() error                     { return t.mesh.gossip.Close() }

// startGossip creates Serf on top of the socket.
func (m *Mesh) startGossip() error {
	keys := m.cfg.Identity.GossipKeys()
	all := make([][]byte, len(keys))
	for i, k := range keys {
		all[i] = k.Key
	}
	ring, err := memberlist.NewKeyring(all, all[0])
	if err != nil {
		return fmt.Errorf("load the gossip keys: %w", err)
	}
	m.keyring = ring
	t := &gossipTransport{mesh: m, streams: make(chan net.Conn)}
	m.wg.Go(func() {
		for {
			c, err := m.gossip.Accept()
			if err != nil {
				return
			}
			select {
			case t.streams <- c:
			case <-m.ctx.Done():
				_ = c.Close()
			}
		}
	})

	ml := memberlist.DefaultLANConfig()
	ml.Transport = t
	ml.Keyring = ring
	ml.Logger = slog.NewLogLogger(gossipLog{m.cfg.Log.Handler()}, slog.LevelDebug)
	ml.LogOutput = nil
	// A node that restarts at a new address must be readmitted.
	ml.DeadNodeReclaimTime = time.Second
	ml.PushPullInterval = 15 * time.Second
	// Jobs wait until a dead node is declared dead, which takes 2.3 s on average and rarely
	// more than 3 s. The defaults for a LAN take up to 7 s. A node that is silent for 2 s is
	// not declared dead: it has seven intervals to refute a suspicion, however many nodes
	// suspect it.
	ml.ProbeInterval, ml.ProbeTimeout = 250*time.Millisecond, 200*time.Millisecond
	ml.SuspicionMult, ml.SuspicionMaxTimeoutMult = 7, 1
	// Compressing packets would be wasted work: they are small and encrypted.
	ml.EnableCompression = false
	// With its tag, as large as every path must carry.
	ml.UDPBufferSize = LeastPacket - 1

	sc := serf.DefaultConfig()
	sc.Init()
	sc.NodeName = m.ID()
	sc.Tags = map[string]string{"mesh": m.cfg.Identity.MeshID(), "name": m.cfg.Name, "version": m.cfg.Version}
	m.cfg.Numbers.tags(sc.Tags)
	sc.EventCh = m.members.events
	sc.MemberlistConfig = ml
	sc.Logger = ml.Logger
	sc.LogOutput = nil
	// The losing side of a name conflict would shut down its own Serf.
	sc.EnableNameConflictResolution = false
	sc.DisableCoordinates = true
	sc.RejoinAfterLeave = true
	sc.ReconnectInterval = 10 * time.Second
	sc.ReconnectTimeout = reapAfter
	sc.TombstoneTimeout = time.Hour

	// Serf reports even its own arrival, and a full channel would block it.
	m.wg.Go(m.watchMembers)
	s, err := serf.Create(sc)
	if err != nil {
		return err
	}
	m.serf = s
	m.refresh()
	return nil
}

// reapAfter is how long gossip remembers a failed node.
const reapAfter = 72 * time.Hour

// SetGossipKeys makes gossip accept all these keys and encrypt with the first.
func (m *Mesh) SetGossipKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return fmt.Errorf("set the gossip keys: none given")
	}
	for _, k := range keys {
		if err := m.keyring.AddKey(k); err != nil {
			return fmt.Errorf("add a gossip key: %w", err)
		}
	}
	if err := m.keyring.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use a gossip key: %w", err)
	}
	wanted := map[string]bool{}
	for _, k := range keys {
		wanted[string(k)] = true
	}
	for _, k := range m.keyring.GetKeys() {
		if !wanted[string(k)] {
			if err := m.keyring.RemoveKey(k); err != nil {
				return fmt.Errorf("remove a gossip key: %w", err)
			}
		}
	}
	return nil
}

// gossipLog converts log lines of memberlist and Serf, which carry their level as a
// prefix, to structured records. Their warnings become debug records: the members'
// table reports once that a node is unreachable.
type gossipLog struct{ slog.Handler }

func (h gossipLog) Handle(ctx context.Context, r slog.Record) error {
	text := strings.TrimSpace(r.Message)
	level := slog.LevelDebug
	for prefix, l := range map[string]slog.Level{"[ERR] ": slog.LevelWarn, "[WARN] ": slog.LevelDebug, "[INFO] ": slog.LevelDebug, "[DEBUG] ": slog.LevelDebug} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			text, level = rest, l
		}
	}
	if !h.Handler.Enabled(ctx, level) {
		return nil
	}
	out := slog.NewRecord(r.Time, level, text, r.PC)
	return h.Handler.Handle(ctx, out)
}

var _ io.Closer = (*Layer)(nil)
