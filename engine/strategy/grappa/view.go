package grappa

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// A View is the part of the graph that the groups of a node see in a super-epoch.
// Workers read it concurrently; it is immutable.
type View struct {
	Super    int
	contexts []*Context      // of each group; nil where it is another node's
	edges    *vicinity.Edges // fetched edges
	rows     *vicinity.Rows
	degrees  *degrees
	far      []uint32   // whose rows have yet to come, ascending; nil: none
	Sent     peer.Tally // cost of fetching it
}

// reads counts the rows of other nodes that it has or lacks.
func (s *View) reads() uint64 {
	if s.rows == nil {
		return uint64(len(s.far))
	}
	return uint64(len(s.rows.Vertices()))
}

// Bytes returns the memory that it takes.
func (s *View) Bytes() (n uint64) {
	if s == nil {
		return 0
	}
	for _, c := range s.contexts {
		if c != nil {
			n += c.Bytes()
		}
	}
	return n + s.edges.Bytes() + s.rows.Bytes() + s.degrees.bytes()
}

// BringView makes the view of a super-epoch. It reuses what earlier views have. On
// failure the partial view is returned with the error.
func (n *Method) BringView(ctx context.Context, super int, before ...*View) (*View, error) {
	s, err := n.plan(ctx, super, before...)
	if err == nil {
		err = n.bringRows(ctx, s, before...)
	}
	return s, err
}

// plan makes a view without the feature rows of other nodes.
func (n *Method) plan(ctx context.Context, super int, before ...*View) (*View, error) {
	s := &View{Super: super, contexts: make([]*Context, n.Schedule.Groups())}
	if err := n.bringLacking(ctx, s); err != nil {
		return s, err
	}
	builders := make([]*Builder, len(n.mine))
	for i, g := range n.mine {
		var err error
		if builders[i], err = NewBuilder(BuildOptions{
			Schedule: n.Schedule, Settings: n.settings, Group: g, Super: super, Seed: n.Run.Recipe.Seed, Firsts: n.layout.Firsts, Topology: n.Run.Data.Topology, Most: n.most,
		}); err != nil {
			return s, err
		}
	}
	within := n.within(super)
	for {
		more, err := n.round(ctx, s, builders, within, before)
		if err != nil {
			return s, err
		}
		if !more {
			break
		}
	}
	var reads [][]uint32
	for i, g := range n.mine {
		c, err := builders[i].Context()
		if err != nil {
			return s, fmt.Errorf("group %d: %w", g, err)
		}
		s.contexts[g] = c
		reads = append(reads, n.Wants(c))
	}
	s.far = vicinity.Union(reads...)
	return s, n.bringDegrees(ctx, s)
}

// bringRows fetches the rows that a view lacks.
func (n *Method) bringRows(ctx context.Context, s *View, before ...*View) (err error) {
	if err := n.fits(s); err != nil || len(s.far) == 0 {
		return err
	}
	var rows *vicinity.Rows
	if len(before) > 0 {
		rows = before[0].rows
	}
	if s.rows, err = n.source.Rows(ctx, s.far, rows, &s.Sent); err != nil {
		return err
	}
	s.far = nil
	return nil
}

// round fetches the rows that the builders lack. It returns false when they lack none.
func (n *Method) round(ctx context.Context, s *View, builders []*Builder, within []vicinity.Range, before []*View) (more bool, err error) {
	missing := make([][]uint32, len(builders))
	for i, b := range builders {
		missing[i] = b.Missing()
		more = more || len(missing[i]) > 0
	}
	if !more {
		return false, nil
	}
	var asked, there []uint32
	for _, v := range vicinity.Union(missing...) {
		if _, _, _, ok := n.Lacking.Row(v); !ok {
			asked = append(asked, v)
		}
	}
	if s.edges != nil {
		there = s.edges.Vertices()
	}
	all := []*vicinity.Edges{s.edges}
	for _, b := range before {
		all = append(all, b.edges)
	}
	if s.edges, err = n.source.Edges(ctx, vicinity.Union(asked, there), within, &s.Sent, all...); err != nil {
		return false, err
	}
	for i, b := range builders {
		if len(missing[i]) == 0 {
			continue
		}
		if err := b.Take(n.rowsOf(missing[i], s.edges)); err != nil {
			return false, fmt.Errorf("group %d: %w", n.mine[i], err)
		}
	}
	return true, nil
}

