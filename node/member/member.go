package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/lead"
	"golang.org/x/sync/errgroup"
)

// Config configures a Member. All fields but Advertise and Join are required.
type Config struct {
	Dir   *Dir
	Conn  net.PacketConn
	ID    *identity.Identity
	Start Start
	About About
	// Advertise is the address that others dial. Join lists members through which to find
	// the mesh.
	Advertise string
	Join      []string
	// Stores opens the disk under Raft.
	Stores func() (consensus.Stores, error)
	// Damage is told what is damaged and what was repaired.
	Damage *damage.Board
	// Round does one round of the leader's work.
	Round func(ctx context.Context)
	// Say is called with events for watchers. Ready is called once, when this node is in
	// the plan and knows a leader.
	Say   func(kind, node, message string, generation uint64)
	Ready func(addr netip.AddrPort)
	Log   *slog.Logger
}

// Member is a node while it belongs to a mesh. It opens the mesh and the consensus, which the
// other parts of the node use too. Its methods may be called from any goroutine.
type Member struct {
	cfg        Config
	mesh       *mesh.Mesh
	plan       *consensus.Consensus
	orders     *lead.Orders
	contacts   *contacts
	keys       *keyring
	admission  *admission
	succession *successions
	gossip     *gossip
	adopt      func(*plan.State) // called with each version of the plan

	opened  chan struct{} // closed by Begin
	leaving atomic.Bool
	gone    chan string // buffered: ids for gossip to forget
	removed chan error  // buffered: why this node is no longer a member
}

var (
	// ErrLeft is returned by Run after the node left the mesh on request.
	ErrLeft = errors.New("this node has left the mesh")
	// ErrRemoved is returned by Run if the mesh no longer wants this node.
	ErrRemoved = errors.New("this node was removed from the mesh")
)

// Open opens the mesh first, because Raft uses it as its transport. No request is answered
// before Begin.
func Open(cfg Config) (*Member, error) {
	m := &Member{cfg: cfg, gossip: newGossip(), opened: make(chan struct{}), gone: make(chan string, 64), removed: make(chan error, 1)}
	id, known := cfg.ID, append(cfg.Dir.loadPeers(), cfg.Start.peers...)
	advertise, err := advertised(cfg.Advertise, cfg.Conn, known)
	if err != nil {
		return nil, err
	}
	stores, err := cfg.Stores()
	if err != nil {
		return nil, err
	}
	for i, note := range stores.Notes {
		cfg.Damage.Repaired(damage.Log, fmt.Sprintf("at the start, %d", i+1), note)
	}
	m.mesh, err = mesh.Open(mesh.Config{
		Conn: cfg.Conn, Identity: id, Advertise: advertise, Name: id.Name(), Version: cfg.About.Version, Numbers: cfg.About.Numbers, Peers: known, Seeds: seedsOf(cfg.Join, cfg.Log),
		Settled: m.Settled, Allow: m.allow, Admit: m.admit, OnChange: m.heard, OnRefused: m.refused, Log: cfg.Log,
	})
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	m.plan, err = consensus.Open(consensus.Config{
		ID: id.ID(), Layer: m.mesh.Raft(), Stores: stores, Genesis: genesis(cfg),
		Health: m.Health, Probe: m.probe, BeforePromote: m.beforePromote, Lead: cfg.Round, Log: cfg.Log,
		Repaired: func(what string) { cfg.Damage.Repaired(damage.Log, "while running", what) },
	})
	if err != nil {
		return nil, errors.Join(err, m.mesh.Close())
	}
	m.orders = lead.New(m.mesh, m.plan, id.Name())
	m.contacts = &contacts{id: id, mesh: m.mesh, plan: m.plan, about: cfg.About, gossip: m.gossip}
	m.contacts.serve()
	m.contacts.serveDigests()
	m.keys = &keyring{id: id, mesh: m.mesh, plan: m.plan, log: cfg.Log}
	m.keys.serve()
	m.succession = newSuccessions(m.orders, m.contacts, m.keys, cfg.Log)
	m.admission = admissions(m.orders, id, m.mesh, m.plan, m.succession, cfg.Log)
	return m, nil
}

// Begin starts answering requests; all handlers must be registered by now. adopt is
// called with each version of the plan that this node sees.
func (m *Member) Begin(adopt func(*plan.State)) {
	m.adopt = adopt
	close(m.opened)
	m.mesh.Ready()
}

// ID returns the identity of this node.
func (m *Member) ID() *identity.Identity { return m.cfg.ID }

// Mesh returns the mesh that the member has opened.
func (m *Member) Mesh() *mesh.Mesh { return m.mesh }

// Plan returns the replicated plan.
func (m *Member) Plan() *consensus.Consensus { return m.plan }

// Orders returns the connection that carries orders to the leader.
func (m *Member) Orders() *lead.Orders { return m.orders }

// genesis returns the first entry that a founder writes into an empty log, or nil. Nodes
// that joined are fresh, too, but hold no CA key. If the founder crashes before it wrote
// the entry, it writes it at the next start.
func genesis(cfg Config) *plan.Genesis {
	id, about := cfg.ID, cfg.About
	if !cfg.Dir.fresh() || !id.HasCAKey() {
		return nil
	}
	return &plan.Genesis{
		MeshID: id.MeshID(),
		First: plan.Member{
			ID: id.ID(), Name: id.Name(), Device: about.Device, Version: about.Version, Computes: Computing(about.Numbers), Memory: about.Memory,
			Speed: about.Speed, PublicKey: id.PublicKeyHash(), Knows: Knows(about.Numbers),
		},
		KeyDigest: identity.KeyDigest(id.GossipKeys()[0].Key),
	}
}

// Run follows the plan and keeps certificate and keys current. It returns nil when ctx
// ends, and an error if the node can't go on: it left, was removed, or consensus failed.
func (m *Member) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.follow(ctx) })
	g.Go(func() error { return m.admission.keepCertificate(ctx) })
	g.Go(func() error { return m.keys.seek(ctx, m.Settled) })
	g.Go(func() error { return m.forget(ctx) })
	g.Go(func() error {
		select {
		case err := <-m.removed:
			return err
		case <-m.plan.Failed():
			if err := m.plan.Err(); errors.Is(err, consensus.ErrDamaged) {
				return err
			}
			return fmt.Errorf("the plan can't be followed any more: %w", m.plan.Err())
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

const (
	// handOverTimeout bounds how long a stop waits for a successor. Without one, the others
	// elect a leader a little later.
	handOverTimeout = time.Second
	// stopTimeout bounds how long a stop waits for Raft.
	stopTimeout = 5 * time.Second
)

// Close transfers leadership, then stops Raft with its transport and stores,
// then gossip and connections.
func (m *Member) Close() error {
	soon, done := context.WithTimeout(context.Background(), handOverTimeout)
	if err := m.plan.HandOver(soon); err != nil {
		m.cfg.Log.Debug("could not transfer leadership", "err", err)
	}
	done()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(m.plan.Close(ctx), m.mesh.Close())
}
