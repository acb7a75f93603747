package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// A scene is what the groups of a node see in a super-epoch. Hands read it at once;
// nobody changes it.
type scene struct {
	super    int
	contexts []*grappa.Context // of each group; nil where it is another node's
	edges    *vicinity.Edges   // that were brought
	rows     *vicinity.Rows
	far      []uint32       // whose rows have yet to come, ascending; nil: none
	sent     strategy.Tally // what it took to bring it
}

// reads counts the rows that it has of other nodes, or is to have.
func (s *scene) reads() uint64 {
	if s.rows == nil {
		return uint64(len(s.far))
	}
	return uint64(len(s.rows.Vertices()))
}

// bytes is the memory that it takes.
func (s *scene) bytes() (n uint64) {
	if s == nil {
		return 0
	}
	for _, c := range s.contexts {
		if c != nil {
			n += c.Bytes()
		}
	}
	return n + s.edges.Bytes() + s.rows.Bytes()
}

// bring makes the scene of a super-epoch. What is there of those before is not asked for
// again. Where it fails, what has come of it is returned with the error.
func (n *isolated) bring(ctx context.Context, super int, before ...*scene) (*scene, error) {
	s, err := n.survey(ctx, super, before...)
	if err == nil {
		err = n.furnish(ctx, s, before...)
	}
	return s, err
}

