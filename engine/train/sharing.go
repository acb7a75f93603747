package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// sharing is how the nodes of a run share its steps.
type sharing struct {
	Strategy string         // in use; "" until it is chosen
	Dealer   deal.Dealer    // nil until it is chosen
	Chooser  Chooser        // nil where the strategy is given
	Why      string         // the reason of the chooser's choice
	Asking   gather.Options // for rows
	Cached   uint64         // bytes of cached rows of other nodes
	learnt   learnt
	yielding
	// Turns returns by whom a step of the epoch is dealt where strategies take turns; nil: Dealer
	// deals all. It changes between epochs only.
	Turns func(step int) Deal
	following

	brought  replica.Options
	frontier *frontier.Server
	Served   map[string]any // what strategies serve, by name
}

// yielding is when rows that are kept are given up for others that need the memory.
type yielding struct {
	yields bool      // they are: nobody has asked for a number of rows
	looked time.Time // last at the memory that is left
}

// join begins the session of a run, and fetches what must be known of the shards that
// are not held here.
func (t *Trainer) join(ctx context.Context, held []*graph.Shard) (err error) {
	o, r := &t.Options, &t.Recipe
	s := &sharing{Strategy: r.Sharing.Strategy, Served: map[string]any{}}
	t.Sharing = s
	var with *Descriptor
	peers, shared, verify := o.Peers, o.Peers != nil && !o.Work.Alone(), o.Verify
	if !shared {
		if err := o.Strategies.known(s.Strategy); err != nil {
			return err
		}
	} else {
		if with, err = s.Choose(r, o); err != nil {
			return err
		}
		if o.Verify != nil {
			t.vouched = session.Vouch(peers, o.Verify)
			peers, verify = t.vouched, t.vouched.Verify
		}
		if d := o.Strategies.Of(s.Strategy); d.Wrap != nil {
			peers = d.Wrap(peers)
		}
	}
	if t.Session, err = session.New(peers, o.Work, held); err != nil {
		return err
	}
	t.Session.Watch(verify)
	t.intact = session.NewTrust(t.Session)
	// What a model needs of its blocks does not depend on the graph, which is not known
	// yet.
	model, err := nn.New(r.Model, 1, 1)
	if err != nil {
		return err
	}
	topology, who := r.Sharing.Topology(), o.Strategies.Of(s.Strategy)
	needed := r.Links != nil || r.Model.EdgeFeatures > 0
	if needed {
		topology = strategy.Replicated // see dataset.Graph.Link; features of edges do not travel with rows
	}
	if shared {
		for _, d := range o.Strategies {
			if d.Serve != nil && (d.Name == s.Strategy || !d.Isolated && s.mayUse(d.Name, o)) {
				s.Served[d.Name] = d.Serve(t.Session.Peers)
			}
		}
		if who.Isolated && !needed {
			topology = strategy.Sharded // what a node sees of others is fetched separately
		}
		s.frontier = frontier.Serve(t.Session.Peers)
	}
	piece := func(q peer.Query) ([]byte, error) { return checkpoint.ReadPiece(o.Dir, q.Body, q.Limit) }
	s.brought = replica.Options{
		Dataset: o.Dataset, Topology: topology, Memory: budget.Left(o.Memory, 0), Cache: o.Replicas,
		Split: r.Split, Bare: true, Later: t.mayWait(), Needed: needed,
	}
	if err := t.Session.Bring(ctx, piece, s.brought); err != nil {
		return err
	}
	if !shared {
		s.Dealer = deal.NewAlone(&t.Session.Layout, r.Sharing.Deterministic)
		return nil
	}
	fanouts := r.Fanouts
	if len(fanouts) == 0 {
		fanouts = make([]int, model.Hops())
	}
	t.Session.Layout.Costs = t.Session.Replica.Costs(fanouts)
	if with == nil {
		return nil
	}
	if s.Dealer, err = with.Deal(t.Session.Layout, r.Sharing); err != nil {
		return fmt.Errorf("share the steps by %s: %w", s.Strategy, err)
	}
	return nil
}

// Choose returns the strategy; nil: it is yet to be chosen.
func (s *sharing) Choose(r *recipe.Recipe, o *Options) (*Descriptor, error) {
	switch r.Sharing.Strategy {
	case "", strategy.Auto:
		s.Strategy = ""
		return nil, o.Strategies.Declared().Check(&r.Sharing)
	case strategy.Single:
		return nil, fmt.Errorf("the strategy single trains on one node, and the job has %d: take another {strategy}, or auto", len(o.Work.Nodes))
	}
	if !o.Strategies.Has(s.Strategy) {
		return nil, fmt.Errorf("there is no strategy %q for several nodes: take one of %s", s.Strategy, strings.Join(o.Strategies.Names(), ", "))
	}
	d := o.Strategies.Of(s.Strategy)
	s.Asking = d.asking(&r.Sharing)
	return &d, o.Strategies.Declared().Check(&r.Sharing)
}

