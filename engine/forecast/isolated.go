package forecast

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// An Isolation is a job on nodes whose groups draw and read in isolation.
type Isolation struct {
	Graph    *Graph
	Layout   *peer.Layout
	Holds    func(node, shard int) bool
	Settings *strategy.Settings
	Seed     uint64
	Epoch    int     // whose steps are counted, from 1 on
	Epochs   int     // of the job
	Row      float64 // bytes of a row of features on the wire
	Dir      string  // of files that views are made in; "": they are made in memory
	Rooted   bool    // blocks are normalised by degrees, which come with what groups see
	Related  bool    // the model tells relations apart: edges come with theirs in place of weights
	Learnt   bool    // rows of vertices are, and nobody is asked for them
	AllEdges bool    // each node has all edges before views bring any: pairs are learnt, or edges have features
}

// A Sight is what the groups of such a job see.
type Sight interface {
	// Within makes a sampler draw from what the group of some seed vertices sees.
	Within(s *sample.Sampler, roots []uint32) error
	// Regions returns which pairs its groups learn, of a graph whose pairs are learnt.
	Regions() *link.Regions
	// Brought returns what nodes bring so that their groups see it.
	Brought() (Brought, error)
}

// Brought is what nodes bring of each other's shards between steps.
type Brought struct {
	First, Next Came
	Period      int    // epochs until the next view; 0: it never comes
	Waits       bool   // nodes bring it when they need it, and not ahead
	Held        uint64 // memory of the node that needs most
}

// Came is what is brought at once.
type Came struct {
	All     peer.Counts // to all nodes
	Busiest uint64      // bytes that come to the node to which most come
	Made    float64     // seconds of processor time of a node, to make a view of it
}

// hidden returns the bytes that come to the busiest node during a step.
func (b *Brought) hidden(steps int) uint64 {
	if b.Period == 0 {
		return 0
	}
	return b.Next.Busiest / uint64(b.Period*steps)
}

// sent returns what all nodes send for it during a step.
func (b *Brought) sent(steps int) (c peer.Counts) {
	if b.Period > 0 {
		c = scaled(b.Next.All, 1/float64(b.Period*steps))
	}
	return c
}

// made returns the seconds that a node makes views for during a step.
func (b *Brought) made(steps int) float64 {
	if b.Period == 0 {
		return 0
	}
	return b.Next.Made / float64(b.Period*steps)
}

// add adds what is brought to a row: an epoch has its share of what several epochs see.
func (b *Brought) add(r *Row) {
	r.Once.Add(b.First.All)
	if b.Period > 0 {
		r.Bytes.Add(scaled(b.Next.All, 1/float64(b.Period)))
	}
}

// isolation returns the job as strategies of isolated groups see it.
func (j *job) isolation(m *mesh, s *strategy.Settings) *Isolation {
	return &Isolation{
		Graph: j.Graph, Layout: &m.layout, Holds: func(node, shard int) bool { return m.holds[node][shard] },
		Settings: s, Seed: j.Recipe.Seed, Epoch: looked, Epochs: j.Recipe.Epochs, Row: j.counter.row,
		Rooted: j.counter.rooted, Related: j.sampling.Form.Relations > 0, Learnt: j.counter.learnt, AllEdges: j.Graph.pairs != nil || j.sampling.Form.EdgeFeatures > 0, Dir: j.Dir,
	}
}

// unconfined makes the sampler draw from all edges again.
func (j *job) unconfined() {
	j.counter.sampler.Within(j.Graph.Topology)
	j.Graph.Confine(nil, nil)
}

// Confine restricts the edges of a graph that is only known by its shape: those of some
// targets are drawn, from some sources. nil are all. It does nothing to other graphs,
// whose topology can be confined.
func (g *Graph) Confine(targets, sources func(v uint32) bool) {
	if m, made := g.Far.(*madeUp); made {
		m.targets, m.sources = targets, sources
	}
}

// MadeUp reports whether a graph is only known by its shape.
func (g *Graph) MadeUp() bool {
	_, made := g.Far.(*madeUp)
	return made
}

// Degree returns the mean number of edges of a vertex.
func (g *Graph) Degree() float64 { return float64(g.About.Edges) / float64(g.About.Vertices) }

// A Span is the vertices from First to before End.
type Span struct{ First, End uint32 }

// Reached returns, of a graph that is only known by its shape, about how many edges into
// some runs of vertices begin at each vertex of another run. Communities that both runs
// have a part of count: a run ends anywhere in one.
func (g *Graph) Reached(into []Span, of Span) float64 {
	m := g.Far.(*madeUp)
	sum, near, width := 0.0, 0.0, float64(max(1, of.End-of.First))
	for _, s := range into {
		edges := float64(s.End-s.First) * m.mean
		sum += edges * (1 - Inside) / float64(m.vertices)
		near += m.shared(s, of)
	}
	return sum + near/width
}

// shared returns about how many edges go from one run of vertices to another within
// communities that both have a part of. The runs are disjoint, so there are two at most.
func (m *madeUp) shared(into, of Span) (edges float64) {
	for _, community := range []uint64{uint64(into.First) / Community, uint64(max(into.First+1, into.End)-1) / Community} {
		first, end := community*Community, min((community+1)*Community, m.vertices)
		part := func(s Span) float64 {
			return math.Max(0, float64(min(uint64(s.End), end))-float64(max(uint64(s.First), first)))
		}
		edges += part(into) * m.mean * Inside * part(of) / float64(end-first)
		if uint64(into.First)/Community == uint64(max(into.First+1, into.End)-1)/Community {
			break
		}
	}
	return edges
}
