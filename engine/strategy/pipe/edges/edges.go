// Package edges brings a pipeline's worker the edges of shards that its node lacks, while it
// is made: one shard at a time, so that a node never has more of the graph than its own shards
// and one of another.
package edges

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/session"
)

// A Source implements blocks.Edges. One goroutine uses it.
type Source struct {
	data    *dataset.Graph
	session *session.Session
	here    *sample.Drawer // knows the degrees of vertices whose edges are here
	far     *frontier.Frontier
	asked   degrees
	brought *graph.Shard // nil: none

	places  []int32 // of vertices of other nodes, among those whose degrees are wanted
	missing []uint32
	came    []float32
}

// New returns a source of edges for blocks of a form.
func New(data *dataset.Graph, s *session.Session, form sample.Form) *Source {
	e := &Source{data: data, session: s, here: sample.NewDrawer(data.Topology, sample.Options{Form: form}), far: frontier.New(s.Peers, s.Work, s.Layout)}
	e.far.Tally = &s.Start
	return e
}

// Shard returns a topology that has the edges of a shard, until the next call.
func (e *Source) Shard(ctx context.Context, shard int) (*sample.Topology, error) {
	e.brought = nil
	first := e.data.Shards[shard].First
	if e.data.Topology.Near(first) {
		return e.data.Topology, nil
	}
	brought, err := e.session.Replica.Shard(ctx, e.session.Peers, e.session.Work, shard, &e.session.Start)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(e.data.Shards)
	all[shard] = brought
	topology, err := sample.NewPartial(all, e.session.Replica.Summaries)
	if err != nil {
		return nil, fmt.Errorf("look at the edges of shard %d: %w", shard, err)
	}
	e.brought = brought
	// The degrees of vertices here are known: there is no need to find them again.
	return topology.Held(func(of uint32) bool { return of == first }), nil
}

// Labels sets those of the training vertices from first on, of the shard that was last
// brought or of one that is here.
func (e *Source) Labels(to []int32, first uint32) {
	s := e.brought
	if s == nil || first-s.First >= uint32(s.Vertices) {
		e.data.Learnt(to, first)
		return
	}
	for i := range to {
		row := int(first-s.First) + i
		if to[i] = graph.NoLabel; s.Labels != nil && e.data.Split < len(s.Marks) && s.Marks[e.data.Split][row] == graph.Train {
			to[i] = s.Labels[row]
		}
	}
}

// Inverses implements sample.Inverses. Each node is asked once for each of its vertices.
func (e *Source) Inverses(ctx context.Context, vertices []uint32, to []float32) error {
	e.places, e.missing = e.places[:0], e.missing[:0]
	for i, v := range vertices {
		if e.data.Topology.Near(v) {
			if err := e.here.Inverses(vertices[i:i+1], to[i:i+1]); err != nil {
				return fmt.Errorf("find the degree of vertex %d: %w", v, err)
			}
			continue
		}
		if f, ok := e.asked.find(v); ok {
			to[i] = f
			continue
		}
		e.places, e.missing = append(e.places, int32(i)), append(e.missing, v)
	}
	if len(e.missing) == 0 {
		return nil
	}
	e.came = slices.Grow(e.came[:0], len(e.missing))[:len(e.missing)]
	if err := e.far.Inverses(ctx, e.missing, e.came); err != nil {
		return err
	}
	for i, f := range e.came {
		to[e.places[i]] = f
		e.asked.set(e.missing[i], f)
	}
	return nil
}

// Drop gives up all that was brought.
func (e *Source) Drop() { *e = Source{data: e.data, session: e.session, here: e.here, far: e.far} }

// degrees are 1/sqrt(degree) of vertices, in pages.
type degrees map[uint32]*[degreesPage]float32

const degreesPage = 1 << 10

// find returns that of a vertex, if it is known.
func (d degrees) find(v uint32) (float32, bool) {
	p := d[v/degreesPage]
	if p == nil {
		return 0, false
	}
	f := p[v%degreesPage]
	return f, !math.IsNaN(float64(f))
}

// set sets it.
func (d *degrees) set(v uint32, f float32) {
	if *d == nil {
		*d = degrees{}
	}
	p := (*d)[v/degreesPage]
	if p == nil {
		p = new([degreesPage]float32)
		for i := range p {
			p[i] = float32(math.NaN())
		}
		(*d)[v/degreesPage] = p
	}
	p[v%degreesPage] = f
}
