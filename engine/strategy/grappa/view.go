package grappa

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// A View is the part of the graph that the groups of a node see in a super-epoch.
// Workers read it concurrently; it is immutable.
type View struct {
	Super    int
	contexts []*Context    // of each group; nil where it is another node's
	pairs    *link.Regions // where all groups learn pairs; nil where vertices are learnt
	vault    *vicinity.Vault
	edges    []*vicinity.Edges // fetched edges, as they came
	rows     *vicinity.Rows
	degrees  *degrees
	far      []uint32   // whose rows have yet to come, ascending; nil: none
	kept     int        // rows that the run had kept from earlier ones
	Sent     peer.Tally // cost of fetching it
}

// reads counts the rows of other nodes that it has or lacks.
func (s *View) reads() uint64 { return uint64(s.rows.Len() + len(s.far)) }

// index returns the memory of what finds edges and rows, and arrays how long all these are.
func (s *View) index() (n uint64) {
	for _, c := range s.contexts {
		if c != nil {
			n += c.Index()
		}
	}
	for _, e := range s.edges {
		n += e.Index()
	}
	return n + s.rows.Index() + s.degrees.bytes()
}

func (s *View) arrays() (n uint64) {
	for _, c := range s.contexts {
		if c != nil {
			n += c.Bytes()
		}
	}
	for _, e := range s.edges {
		n += e.Bytes()
	}
	return n + s.rows.Bytes()
}

// Bytes returns the memory that it takes: arrays in files take none.
func (s *View) Bytes() uint64 {
	switch {
	case s == nil:
		return 0
	case s.vault == nil:
		return s.index() + s.arrays()
	case s.rows != nil && s.rows.Far.Sparse.Rows > 0:
		return s.index() + s.rows.Bytes()
	}
	return s.index()
}

// Filed returns the bytes of its arrays in files.
func (s *View) Filed() uint64 { return s.vault.Size() }

// Close gives up what it has in files. Nobody must read it any more.
func (s *View) Close() error {
	if s == nil {
		return nil
	}
	return s.vault.Close()
}

// abandon closes the view if what makes it panics, since nobody else knows of it. It is deferred.
func (s *View) abandon() {
	if fault := recover(); fault != nil {
		_ = s.Close() // the panic says more
		panic(fault)
	}
}

// BringView makes the view of a super-epoch. It reuses what earlier views have. On
// failure the partial view is returned with the error.
func (n *Method) BringView(ctx context.Context, super int, before ...*View) (*View, error) {
	s, err := n.plan(ctx, super, before...)
	defer s.abandon()
	if err == nil {
		err = n.bringRows(ctx, s, before...)
	}
	return s, err
}

// plan makes a view without the feature rows of other nodes, phase by phase.
func (n *Method) plan(ctx context.Context, super int, before ...*View) (*View, error) {
	s := &View{Super: super, pairs: n.Schedule.regions(n.Run.Data.Links, n.layout.Firsts, super), contexts: make([]*Context, n.Schedule.Groups()), vault: vicinity.NewVault(n.Run.Options.Dir)}
	defer s.abandon()
	if err := n.bringLacking(ctx, s); err != nil {
		return s, err
	}
	within := n.within(super)
	far := vicinity.NewSet(uint32(n.Run.Data.Topology.Vertices()))
	for _, groups := range n.phases() {
		if err := n.build(ctx, s, groups, within, before); err != nil {
			return s, err
		}
		for _, g := range groups {
			for v := range s.contexts[g].Reads() {
				if !n.source.Has(v) {
					far.Add(v)
				}
			}
		}
	}
	s.far = slices.AppendSeq(make([]uint32, 0, far.Len()), far.All())
	return s, s.bringDegrees(ctx, n.Run)
}

// topology returns the graph's edges, with their relations in place of weights where the model tells
// them apart.
func (n *Method) topology() *sample.Topology {
	if n.Run.Recipe.Model.Related() {
		return n.Run.Data.Topology.Relational()
	}
	return n.Run.Data.Topology
}

// build makes the contexts of some groups at a time, and fetches the edges that they need.
func (n *Method) build(ctx context.Context, s *View, groups []int, within []vicinity.Range, before []*View) error {
	builders := make([]*Builder, len(groups))
	row := func(v uint32) ([]int32, []float32, int32, bool) {
		if sources, weights, degree, ok := n.Lacking.Row(v); ok {
			return sources, weights, degree, true
		}
		return vicinity.RowIn(s.edges, v)
	}
	for i, g := range groups {
		var err error
		if builders[i], err = NewBuilder(BuildOptions{
			Schedule: n.Schedule, Settings: n.settings, Group: g, Super: s.Super, Seed: n.Run.Recipe.Seed, Firsts: n.layout.Firsts,
			Topology: n.topology(), Row: row, In: s.vault, Most: n.most,
		}); err != nil {
			return err
		}
	}
	for {
		missing := make([][]uint32, len(builders))
		for i, b := range builders {
			missing[i] = b.Missing()
		}
		all := vicinity.Union(missing...)
		if len(all) == 0 {
			break
		}
		var there []*vicinity.Edges
		for _, b := range before {
			there = append(there, b.edges...)
		}
		edges, err := n.source.Edges(ctx, s.vault, all, within, &s.Sent, there...)
		s.edges = append(s.edges, edges)
		if err != nil {
			return err
		}
		for _, b := range builders {
			b.Continue()
		}
	}
	for i, g := range groups {
		c, err := builders[i].Context()
		if err != nil {
			return fmt.Errorf("group %d: %w", g, err)
		}
		s.contexts[g] = c
	}
	return nil
}