// notes returns what users should know of how the run is shared.
func (s *sharing) notes(x *session.Session, isolated bool) (all []string) {
	if x.Mixed {
		all = append(all, "some nodes compute on GPUs and some on their processors: what they have learnt differs in the last digits")
	}
	if x.Replica.Replicated || isolated || x.Replica.Full != "" {
		return all
	}
	return append(all, "the edges of the whole graph take more memory than a node has for them: nodes ask each other for neighbours, which costs time and bytes")
}

// chosen has the nodes agree on how they share the run once they have met, and chooses a strategy
// if the recipe names none.
func (t *Trainer) chosen(ctx context.Context) (err error) {
	if t.Session.Alone() || t.Sharing.Dealer != nil {
		return t.takeUp(ctx)
	}
	d := t.Options.Strategies.Of(strategy.Auto)
	if d.Choose == nil {
		return errors.New("the recipe names no strategy, and this program has none that chooses")
	}
	t.Sharing.Chooser, err = d.Choose(ctx, t)
	return err
}

// Begin begins with the strategy that a chooser has chosen.
func (t *Trainer) Begin(ctx context.Context, name string, dealer deal.Dealer, why string) (err error) {
	t.Use(name, dealer)
	t.Sharing.Why = why
	dealer.Restore(t.tuning())
	if t.Method, err = t.newMethod(); err != nil {
		return err
	}
	for _, l := range t.Learners {
		if err := t.Method.Attach(l); err != nil {
			return err
		}
	}
	t.Log.Info("the nodes have chosen how they share the job", "strategy", name, "why", why)
	return t.cacheRows(ctx)
}

// Use switches to another strategy.
func (t *Trainer) Use(name string, dealer deal.Dealer) {
	t.Sharing.Strategy, t.Sharing.Dealer = name, dealer
	d := t.described()
	t.Sharing.Asking = d.asking(&t.Recipe.Sharing)
}

// Dealt returns by whom a step of the epoch is dealt.
func (t *Trainer) Dealt(step int) Deal {
	if s := t.Sharing; s.Turns == nil {
		return Deal{s.Dealer, s.Asking}
	}
	return t.Sharing.Turns(step)
}

// mayUse reports whether a chooser may choose a strategy.
func (s *sharing) mayUse(name string, o *Options) bool {
	return s.Strategy == name || s.Strategy == "" && o.Strategies.Has(name)
}

// asking returns how the rows of a step are requested.
func (d *Descriptor) asking(s *strategy.Settings) gather.Options {
	if d.Asking == nil {
		return gather.Options{}
	}
	return d.Asking(s)
}

// ready serves this node's data to others.
func (t *Trainer) ready(ctx context.Context) error {
	s, x := t.Sharing, t.Session
	if err := x.Ready(t.Data, t.Recipe.Sharing.Wire()); err != nil {
		return err
	}
	topology := t.Data.Topology
	if x.Replica.Replicated {
		topology = topology.Held(t.Data.Features.Has) // the edges of others' shards may be given up
	}
	s.frontier.Ready(topology, t.sampling())
	for _, d := range t.Options.Strategies {
		if served := s.Served[d.Name]; served != nil && d.Ready != nil {
			if err := d.Ready(t, served); err != nil {
				return err
			}
		}
	}
	return t.cacheRows(ctx)
}

// cacheRows fetches the rows of other nodes that are cached, if any.
func (t *Trainer) cacheRows(ctx context.Context) (err error) {
	d := t.described()
	if d.Cache == nil || t.Data.Features.Learnt() {
		return nil
	}
	if rows := d.Cache(&t.Recipe.Sharing); rows > 0 {
		t.Sharing.Cached, err = t.Session.Source.Cache(ctx, rows, t.Session.Replica.Shards, &t.Session.Start)
	}
	return err
}

