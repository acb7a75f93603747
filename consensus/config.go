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

// Layer is the network that consensus runs over: streams to and from nodes. Nodes are
// addressed by id alone, so a changed network address needs no change here. Addr is
// this node's id. Accept returns net.ErrClosed after Close.
type Layer interface {
	net.Listener
	Dial(id string, timeout time.Duration) (net.Conn, error)
}

// Config holds the identity, storage and callbacks of a Consensus. ID, Layer, Stores,
// Health, Probe and Log are required.
type Config struct {
	ID string
	// Open takes ownership of Layer and Stores, even if it fails.
	Layer  Layer
	Stores Stores
	// Genesis, if set, founds a mesh when the log, the stable store and the snapshots
	// are all empty. Otherwise it has no effect, so it may be passed again.
	Genesis *plan.Genesis
	// Health returns the liveness of a node according to gossip, and for how long that
	// has been so. It must not block.
	Health func(id string) (alive bool, since time.Duration)
	// Probe asks a node for its AppliedIndex.
	Probe func(ctx context.Context, id string) (applied uint64, err error)
	// BeforePromote sends a future voter the data that voters must hold. The promotion
	// waits for it and is retried if it fails.
	BeforePromote func(ctx context.Context, id string) error
	// Lead is called repeatedly on the leader, once a second or after a Hint, once
	// everything committed before is applied and the voters have been arranged. Lead
	// must return when ctx ends, which is when leadership is lost. Calls never overlap,
	// not even those of two terms.
	Lead func(ctx context.Context)
	// Repaired is called with a sentence on damage that was found and repaired, while this
	// node runs. It may be nil.
	Repaired func(what string)
	Log      *slog.Logger
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
	if c.Repaired == nil {
		c.Repaired = func(string) {}
	}
	return nil
}

const (
	// keptStreams is how many streams that rest are kept to each node.
	keptStreams = 3
	// rpcTimeout bounds a dial and each step of an RPC. A peer that vanished holds a
	// stream this long before another is tried.
	rpcTimeout = 3 * time.Second
	// commitTimeout is how long a follower may take to learn that an entry is
	// committed, if no other entry follows. The leader sends a barrier after each burst
	// of changes to avoid this wait; the timeout matters if the leader dies in between.
	commitTimeout = time.Second
	// The plan and its entries are kilobytes, so snapshots are cheap. A node that was
	// away for a thousand entries still catches up from the log.
	snapshotThreshold = 1024
	trailingLogs      = 1024
	snapshotInterval  = 30 * time.Second
)

const (
	// patienceOfFollowers is the election timeout: a follower that hears nothing for
	// one to two times this long becomes a candidate. Shorter values lose leaders on
	// busy machines.
	patienceOfFollowers = time.Second
	// beatOfLeaders is ten times the minimum heartbeat interval of a leader, which is
	// how Raft counts it. Heartbeats are most of the cost of an idle mesh, and Raft's
	// default sends more than followers this patient need.
	beatOfLeaders = 2500 * time.Millisecond
	// lease is how long a leader stays leader without contact to a majority. It is
	// longer than Raft's default, as heartbeats are rarer.
	lease = time.Second
)

// raftConfig returns Raft's default configuration with the changes named above.
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
	// A leader that loses its vote becomes a follower. The plan decides when it stops.
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	return c
}

func newTransport(s raft.StreamLayer, log hclog.Logger) *cautious {
	return newCautious(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, Logger: log, Timeout: rpcTimeout, MaxPool: keptStreams,
		// One at a time. With more, a leader that hears of one failed write, such as on a full
		// disk, may never send that follower another entry, while its heartbeats go on, and can't
		// be shut down: hashicorp/raft#612.
		MaxRPCsInFlight: 1,
	}))
}

// voter returns the entry of a node that votes in Raft's configuration. Its address is its id.
func voter(id string) raft.Server {
	return raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id), Suffrage: raft.Voter}
}