// bringRows fetches the rows that a view lacks.
func (n *Method) bringRows(ctx context.Context, s *View, before ...*View) (err error) {
	if err := n.fits(s); err != nil || len(s.far) == 0 || n.Run.Data.Features.Learnt() {
		return err
	}
	var rows *vicinity.Rows
	if len(before) > 0 {
		rows = before[0].rows
	}
	if s.rows, err = n.source.Rows(ctx, s.vault, s.far, rows, &s.Sent); err != nil {
		return err
	}
	s.far, s.kept = nil, s.rows.Kept
	return nil
}

// Rows of other nodes come back: each sweep has the same shards pass through the groups, and exact
// evaluation reads the halo. The run keeps them as those of other strategies (train.keepRows), in
// memory that nothing else has asked for. Views find them there and copy them, so that a run may give
// them up at any time. What is seen does not depend on it.

// Start implements Method. The first view has come before it was known how much memory is left.
func (n *Method) Start(context.Context) error {
	n.source.Keep(n.Now.rows)
	return nil
}

// brought returns the cost of fetching the current view on its first call, and counts the rows that
// did not come again: both are reported with the first epoch that uses the view.
func (n *Method) brought() peer.Counts {
	n.Run.Lead().At.Under.Rows.Kept += uint64(n.Now.kept)
	n.Now.kept = 0
	return n.Now.Sent.Take()
}

// bringLacking fetches the edges of base shards that others hold, once.
func (n *Method) bringLacking(ctx context.Context, s *View) error {
	if n.Lacking != nil {
		return nil
	}
	var vertices []uint32
	for _, g := range n.mine {
		first, end := n.Schedule.Base(g)
		for _, shard := range n.Run.Data.Shards[first:end] {
			if shard.Indptr == nil {
				vertices = append(vertices, verticesOf(shard)...)
			}
		}
	}
	all, err := n.source.Edges(ctx, n.vault, vertices, nil, &s.Sent)
	if err == nil {
		n.Lacking = all
	}
	return err
}

func verticesOf(s *graph.Shard) (vertices []uint32) {
	for v := s.First; v < s.First+uint32(s.Vertices); v++ {
		vertices = append(vertices, v)
	}
	return vertices
}

// within returns the vertices from which edges are fetched in a super-epoch: nil (all)
// where groups have a halo, else those of all shards of this node's groups.
func (n *Method) within(super int) []vicinity.Range {
	if n.settings.hop() > 0 {
		return nil
	}
	has := make([]bool, len(n.Run.Data.Shards))
	for _, g := range n.mine {
		for _, shard := range n.Schedule.has(g, super) {
			has[shard] = true
		}
	}
	return vicinity.RangesOf(n.layout.Firsts, has)
}

// A pending view is fetched while training goes on.
type pending struct {
	super  int
	cancel context.CancelFunc
	Done   chan struct{} // closed when what follows is set
	View   *View
	err    error
}

// Ahead starts to fetch a view.
func (n *Method) Ahead(ctx context.Context, super int) {
	n.end()
	ctx, cancel := context.WithCancel(ctx)
	c, before := &pending{super: super, cancel: cancel, Done: make(chan struct{})}, n.Now
	n.Next = c
	go func() {
		defer close(c.Done)
		defer mapped.End(mapped.Guard())
		defer mapped.CaughtAny(&c.err)
		c.View, c.err = n.BringView(ctx, super, before)
	}()
}

// End cancels the fetch, waits for it, and gives up what has come.
func (c *pending) End() error {
	if c == nil {
		return nil
	}
	c.cancel()
	<-c.Done
	return c.View.Close()
}

