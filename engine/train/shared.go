package train

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// shared is what a run has beside that several nodes share: nil where one node does
// it all.
type shared struct {
	peers    strategy.Peers
	work     strategy.Work
	layout   strategy.Layout
	exchange *exchange.Exchange
	replica  *replica.Replica
	source   *gather.Source
	columns  *p3.Source       // nil where rows are gathered
	vicinity *vicinity.Source // nil where groups see all that they read
	guard    *guard           // nil there, too
	dealer   strategy.Dealer  // nil until it is chosen

	frontier *frontier.Server
	strategy string         // that deals
	choice   *auto.Choice   // nil where the strategy is given
	why      string         // it was chosen, where it was
	asking   gather.Options // for rows
	cached   uint64         // bytes of rows of others that are kept
	start    strategy.Tally // of what is brought before the first step
	seats    *seats
	halo     *halo // of evaluation, once it is found

	// Known once they have met:
	replicated bool // each node has all edges
	mixed      bool // some compute on their processors and some on other devices
	// onMachine counts nodes on this one's machine, with itself, and inProcess those of them
	// that are in its process.
	onMachine, inProcess int
}

// owns says whether this node computes a shard where owners do.
func (s *shared) owns(shard int) bool { return s.layout.Owners[shard] == s.work.Self }

// name is a node's.
func (s *shared) name(node int) string { return s.work.Nodes[node] }

// join meets the other nodes of a run, if there are any, and brings what must be known
// of the shards that are not held here.
func join(ctx context.Context, r *Recipe, held []*graph.Shard, o *Options) (*shared, error) {
	if o.Peers == nil || o.Work.Alone() {
		for i, shard := range held {
			if shard == nil {
				return nil, fmt.Errorf("shard %d is not on this node, which trains alone: it needs all shards of the dataset", i)
			}
		}
		return nil, nil
	}
	s := &shared{peers: o.Peers, work: o.Work}
	if err := s.check(held); err != nil {
		return nil, err
	}
	with, err := s.choose(r, o)
	if err != nil {
		return nil, err
	}
	// What a model wants of its blocks does not depend on the graph, which is not known yet.
	model, err := nn.New(r.Model, 1, 1)
	if err != nil {
		return nil, err
	}
	if s.strategy == strategy.Grappa {
		s.guard = &guard{Peers: s.peers}
		s.peers = s.guard
	}
	s.exchange = exchange.New(s.peers, s.work)
	replica.Serve(s.peers, held)
	s.source = gather.Register(s.peers)
	if s.mayUse(strategy.P3, o) {
		s.columns = p3.Register(s.peers)
	}
	topology := r.Sharing.Topology
	if s.strategy == strategy.Grappa {
		s.vicinity, topology = vicinity.Register(s.peers), "sharded" // what groups see is brought apart
	}
	s.frontier = frontier.Serve(s.peers)
	s.seats = newSeats(len(s.work.Nodes))
	s.peers.Answer(strategy.Checkpoint, s.seats.answer(o.Dir))
	s.peers.Open()
	s.replica, err = replica.Bring(ctx, s.peers, s.work, held, replica.Options{
		Dataset: o.Dataset, Form: model.Form(), Topology: topology, Memory: cmp.Or(o.Memory, headroom.Available()), Cache: o.Replicas, Tally: &s.start,
	})
	if err != nil {
		return nil, err
	}
	fanouts := r.Fanouts
	if len(fanouts) == 0 {
		fanouts = make([]int, model.Hops())
	}
	s.layout = strategy.Layout{
		Nodes: len(s.work.Nodes), Owners: s.work.Owners, Firsts: firsts(s.replica.Shards),
		Holders: s.work.Holders, Weights: s.work.Weights, Costs: costsOf(s.replica, fanouts), Members: members(s.work.Nodes),
	}
	if with == nil {
		return s, nil
	}
	if s.dealer, err = with.New(s.layout, r.Sharing); err != nil {
		return nil, fmt.Errorf("share the steps by %s: %w", s.strategy, err)
	}
	return s, nil
}

// check holds the work against what this node has.
func (s *shared) check(held []*graph.Shard) error {
	nodes := len(s.work.Nodes)
	switch {
	case s.work.Self < 0 || s.work.Self >= nodes:
		return fmt.Errorf("this node is number %d of a job's %d nodes", s.work.Self, nodes)
	case len(held) == 0 || len(s.work.Owners) != len(held):
		return fmt.Errorf("the job names the owners of %d shards, and its dataset has %d", len(s.work.Owners), len(held))
	}
	for shard, owner := range s.work.Owners {
		if owner < 0 || owner >= nodes {
			return fmt.Errorf("shard %d is owned by node %d of a job's %d nodes", shard, owner, nodes)
		}
		if owner == s.work.Self && held[shard] == nil {
			return fmt.Errorf("node %s owns shard %d for this job and doesn't hold it: wait until `hopmesh dataset show` says that it does", s.name(owner), shard)
		}
	}
	return s.checkCopies()
}

// checkCopies holds what the work says of copies and weights against its nodes. A node
// may have lost a copy since: it asks for what it lacks then, as others do.
func (s *shared) checkCopies() error {
	nodes, w := len(s.work.Nodes), &s.work
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

// choose finds the strategy; nil: it is yet to be chosen.
func (s *shared) choose(r *Recipe, o *Options) (strategy.Strategy, error) {
	switch r.Sharing.Strategy {
	case "", strategy.Auto:
		return nil, r.Sharing.Check()
	case strategy.Single:
		return nil, fmt.Errorf("the strategy single trains on one node, and the job has %d: take another --strategy, or auto", len(s.work.Nodes))
	}
	s.strategy = r.Sharing.Strategy
	at := slices.IndexFunc(o.Strategies, func(a strategy.Strategy) bool { return a.Name() == s.strategy })
	if at < 0 {
		var names []string
		for _, a := range o.Strategies {
			names = append(names, a.Name())
		}
		return nil, fmt.Errorf("there is no strategy %q for several nodes: take one of %s", s.strategy, strings.Join(names, ", "))
	}
	s.asking = auto.AskingOf(s.strategy, &r.Sharing)
	return o.Strategies[at], r.Sharing.Check()
}

// notes are what users should know of how the run is shared.
func (s *shared) notes() (all []string) {
	if s.mixed {
		all = append(all, "some nodes compute on GPUs and some on their processors: what they have learnt differs in the last digits")
	}
	if s.replica.Replicated || s.vicinity != nil {
		return all
	}
	return append(all, "the edges of the whole graph take more memory than a node has for them: nodes ask each other for neighbours, which costs time and bytes")
}

// ready serves what others ask of this node's data.
func (s *shared) ready(ctx context.Context, t *trainer) error {
	if err := s.source.Ready(t.data.features, s.work, s.layout, t.recipe.Sharing.Wire); err != nil {
		return err
	}
	s.frontier.Ready(t.data.topology, t.sampling())
	if s.vicinity != nil {
		if err := s.vicinity.Ready(t.data.shards, t.data.features, s.source, s.work, s.layout, t.recipe.Sharing.Wire); err != nil {
			return err
		}
	}
	return s.keep(ctx, t)
}

// keep brings the rows of others that are kept, where they are wanted.
func (s *shared) keep(ctx context.Context, t *trainer) (err error) {
	if rows := t.recipe.Sharing.Cached(s.strategy); rows > 0 {
		s.cached, err = s.source.Cache(ctx, rows, s.replica.Shards, &s.start)
	}
	return err
}
