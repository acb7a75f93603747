// Package data manages the datasets of a mesh: it imports, generates, lists and verifies
// them, and, on the leader, decides which nodes hold which shards. The files themselves are
// kept by node/shards.
package data

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/remote"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/shards"
	"golang.org/x/sync/errgroup"
)

// Plan is what datasets need of the replicated plan.
type Plan interface {
	State() *plan.State
	Changed() <-chan struct{}
	Leader() string
	Apply(ctx context.Context, c plan.Command) (*plan.State, error)
	Hint()
}

// Mesh is what datasets need of the mesh.
type Mesh interface {
	ID() string
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Fetch(ctx context.Context, peer string, q mesh.Question) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
}

var (
	_ Plan = (*consensus.Consensus)(nil)
	_ Mesh = (*mesh.Mesh)(nil)
)

// addressPatience bounds the wait for the address of a member. Gossip may deliver it later than
// the plan names the member.
const addressPatience = 10 * time.Second

// reach puts a question to another node, and waits for a while until its address is known.
func reach(ctx context.Context, m Mesh, node string, q mesh.Question) ([]byte, error) {
	for begin, pause := time.Now(), 50*time.Millisecond; ; pause = min(2*pause, time.Second) {
		b, err := m.Fetch(ctx, node, q)
		if !errors.Is(err, mesh.ErrNoAddress) || time.Since(begin) >= addressPatience {
			return b, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Config configures Datasets. All fields but Memory are required.
type Config struct {
	Dir    string // holds one folder for each dataset
	Memory uint64 // bytes that an import may use; 0: no bound
	Mesh   Mesh
	Plan   Plan
	Orders *lead.Orders
	// Answers reports whether gossip sees a node alive.
	Answers func(id string) bool
	// Absent and LeftOut are for the leader's rounds: how long a member has not answered,
	// and which nodes the owners of a dataset can't reach.
	Absent  func(id string, now time.Time) time.Duration
	LeftOut func(plan.Dataset) func(id string) bool
	Damage  shards.Damage
	Log     *slog.Logger
}

// Datasets is this node's access to the datasets of the mesh. Its methods may be called from any goroutine.
type Datasets struct {
	Keeper    *shards.Keeper // of this node's files
	Placement *Placement     // the leader's

	dir      string
	plan     Plan
	orders   *orders
	answers  func(id string) bool
	importer *importer
	verifier *verifier
	mesh     Mesh
	self     string
	reader   *remote.Server // of this node's files, for others
	maker    *build.Server  // of this node's shards
	taking   chan struct{}  // bounds the large messages to it
}

// New makes Datasets, registers its orders, and lists the files in the directory.
func New(cfg Config) *Datasets {
	d := &Datasets{dir: cfg.Dir, plan: cfg.Plan, orders: newOrders(cfg.Orders, cfg.Plan, cfg.Log), answers: cfg.Answers}
	d.Keeper = shards.Open(shards.Config{
		Dir: cfg.Dir, Self: cfg.Mesh.ID(), Memory: cfg.Memory, Network: network{cfg.Mesh, cfg.Answers, cfg.Log}, Leader: d.orders, Damage: cfg.Damage, Log: cfg.Log,
	})
	d.Placement = &Placement{plan: cfg.Plan, log: cfg.Log, absent: cfg.Absent, leftOut: cfg.LeftOut}
	d.importer = &importer{dir: cfg.Dir, self: cfg.Mesh.ID(), memory: cfg.Memory, plan: cfg.Plan, orders: d.orders, keeper: d.Keeper, log: cfg.Log}
	d.verifier = &verifier{mesh: cfg.Mesh, plan: cfg.Plan, answers: cfg.Answers, keeper: d.Keeper}
	d.mesh, d.self, d.reader = cfg.Mesh, cfg.Mesh.ID(), read.NewServer(cfg.Memory)
	d.maker, d.taking = build.NewServer(host{d, cfg.Memory, cfg.Log}), make(chan struct{}, largeMessages)
	d.importer.tell, d.importer.answers = d.tell, cfg.Answers
	cfg.Mesh.Handle(callVerify, d.verifier.serve)
	return d
}

// Run keeps this node's shards as the plan says until ctx ends. Imports end before it
// returns.
func (d *Datasets) Run(ctx context.Context) error {
	defer d.reader.Close()
	defer d.maker.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.Keeper.Run(ctx) })
	g.Go(func() error { return d.importer.tidy(ctx) })
	g.Go(func() error { return d.keepMaking(ctx) })
	g.Go(func() error { return d.importer.underWay.EndWith(ctx) })
	return g.Wait()
}

// Verify makes every node that holds copies of a dataset's shards read them.
func (d *Datasets) Verify(ctx context.Context, name string, tell func(api.DatasetEvent)) error {
	return d.verifier.verify(ctx, name, tell)
}

// ShardFile returns the path of a shard that this node holds.
func (d *Datasets) ShardFile(dataset string, shard int) string {
	return filepath.Join(d.dir, dataset, graph.ShardFile(shard))
}

// network is what the keeper of shards needs of other nodes.
type network struct {
	mesh    Mesh
	answers func(id string) bool
	log     *slog.Logger
}

var _ shards.Network = network{}

func (n network) Fetch(ctx context.Context, peer string, request, dst []byte) error {
	// Bound to no generation: shard files never change.
	_, err := n.mesh.Fetch(ctx, peer, mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: 1}, Body: request, Into: dst, Limit: len(dst), Exact: true})
	return err
}

// doubtTimeout bounds the wait for another node that checks its own copy.
const doubtTimeout = 30 * time.Second

func (n network) Doubt(ctx context.Context, peer, dataset string, shard int) {
	ctx, cancel := context.WithTimeout(ctx, doubtTimeout)
	defer cancel()
	if _, err := verdictAt(ctx, n.mesh, peer, question{ID: dataset, Shard: shard}); err != nil {
		n.log.Debug("ask a node to verify a copy that arrived damaged", "peer", peer, "err", err)
	}
}

func (n network) Serving(id string) bool { return n.answers(id) }