// Take waits for the view of a super-epoch, and uses the pending one if it is that.
// What could not be fetched ahead is requested once more, since it may succeed now.
// Edges that have come are kept, and their traffic is counted.
func (n *Method) Take(ctx context.Context, super int) (*View, error) {
	c := n.Next
	if c == nil || c.super != super {
		n.end() // it reads the current view
		s, err := n.BringView(ctx, super, n.Now)
		if err != nil {
			n.drop(s)
			return nil, err
		}
		return s, nil
	}
	select {
	case <-c.Done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.Next = nil
	c.cancel()
	if c.err == nil {
		return c.View, nil
	}
	defer n.drop(c.View)
	if ctx.Err() != nil {
		return nil, c.err
	}
	n.Run.Log.Warn("what the groups see next could not be brought ahead", "super_epoch", super, "err", c.err)
	mapped.LogFault(n.Run.Log, "what the groups see next", c.err)
	before := []*View{n.Now}
	if c.View != nil { // what fetched it has not panicked
		before = append(before, c.View)
	}
	s, err := n.BringView(ctx, super, before...)
	if c.View != nil {
		s.Sent.Add(c.View.Sent.Take())
	}
	if err != nil {
		n.drop(s)
		return nil, err
	}
	return s, nil
}

// end ends the fetch of the next view, if there is one.
func (n *Method) end() {
	if err := n.Next.End(); err != nil {
		n.Run.Log.Warn("could not give up what groups would have seen", "err", err)
	}
	n.Next = nil
}

// drop gives up a view.
func (n *Method) drop(s *View) {
	if err := s.Close(); err != nil {
		n.Run.Log.Warn("could not give up what groups have seen", "err", err)
	}
}

// tooLarge is the error of a view that does not fit in memory, whenever it is fetched.
type tooLarge struct{ error }

func (c *tooLarge) Unwrap() error { return c.error }

// tooLarge returns that error of the pending view; nil while it is not known.
func (c *pending) tooLarge() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.Done:
	default:
		return nil
	}
	if short := (*tooLarge)(nil); errors.As(c.err, &short) {
		return c.err
	}
	return nil
}

// after returns the super-epoch that follows one, if there is one.
func (n *Method) after(super int) (next int, ok bool) {
	return super + 1, n.turns() && (n.settings.Switch == onPlateau || super < (n.Run.Recipe.Epochs-1)/n.settings.Period)
}

// turns reports whether the groups' views ever change.
func (n *Method) turns() bool { return n.settings.sweeps() && n.Schedule.Groups() > 1 }

// seenEdges tracks which of their own in-edges the roots of this node's groups have seen, in
// all super-epochs so far. The group of an edge's target has seen it if the source was
// in the group's shards or halo.
//
// A resumed run knows the shards of earlier super-epochs. It does not know which part
// of a capped halo was there, and reports no less than it did before.
type seenEdges struct {
	ever  []*vicinity.Set // of each group: the vertices that it has had; nil: not this node's
	edges uint64          // that were seen
}

// add records a view, and those before the first.
func (a *seenEdges) add(n *Method, s *View) {
	if a.ever == nil {
		a.ever = make([]*vicinity.Set, n.Schedule.Groups())
		for _, g := range n.mine {
			a.ever[g] = vicinity.NewSet(uint32(n.Run.Data.Topology.Vertices()))
			for super := range s.Super {
				a.shards(n, g, super)
			}
		}
	}
	a.edges = 0
	for _, g := range n.mine {
		a.shards(n, g, s.Super)
		a.ever[g].AddAll(s.contexts[g].has)
		a.edges += a.Count(n, g)
	}
}

// shards marks those that a group has in a super-epoch.
func (a *seenEdges) shards(n *Method, group, super int) {
	for _, shard := range n.Schedule.has(group, super) {
		a.ever[group].AddRange(vicinity.Range{First: n.layout.Firsts[shard], End: n.layout.Firsts[shard+1]})
	}
}

// Count returns how many in-edges of a group's own vertices were seen.
func (a *seenEdges) Count(n *Method, group int) (edges uint64) {
	first, end := n.Schedule.Base(group)
	ever := a.ever[group]
	for v := n.layout.Firsts[first]; v < n.layout.Firsts[end]; v++ {
		sources, _, _, ok := n.Lacking.Row(v)
		if !ok {
			sources, _ = n.Run.Data.Topology.Row(int(v))
		}
		for _, u := range sources {
			if ever.Has(uint32(u)) {
				edges++
			}
		}
	}
	return edges
}

// Bytes returns the memory that it takes.
func (a *seenEdges) Bytes() (n uint64) {
	for _, set := range a.ever {
		n += set.Bytes()
	}
	return n
}

// Report implements Method: it sets the super-epoch, from 1, and the share of edges
// that all nodes have seen.
func (n *Method) Report(l *train.Learner, e *trained.Epoch, all train.Share) {
	e.Super, e.Seen = n.Now.Super+1, 1
	edges := n.Run.Data.About.Edges
	if n.between != nil {
		// Of the edges that messages may pass along; and losses are those of pairs that are learnt.
		edges = uint64(n.Run.Data.Topology.Edges())
		e.Loss *= float64(len(n.Run.Data.Training)) / float64(max(1, n.pairing.learns(n.Now.Super)))
	}
	if edges > 0 {
		e.Seen = max(l.At.Last.Seen, min(1, float64(all.Seen)/float64(edges)))
	}
}