// rowsOf returns the edges of some vertices, each of which has been fetched.
func (n *Method) rowsOf(vertices []uint32, brought *vicinity.Edges) Rows {
	r := Rows{Vertices: vertices, Indptr: append(make([]int64, 0, len(vertices)+1), 0)}
	for _, v := range vertices {
		sources, weights, degree, ok := n.Lacking.Row(v)
		if !ok {
			sources, weights, degree, _ = brought.Row(v)
		}
		if weights != nil && r.Weights == nil {
			r.Weights = make([]float32, 0, len(vertices)) // of all rows of a graph, or of none
		}
		r.Sources, r.Weights = append(r.Sources, sources...), append(r.Weights, weights...)
		r.Indptr, r.Degrees = append(r.Indptr, int64(len(r.Sources))), append(r.Degrees, degree)
	}
	return r
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
	all, err := n.source.Edges(ctx, vertices, nil, &s.Sent)
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
		first, end := n.Schedule.Base(g)
		for shard := first; shard < end; shard++ {
			has[shard] = true
		}
		for _, shard := range n.Schedule.Swept(g, super) {
			has[shard] = true
		}
	}
	return vicinity.RangesOf(n.layout.Firsts, has)
}

// Wants returns the vertices of a context, ascending, whose features other nodes hold.
func (n *Method) Wants(c *Context) (far []uint32) {
	for v := range c.Reads() {
		if !n.source.Has(v) {
			far = append(far, v)
		}
	}
	return far
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
	n.Next.End()
	ctx, cancel := context.WithCancel(ctx)
	c, before := &pending{super: super, cancel: cancel, Done: make(chan struct{})}, n.Now
	n.Next = c
	go func() {
		defer close(c.Done)
		c.View, c.err = n.BringView(ctx, super, before)
	}()
}

// End cancels the fetch, and waits for it.
func (c *pending) End() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.Done
}

// Take waits for the view of a super-epoch, and uses the pending one if it is that.
// What could not be fetched ahead is requested once more, since it may succeed now.
// Edges that have come are kept, and their traffic is counted.
func (n *Method) Take(ctx context.Context, super int) (*View, error) {
	c := n.Next
	if c == nil || c.super != super {
		return n.BringView(ctx, super, n.Now)
	}
	select {
	case <-c.Done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.Next = nil
	c.cancel()
	if c.err != nil && ctx.Err() == nil {
		s, err := n.BringView(ctx, super, n.Now, c.View)
		s.Sent.Add(c.View.Sent.Take())
		return s, err
	}
	return c.View, c.err
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
	ever  [][]uint64 // of each group: a bit for each vertex that it has had; nil: not this node's
	edges uint64     // that were seen
}

// add records a view, and those before the first.
func (a *seenEdges) add(n *Method, s *View) {
	if a.ever == nil {
		a.ever = make([][]uint64, n.Schedule.Groups())
		for _, g := range n.mine {
			a.ever[g] = make([]uint64, (n.Run.Data.Topology.Vertices()+63)/64)
			for super := range s.Super {
				a.shards(n, g, super)
			}
		}
	}
	a.edges = 0
	for _, g := range n.mine {
		a.shards(n, g, s.Super)
		for _, v := range s.contexts[g].Halo() {
			a.ever[g][v/64] |= 1 << (v % 64)
		}
		a.edges += a.Count(n, g)
	}
}

// shards marks those that a group has in a super-epoch.
func (a *seenEdges) shards(n *Method, group, super int) {
	first, end := n.Schedule.Base(group)
	has := n.Schedule.Swept(group, super)
	for shard := first; shard < end; shard++ {
		has = append(has, shard)
	}
	for _, shard := range has {
		for v := n.layout.Firsts[shard]; v < n.layout.Firsts[shard+1]; v++ {
			a.ever[group][v/64] |= 1 << (v % 64)
		}
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
			edges += ever[u/64] >> (u % 64) & 1
		}
	}
	return edges
}

// Bytes returns the memory that it takes.
func (a *seenEdges) Bytes() (n uint64) {
	for _, bits := range a.ever {
		n += 8 * uint64(len(bits))
	}
	return n
}

// Report implements Method: it sets the super-epoch, from 1, and the share of edges
// that all nodes have seen.
func (n *Method) Report(l *train.Learner, e *trained.Epoch, all train.Share) {
	e.Super, e.Seen = n.Now.Super+1, 1
	if edges := n.Run.Data.About.Edges; edges > 0 {
		e.Seen = max(l.At.Last.Seen, min(1, float64(all.Seen)/float64(edges)))
	}
}
