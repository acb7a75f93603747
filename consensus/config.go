package consensus

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Layer is what consensus needs of a network: streams to and from nodes, which
// are known by id alone, so that a changed address changes nothing here. Addr is
// this node's id. Accept returns net.ErrClosed after Close.
type Layer interface {
	net.Listener
	Dial(id string, timeout time.Duration) (net.Conn, error)
}

// Config says who takes part and what it is told. ID, Layer, Stores, Health,
// Probe and Log are required.
type Config struct {
	ID string
	// Layer and Stores belong to Open from its call on, even if it fails.
	Layer  Layer
	Stores Stores
	// Genesis, if given, founds a mesh, but only if log, stable store and snapshots
	// are all empty. Otherwise it changes nothing, so that it may be given again.
	Genesis *plan.Genesis
	// Health is what gossip says of a node, and since how long. It must not block.
	Health func(id string) (alive bool, since time.Duration)
	// Probe asks a node for its AppliedIndex.
	Probe func(ctx context.Context, id string) (applied uint64, err error)
	// BeforePromote hands a future voter what voters must hold. The promotion waits
	// for it and is tried again if it fails.
	BeforePromote func(ctx context.Context, id string) error
	// Lead is called on the leader again and again, once a second or at a Hint, when
	// everything committed before is applied and the voters have been seen to. ctx
	// ends with leadership; Lead must return then. Calls never overlap, not even
	// those of two terms.
	Lead func(ctx context.Context)
	Log  *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.ID == "":
		return errors.New("consensus: no id")
	case c.Layer == nil:
		return errors.New("consensus: no layer")
	case c.Stores.Log == nil || c.Stores.Stable == nil || c.Stores.Snapshots == nil:
		return errors.New("consensus: no stores")
	case c.Health == nil || c.Probe == nil:
		return errors.New("consensus: nobody to ask about nodes")
	case c.Log == nil:
		return errors.New("consensus: no log")
	}
	return nil
}

const (
	// rpcTimeout bounds a dial and each step of an RPC. A peer that vanished holds
	// a stream this long before another is tried.
	rpcTimeout = 3 * time.Second
	// commitTimeout is how long followers may wait for word that an entry is
	// committed, if nothing follows it. The leader sends a barrier after each burst
	// of changes, so that they don't; this is for when it dies in between.
	commitTimeout = time.Second
	// A plan is kilobytes and so are its entries: snapshots are cheap, and a node
	// that was away for a thousand entries still catches up from the log.
	snapshotThreshold = 1024
	trailingLogs      = 1024
	snapshotInterval  = 30 * time.Second
)

const (
	// patienceOfFollowers is how long, once to twice, a follower hears nothing
	// before it would lead. Less loses leaders on busy machines.
	patienceOfFollowers = time.Second
	// beatOfLeaders is ten times the least interval of a leader's heartbeats, in
	// Raft's way of counting. They are most of what an idle mesh costs, and Raft's
	// default sends more of them than followers this patient need.
	beatOfLeaders = 2500 * time.Millisecond
	// lease is how long a leader goes on without word from a majority. Longer than
	// Raft's default, as heartbeats are rarer.
	lease = time.Second
)

// raftConfig is Raft's, but for what is named above.
func raftConfig(id string, log hclog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(id)
	c.Logger = log
	c.HeartbeatTimeout = patienceOfFollowers
	c.ElectionTimeout = patienceOfFollowers
	c.LeaderLeaseTimeout = lease
	c.CommitTimeout = commitTimeout
	c.SnapshotThreshold = snapshotThreshold
	c.TrailingLogs = trailingLogs
	c.SnapshotInterval = snapshotInterval
	// A leader that loses its vote follows. When to stop is for the plan to say.
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	return c
}

func newTransport(s raft.StreamLayer, log hclog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, Logger: log, Timeout: rpcTimeout, MaxPool: 3,
		MaxRPCsInFlight: 2, // more costs latency: hashicorp/raft#541
	})
}

// server is how a node stands in Raft's configuration: its address is its id.
func server(id string, vote raft.ServerSuffrage) raft.Server {
	return raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id), Suffrage: vote}
}
