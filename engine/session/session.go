// Package session is the nodes of a run: they meet, bring what each must know of the others'
// shards, agree where they stand, and leave together. One node alone has a session, too, in
// which nothing is asked of anybody.
//
// It knows no model and no strategy.
package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/labels"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Session is what one node has of a run that others share. Its owner's goroutine calls
// its methods.
type Session struct {
	Peers    peer.Peers
	Work     peer.Work
	Layout   peer.Layout // set by Bring
	Exchange *exchange.Exchange
	Replica  *replica.Replica // set by Bring; of one node alone it holds no more than the shards
	Source   *gather.Source   // rows of features, wherever they are
	Labels   *labels.Source   // labels of seed vertices, wherever they are
	Start    peer.Tally       // counts what is brought before the first step

	// Replicated reports whether each node has all edges, and Mixed whether some compute on
	// their processors and some on other devices: known once they have met.
	Replicated, Mixed bool
	// OnMachine counts the nodes on this one's machine, with itself, and InProcess those of
	// them that are in its process.
	OnMachine, InProcess int

	held  []*graph.Shard
	seats *seats
}

// Alone reports whether one node does it all.
func (s *Session) Alone() bool { return s.Work.Alone() }

// Owns reports whether this node owns a shard.
func (s *Session) Owns(shard int) bool { return s.Layout.Owners[shard] == s.Work.Self }

// Name returns a node's name.
func (s *Session) Name(node int) string { return s.Work.Nodes[node] }

// New begins a session over the shards that this node holds, of which those that it lacks
// are nil. Without peers, or with work for one node, that node is alone and must hold all
// shards. Services are registered with s.Peers before Bring.
func New(peers peer.Peers, work peer.Work, held []*graph.Shard) (*Session, error) {
	if len(held) == 0 {
		return nil, errors.New("the dataset has no shards")
	}
	if peers == nil || work.Alone() {
		for i, shard := range held {
			if shard == nil {
				return nil, fmt.Errorf("shard %d is not on this node, which trains alone: it needs all shards of the dataset", i)
			}
		}
		peers, work = nobody{}, peer.Work{Nodes: []string{"this node"}, Owners: make([]int, len(held))}
	}
	s := &Session{Peers: peers, Work: work, held: held, OnMachine: 1, InProcess: 1, Replicated: true}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.Exchange = exchange.New(peers, s.Work)
	s.Source, s.Labels = gather.Register(peers), labels.Register(peers)
	s.seats = newSeats(len(s.Work.Nodes))
	return s, nil
}

// Bring opens the session to the others' questions and brings what must be known of the
// shards that are not held here. piece returns what another node asks for of the checkpoint
// that this one goes on from.
func (s *Session) Bring(ctx context.Context, piece func(peer.Query) ([]byte, error), o replica.Options) (err error) {
	s.Layout = peer.Layout{
		Nodes: len(s.Work.Nodes), Owners: s.Work.Owners, Holders: s.Work.Holders, Weights: s.Work.Weights, Members: Members(s.Work.Nodes),
	}
	if s.Alone() {
		s.Replica = &replica.Replica{Shards: s.held, Summaries: nil, Replicated: true}
		s.Layout.Firsts = dataset.Firsts(s.held)
		return nil
	}
	replica.Serve(s.Peers, s.held)
	s.Peers.Answer(peer.Checkpoint, s.seats.answer(piece))
	s.Peers.Open()
	o.Tally = &s.Start
	if s.Replica, err = replica.Bring(ctx, s.Peers, s.Work, s.held, o); err != nil {
		return err
	}
	s.Layout.Firsts = dataset.Firsts(s.Replica.Shards)
	return nil
}

// BringEdges fetches the edges that Bring has left for later, if any, and has the dataset use
// them. Where a disk has no room for them the replica says so, and is as it was. o is what Bring was given. No other goroutine may use the dataset's topology.
func (s *Session) BringEdges(ctx context.Context, data *dataset.Graph, o replica.Options) error {
	o.Fits, o.Later, o.Tally = true, false, &s.Start
	with, err := replica.Bring(ctx, s.Peers, s.Work, s.held, o)
	if err != nil {
		return err
	}
	s.Replica.Take(s.held, with)
	return s.retake(data, "use the edges of other nodes' shards")
}

