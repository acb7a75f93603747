package node

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

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/peers"
	"github.com/hopmesh/hopmesh/node/shards"
	"golang.org/x/sync/errgroup"
)

// A member is a node while it belongs to a mesh: the mesh and the consensus, and
// what flows between them.
type member struct {
	opts  *Options
	log   *slog.Logger
	dir   *dataDir
	id    *identity.Identity
	mesh  *mesh.Mesh
	plan  *consensus.Consensus
	start start
	// keeper has the files; imports end with members, before it stops.
	keeper  *shards.Keeper
	imports imports
	runner  *jobs.Runner
	peers   *peers.Registry // where the runner's jobs meet those of other nodes
	// modelServes bounds how many pieces of checkpoints are read for others at once.
	modelServes chan struct{}
	// forsaken are datasets of which the leader could not be told that they are
	// given up.
	forsaken forsaken
	say      func(kind, node, message string, generation uint64) // an event for watchers

	opened   chan struct{} // closed when mesh and plan are set; callbacks may come earlier
	keys     sync.Mutex    // held while the set of gossip keys changes
	turn     keyTurn       // leader's rounds only
	known    encounters    // leader's rounds only
	silent   absences      // leader's rounds only
	apart    apart
	reaped   reaped
	awaited  awaited
	rumour   chan struct{} // buffered: gossip has changed
	leaving  atomic.Bool
	refusals refusals
	gone     chan string // buffered: ids for gossip to forget
	removed  chan error  // buffered: why this node is no longer a member
}

// openMember opens the mesh first, because Raft speaks through it, and registers
// all handlers before any request is answered.
func (n *Node) openMember(dir *dataDir, conn net.PacketConn, id *identity.Identity, s start) (*member, error) {
	m := &member{
		opts: &n.opts, log: n.log.With("node", id.Name()), dir: dir, id: id, start: s, say: n.say,
		opened: make(chan struct{}), rumour: make(chan struct{}, 1),
		gone: make(chan string, 64), removed: make(chan error, 1), modelServes: make(chan struct{}, maxModelServes),
		apart: apart{deciding: make(chan struct{}, 1)},
	}
	known := append(dir.loadPeers(), s.peers...)
	advertise, err := advertised(n.opts.Advertise, conn, known)
	if err != nil {
		return nil, err
	}
	stores, err := n.opts.Stores()
	if err != nil {
		return nil, err
	}
	m.mesh, err = mesh.Open(mesh.Config{
		Conn: conn, Identity: id, Advertise: advertise, Name: id.Name(), Version: n.opts.Version, Peers: known, Seeds: m.seedsOf(n.opts.Join),
		Settled: m.settled, Allow: m.allow, Admit: m.admit, OnChange: m.heard, OnRefused: m.refused, Log: m.log,
	})
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	m.plan, err = consensus.Open(consensus.Config{
		ID: id.ID(), Layer: m.mesh.Raft(), Stores: stores, Genesis: m.genesis(),
		Health: m.health, Probe: m.probe, BeforePromote: m.handCAKey, Lead: m.lead, Log: m.log,
	})
	if err != nil {
		return nil, errors.Join(err, m.mesh.Close())
	}
	m.keeper = shards.Open(shards.Config{Dir: dir.datasets(), Self: id.ID(), Network: keeping{m}, Leader: keeping{m}, Log: m.log})
	m.peers = peers.New(m.mesh, m.log)
	m.runner = m.openRunner()
	close(m.opened)
	m.serve()
	m.mesh.Ready()
	return m, nil
}

// seedsOf looks the peers of --join up. A node that was a member before needs none,
// but they help one that lost sight of all it knew.
func (m *member) seedsOf(join []string) []netip.AddrPort {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var seeds []netip.AddrPort
	for _, peer := range join {
		a, err := mesh.Resolve(ctx, peer)
		if err != nil {
			m.log.Warn("can't look a peer up", "peer", peer, "err", err)
			continue
		}
		seeds = append(seeds, a)
	}
	return seeds
}

// genesis is what a founder writes into an empty log. Newcomers that joined are
// fresh, too, but hold no CA key. After a crash between founding and the first
// entry it is given again.
func (m *member) genesis() *plan.Genesis {
	if !m.dir.fresh() || !m.id.HasCAKey() {
		return nil
	}
	return &plan.Genesis{
		MeshID: m.id.MeshID(),
		First: plan.Member{
			ID: m.id.ID(), Name: m.id.Name(), Device: m.opts.Device, Version: m.opts.Version, Memory: m.opts.Memory,
			Speed: m.opts.Speed, PublicKey: m.id.PublicKeyHash(),
		},
		KeyDigest: identity.KeyDigest(m.id.GossipKeys()[0].Key),
	}
}

// run watches the plan and keeps certificate and keys current. It returns nil
// when ctx ends, else why the node can't go on: it left, was removed, or
// consensus failed.
func (m *member) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.follow(ctx) })
	g.Go(func() error { return m.renew(ctx) })
	g.Go(func() error { return m.seekKeys(ctx) })
	g.Go(func() error { return m.forget(ctx) })
	g.Go(func() error { return m.keeper.Run(ctx) })
	g.Go(func() error { return m.tidy(ctx) })
	g.Go(func() error { return m.runner.Run(ctx) })
	g.Go(func() error { return m.imports.endWith(ctx) })
	g.Go(func() error {
		select {
		case err := <-m.removed:
			return err
		case <-m.plan.Failed():
			return fmt.Errorf("the plan can't be followed any more: %w", m.plan.Err())
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

const (
	// handOverTimeout bounds how long a stop may wait for a successor; without
	// one, the others elect theirs by themselves a little later.
	handOverTimeout = time.Second
	// stopTimeout bounds how long it may wait for Raft.
	stopTimeout = 5 * time.Second
)

// close hands leadership over, then stops Raft with its transport and stores,
// then gossip and connections.
func (m *member) close() error {
	soon, done := context.WithTimeout(context.Background(), handOverTimeout)
	if err := m.plan.HandOver(soon); err != nil {
		m.log.Debug("could not hand leadership over", "err", err)
	}
	done()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(m.plan.Close(ctx), m.mesh.Close())
}

// advertised is the address that others are told: as asked, else where the
// socket is bound, else, for a wildcard, the way to the first peer or off this
// machine.
func advertised(want string, conn net.PacketConn, peers []mesh.Peer) (netip.AddrPort, error) {
	if want != "" {
		return netip.ParseAddrPort(want)
	}
	udp, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("the socket's address %s is no UDP address", conn.LocalAddr())
	}
	bound := udp.AddrPort()
	if a := bound.Addr().Unmap(); !a.IsUnspecified() {
		return netip.AddrPortFrom(a, bound.Port()), nil
	}
	if len(peers) > 0 {
		a, err := mesh.RoutedAddr(peers[0].Addr)
		if err == nil && !a.IsUnspecified() {
			return netip.AddrPortFrom(a.Unmap(), bound.Port()), nil
		}
	}
	return netip.AddrPortFrom(firstAddr(), bound.Port()), nil
}

// firstAddr is the first address of this machine that others may know: not
// loopback, not link-local, IPv4 before IPv6; loopback if there is none.
func firstAddr() netip.Addr {
	best := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return best
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr()
		}
		if best.IsLoopback() {
			best = p.Addr()
		}
	}
	return best
}

// reaped is the ids that gossip has forgotten since this node last led a round.
type reaped struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *reaped) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.ids[id] = true
}

func (r *reaped) take() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.ids
	r.ids = nil
	return ids
}