// survey makes it but for the rows of features that are elsewhere.
func (n *isolated) survey(ctx context.Context, super int, before ...*scene) (*scene, error) {
	s := &scene{super: super, contexts: make([]*grappa.Context, n.schedule.Groups())}
	if err := n.bringLacking(ctx, s); err != nil {
		return s, err
	}
	builders := make([]*grappa.Builder, len(n.mine))
	for i, g := range n.mine {
		var err error
		if builders[i], err = grappa.NewBuilder(grappa.BuildOptions{
			Schedule: n.schedule, Settings: n.settings, Group: g, Super: super, Seed: n.seed, Firsts: n.layout.Firsts, Topology: n.data.topology, Most: n.most,
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
		reads = append(reads, n.reads(c))
	}
	s.far = vicinity.Union(reads...)
	return s, nil
}

// furnish brings the rows that a scene lacks.
func (n *isolated) furnish(ctx context.Context, s *scene, before ...*scene) (err error) {
	if err := n.fits(s); err != nil || len(s.far) == 0 {
		return err
	}
	var rows *vicinity.Rows
	if len(before) > 0 {
		rows = before[0].rows
	}
	if s.rows, err = n.source.Rows(ctx, s.far, rows, &s.sent); err != nil {
		return err
	}
	s.far = nil
	return nil
}

// round gives all builders the rows that they lack. It says no when they lack none.
func (n *isolated) round(ctx context.Context, s *scene, builders []*grappa.Builder, within []vicinity.Range, before []*scene) (more bool, err error) {
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
		if _, _, _, ok := n.lacking.Row(v); !ok {
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
	if s.edges, err = n.source.Edges(ctx, vicinity.Union(asked, there), within, &s.sent, all...); err != nil {
		return false, err
	}
	for i, b := range builders {
		if len(missing[i]) == 0 {
			continue
		}
		if err := b.Take(n.rows(missing[i], s.edges)); err != nil {
			return false, fmt.Errorf("group %d: %w", n.mine[i], err)
		}
	}
	return true, nil
}

// rows are those of some vertices, of which each was brought.
func (n *isolated) rows(vertices []uint32, brought *vicinity.Edges) grappa.Rows {
	r := grappa.Rows{Vertices: vertices, Indptr: append(make([]int64, 0, len(vertices)+1), 0)}
	for _, v := range vertices {
		sources, weights, degree, ok := n.lacking.Row(v)
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

// bringLacking brings the edges of base shards that others hold, once.
func (n *isolated) bringLacking(ctx context.Context, s *scene) error {
	if n.lacking != nil {
		return nil
	}
	var vertices []uint32
	for _, g := range n.mine {
		first, end := n.schedule.Base(g)
		for _, shard := range n.data.shards[first:end] {
			if shard.Indptr == nil {
				vertices = append(vertices, verticesOf(shard)...)
			}
		}
	}
	all, err := n.source.Edges(ctx, vertices, nil, &s.sent)
	if err == nil {
		n.lacking = all
	}
	return err
}

func verticesOf(s *graph.Shard) (vertices []uint32) {
	for v := s.First; v < s.First+uint32(s.Vertices); v++ {
		vertices = append(vertices, v)
	}
	return vertices
}

// within are the vertices from which edges are brought in a super-epoch: nil, from all,
// where groups have a halo, else those of all shards that a group of this node has.
func (n *isolated) within(super int) []vicinity.Range {
	if n.settings.Hop() > 0 {
		return nil
	}
	has := make([]bool, len(n.data.shards))
	for _, g := range n.mine {
		first, end := n.schedule.Base(g)
		for shard := first; shard < end; shard++ {
			has[shard] = true
		}
		for _, shard := range n.schedule.Swept(g, super) {
			has[shard] = true
		}
	}
	ranges := []vicinity.Range{} // nil are all
	for shard, in := range has {
		first, end := n.layout.Firsts[shard], n.layout.Firsts[shard+1]
		switch last := len(ranges) - 1; {
		case !in || first == end:
		case last >= 0 && ranges[last].End == first:
			ranges[last].End = end
		default:
			ranges = append(ranges, vicinity.Range{First: first, End: end})
		}
	}
	return ranges
}

// reads are the vertices, ascending, whose features a context has and other nodes hold.
func (n *isolated) reads(c *grappa.Context) (far []uint32) {
	for v := range c.Reads() {
		if !n.source.Has(v) {
			far = append(far, v)
		}
	}
	return far
}

// A coming scene is being brought while training goes on.
type coming struct {
	super  int
	cancel context.CancelFunc
	done   chan struct{} // closed when what follows is set
	scene  *scene
	err    error
}

// ahead begins to bring a scene.
func (n *isolated) ahead(ctx context.Context, super int) {
	n.next.end()
	ctx, cancel := context.WithCancel(ctx)
	c, before := &coming{super: super, cancel: cancel, done: make(chan struct{})}, n.now
	n.next = c
	go func() {
		defer close(c.done)
		c.scene, c.err = n.bring(ctx, super, before)
	}()
}

// end ends it, and waits for it.
func (c *coming) end() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}

// take waits for the scene of a super-epoch: what is on its way, if that is it. What
// could not be brought ahead is asked for once more, since it may come by now; the edges
// that have come are kept, and what was sent for them is told.
func (n *isolated) take(ctx context.Context, super int) (*scene, error) {
	c := n.next
	if c == nil || c.super != super {
		return n.bring(ctx, super, n.now)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.next = nil
	c.cancel()
	if c.err != nil && ctx.Err() == nil {
		s, err := n.bring(ctx, super, n.now, c.scene)
		s.sent.Add(c.scene.sent.Take())
		return s, err
	}
	return c.scene, c.err
}

// cramped is the error of a scene that memory is too small for, whenever it is brought.
type cramped struct{ error }

// cramped is that error of a scene that was to come; nil while nobody knows.
func (c *coming) cramped() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
	default:
		return nil
	}
	if short := (*cramped)(nil); errors.As(c.err, &short) {
		return c.err
	}
	return nil
}

// after is the super-epoch that follows one, if there is one.
func (n *isolated) after(super int) (next int, ok bool) {
	return super + 1, n.turns() && (n.settings.OnPlateau() || super < (n.epochs-1)/n.settings.Epochs())
}

// turns says whether groups come to see anything else.
func (n *isolated) turns() bool { return n.settings.Sweeps() && n.schedule.Groups() > 1 }