// Shed gives up the edges of the shards that are not held here, and has the dataset ask for
// them. No other goroutine may use the dataset's topology.
func (s *Session) Shed(data *dataset.Graph, cache *replica.Cache) error {
	const what = "give up the edges of other nodes' shards"
	err := s.Replica.Shed(s.held, cache)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return cmp.Or(s.retake(data, what), err)
}

// retake has the dataset use the edges that the replica has now.
func (s *Session) retake(data *dataset.Graph, what string) error {
	topology, err := sample.NewPartial(s.Replica.Shards, s.Replica.Summaries)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	data.Topology = topology
	return nil
}

// Graph returns the dataset as this node has it.
func (s *Session) Graph(split int, normalise string) (*dataset.Graph, error) {
	if s.Alone() {
		return dataset.Open(s.held, split, normalise)
	}
	return dataset.OpenPart(s.held, s.Replica, split, normalise)
}

// Ready serves the data to the other nodes from now on; wire is the form in which features
// travel.
func (s *Session) Ready(data *dataset.Graph, wire string) error {
	s.Labels.Ready(data, s.Work, s.Layout)
	return s.Source.Ready(data.Features, s.Work, s.Layout, wire)
}

// About describes the dataset.
func (s *Session) About() dataset.About {
	return dataset.DescribePart(s.Replica.Shards, s.Replica.Summaries, s.Replica.Seeds)
}

// check returns an error if the work does not fit what this node has.
func (s *Session) check() error {
	if s.Alone() {
		return nil
	}
	nodes := len(s.Work.Nodes)
	switch {
	case s.Work.Self < 0 || s.Work.Self >= nodes:
		return fmt.Errorf("this node is number %d of a job's %d nodes", s.Work.Self, nodes)
	case len(s.held) == 0 || len(s.Work.Owners) != len(s.held):
		return fmt.Errorf("the job names the owners of %d shards, and its dataset has %d", len(s.Work.Owners), len(s.held))
	}
	for shard, owner := range s.Work.Owners {
		if owner < 0 || owner >= nodes {
			return fmt.Errorf("shard %d is owned by node %d of a job's %d nodes", shard, owner, nodes)
		}
		if owner == s.Work.Self && s.held[shard] == nil {
			return fmt.Errorf("node %s owns shard %d for this job and doesn't hold it: wait until {dataset.show} says that it does", s.Name(owner), shard)
		}
	}
	return s.checkCopies()
}

// checkCopies returns an error if what the work says of copies and weights does not fit its
// nodes. A node may have lost a copy since: then it asks for what it lacks, as others do.
func (s *Session) checkCopies() error {
	nodes, w := len(s.Work.Nodes), &s.Work
	if len(w.Holders) != 0 && len(w.Holders) != len(w.Owners) || len(w.Weights) != 0 && len(w.Weights) != nodes {
		return fmt.Errorf("the job names the holders of %d shards and the weights of %d nodes, and has %d shards and %d nodes", len(w.Holders), len(w.Weights), len(w.Owners), nodes)
	}
	for shard, holders := range w.Holders {
		for i, node := range holders {
			if node < 0 || node >= nodes || node == w.Owners[shard] || i > 0 && node <= holders[i-1] {
				return fmt.Errorf("shard %d is held by node %d of a job's %d nodes, beside its owner: each is to be named once, in their order", shard, node, nodes)
			}
		}
	}
	return nil
}

// Members is a digest of who some nodes are, in any order.
func Members(names []string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(names)), "\x00")))
	return binary.LittleEndian.Uint64(sum[:])
}

// Agreed marks an error that ends a run on all nodes at once: each comes to it by itself,
// from what all know.
type Agreed struct{ Err error }

func (e *Agreed) Error() string { return e.Err.Error() }

// Unwrap returns what all nodes come to.
func (e *Agreed) Unwrap() error { return e.Err }

// nobody is the peers of one node alone.
type nobody struct{}

func (nobody) Ask(context.Context, int, peer.Query, []byte) ([]byte, error) {
	return nil, errors.New("one node alone has nobody to ask")
}
func (nobody) Answer(peer.Service, peer.Handler) {}
func (nobody) Open()                             {}