// keepRows has rows of other nodes kept that steps and evaluations bring, where the strategy
// allows it. They get half of the memory that nothing else has asked for: what comes after the
// forecast needs some, too. A batch that serves all epochs has its rows already. Nodes may keep
// different rows, since none of it changes what is learned.
func (t *Trainer) keepRows(ctx context.Context, need *Needs) error {
	d := t.described()
	keeps := t.keepsRows(&d)
	if t.Sharing.Chooser != nil && d.Name == strategy.Single { // another one may follow
		keeps = slices.ContainsFunc(t.Options.Strategies, func(d Descriptor) bool { return d.Exact && t.keepsRows(&d) })
	}
	if t.Session.Alone() || t.Batches.Same && !d.Isolated || !keeps {
		return nil
	}
	rows, of, bytes, err := t.Session.Source.Keep(ctx, t.roomToKeep(need), t.Session.Replica.Shards, &t.Session.Start)
	if err != nil {
		return err
	}
	t.Sharing.Cached, t.Sharing.yields = bytes, bytes > 0
	t.Log.Info("rows of other nodes are kept as they come", "rows", rows, "of", of, "bytes", bytes)
	if rows < of {
		t.Notes = append(t.Notes, fmt.Sprintf("a node has memory to keep %d of %d rows of other nodes: the others are brought in each epoch", rows, of))
	}
	need.Add(budget.Graph, bytes)
	t.bound(need)
	return nil
}

// keepsRows reports whether a strategy keeps rows of other nodes as they come.
func (t *Trainer) keepsRows(d *Descriptor) bool {
	if t.Data.Features.Learnt() {
		return false // they change
	}
	if d.Isolated && t.Data.Features.Sparse() {
		return false // they would all come at once, and a node sees some of them at a time
	}
	return t.Foreign == nil && d.Cache != nil && d.Cache(&t.Recipe.Sharing) == strategy.Asked
}

// roomToKeep returns the bytes that rows of other nodes may take beside what is needed.
func (t *Trainer) roomToKeep(need *Needs) uint64 {
	measured := t.Options.Measured()
	n, each := budget.NewNode(0, t.Options.Memory, measured), uint64(t.Session.OnMachine)
	left := n.Has - min(n.Has, need.OnHost())
	// Nodes on one machine share what is free, and each has its own bound.
	if n.Limited {
		left = min(left, measured.Free/each)
	} else {
		left /= each
	}
	return left / 2
}

// lookEvery is the least time between two looks at the memory that is left.
const lookEvery = time.Second

// yieldRows gives up the rows that are kept if less memory is left than a quarter of what they
// take: others need it. They come again in each epoch then. No worker may be preparing steps.
func (t *Trainer) yieldRows() {
	s := t.Sharing
	if !s.yields || time.Since(s.looked) < lookEvery {
		return
	}
	s.looked = time.Now()
	left := t.Options.Measured().Free
	if left >= s.Cached/4 {
		return
	}
	if !t.Session.Source.Yield() {
		return // they are read just now
	}
	t.Log.Warn("rows of other nodes that were kept are given up, since little memory is left: they are brought in each epoch from now on", "bytes", s.Cached, "left", left)
	s.Cached, s.yields = 0, false
}

// completeRows brings the last of the rows that are kept. The epoch that begins counts them.
func (t *Trainer) completeRows(ctx context.Context) error {
	if d := t.described(); t.Session.Alone() || d.Isolated { // who is isolated may never need them
		return nil
	}
	var tally peer.Tally
	_, err := t.Session.Source.Complete(ctx, t.Recipe.Epochs-t.Place().Epoch+1, &tally)
	t.Lead().At.Under.Sent.Add(tally.Take())
	if err != nil && ctx.Err() != nil {
		return t.Stopped(ctx)
	}
	return err
}

// WouldKeep returns how many rows of other nodes stay here once they have come, of how many, if a
// strategy is chosen. It is about so: what the steps take is not known before.
func (t *Trainer) WouldKeep(name string) (rows, of int) {
	if d := t.Options.Strategies.Of(name); t.keepsRows(&d) {
		return t.Session.Source.Affords(t.roomToKeep(new(Needs)))
	}
	return 0, 0
}

// described returns the descriptor of the run's strategy as far as it is known.
func (t *Trainer) described() Descriptor { return t.Options.Strategies.Of(t.Sharing.Strategy) }

// newMethod returns the method of the run's strategy. Until auto has chosen, that is
// single's.
func (t *Trainer) newMethod() (Method, error) {
	name := t.Sharing.Strategy
	if name == "" || name == strategy.Auto {
		name = strategy.Single
	}
	d := t.Options.Strategies.Of(name)
	if d.New == nil {
		return nil, fmt.Errorf("this program has no strategy %q", name)
	}
	return d.New(t)
}
