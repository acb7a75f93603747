package forecast

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Whole is a job whose step is the whole graph, on nodes that need not be there.
type Whole struct {
	Recipe *recipe.Recipe // without batches, with the strategy's settings
	Model  *nn.Model
	Graph  *Graph
	Layout *peer.Layout
	Holds  func(node, shard int) bool
	Edges  []int64 // of each shard
	Rates  Rates
	Memory uint64  // of a node; 0: not bounded
	Row    float64 // bytes of a row of features on the wire
	// Kept is what the strategy keeps between forecasts of one job.
	Kept map[string]any
}

// An Outcome is what an epoch of such a job takes.
type Outcome struct {
	Bytes, Once peer.Counts
	Memory      uint64 // of the node that needs most, beside weights
	Seconds     float64
	Parts       Parts
	Why         string // it can't be trained
}

// whole fills a row with the forecast of steps of the whole graph.
func (j *job) whole(ctx context.Context, m *mesh, of *Strategy, r *recipe.Recipe, rates Rates, row *Row) error {
	w := &Whole{
		Recipe: r, Model: j.model, Graph: j.Graph, Layout: &m.layout, Holds: func(node, shard int) bool { return m.holds[node][shard] },
		Edges: j.Graph.edges(len(m.layout.Owners)), Rates: rates, Memory: j.Memory, Row: j.counter.row, Kept: j.kept,
	}
	o, err := of.Whole(ctx, w)
	if err != nil {
		return err
	}
	// While nodes wait for each other, processors do no more than they can.
	if busy := rates.effort(&o.Bytes, row.Nodes) / rates.processors(); busy > o.Parts.Wait {
		o.Seconds, o.Parts.Wait = o.Seconds+busy-o.Parts.Wait, busy
	}
	row.Bytes, row.Once, row.Seconds, row.Parts, row.Why = o.Bytes, o.Once, o.Seconds, o.Parts, o.Why
	z := sizes{held: o.Memory}
	if row.Why != "" {
		return nil
	}
	return j.fits(m, &z, row, false)
}

// edges returns the edges of each of so many shards, each of which is a whole one or a
// part of one.
func (g *Graph) edges(shards int) []int64 {
	pieces := int64(shards / len(g.Sizes))
	var all []int64
	for i := range g.Sizes {
		for range pieces {
			all = append(all, g.Sizes[i].Edges/pieces)
		}
	}
	return all
}

// Into counts, for each of some runs of vertices, the vertices of each shard from which
// edges lead into the run; the run's own count where own is set, and only then. runs and
// firsts are where runs and shards begin, then the number of vertices.
func (g *Graph) Into(runs, firsts []uint32, own bool) [][]int32 {
	all := make([][]int32, len(runs)-1)
	var marks []uint64
	for i := range all {
		run := Span{runs[i], runs[i+1]}
		all[i] = make([]int32, len(firsts)-1)
		if g.MadeUp() {
			g.guess(all[i], run, firsts, own)
			continue
		}
		if marks == nil {
			marks = make([]uint64, (g.Topology.Vertices()+63)/64)
		}
		g.count(all[i], run, firsts, own, marks)
	}
	return all
}

// count counts the sources of a run of a graph that is here.
func (g *Graph) count(to []int32, run Span, firsts []uint32, own bool, marks []uint64) {
	clear(marks)
	for v := run.First; v < run.End; v++ {
		if own {
			marks[v/64] |= 1 << (v % 64)
		}
		sources, _ := g.Topology.Row(int(v))
		for _, u := range sources {
			if own || uint32(u) < run.First || uint32(u) >= run.End {
				marks[u/64] |= 1 << (u % 64)
			}
		}
	}
	for shard := range to {
		to[shard] = int32(between(marks, firsts[shard], firsts[shard+1]))
	}
}

// between counts the bits from first to before end.
func between(marks []uint64, first, end uint32) (n int) {
	for v := first; v < end; {
		word := marks[v/64] >> (v % 64)
		here := min(64-v%64, end-v)
		if here < 64 {
			word &= 1<<here - 1
		}
		n += bits.OnesCount64(word)
		v += here
	}
	return n
}

// guess is count for a graph that is only known by its shape.
func (g *Graph) guess(to []int32, run Span, firsts []uint32, own bool) {
	into := []Span{run}
	for shard := range to {
		of := Span{firsts[shard], firsts[shard+1]}
		n := float64(of.End - of.First)
		switch {
		case of.First >= run.First && of.End <= run.End: // its own
			if own {
				to[shard] = int32(n)
			}
		default:
			to[shard] = int32(math.Round(n * -math.Expm1(-g.Reached(into, of))))
		}
	}
}

// Sample is a small graph to time layers on: the graph itself if it is here, otherwise
// one of its shape.
func (g *Graph) Sample(seed uint64) (t *sample.Topology, firsts []uint32, err error) {
	m, made := g.Far.(*madeUp)
	if !made {
		return g.Topology, g.Firsts, nil
	}
	const (
		shards = 4
		most   = 1 << 16
	)
	small := *m
	small.vertices = min(m.vertices, most)
	small.targets, small.sources = nil, nil
	var all []*graph.Shard
	firsts = []uint32{0}
	var drawn sample.Drawn
	for i := range uint64(shards) {
		first, end := small.vertices*i/shards, small.vertices*(i+1)/shards
		s := &graph.Shard{Number: int(i), Shards: shards, First: uint32(first), Vertices: int(end - first), Total: uint32(small.vertices), Indptr: []int64{0}}
		var vertices []uint32
		for v := first; v < end; v++ {
			vertices = append(vertices, uint32(v))
		}
		if err := small.Draw(context.Background(), 0, 0, 0, 0, vertices, &drawn); err != nil {
			return nil, nil, err
		}
		for row := range vertices {
			sources := drawn.Sources[drawn.Indptr[row]:drawn.Indptr[row+1]]
			slices.Sort(sources)
			for at, u := range sources {
				if at == 0 || sources[at-1] != u {
					s.Indices = append(s.Indices, u)
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		all, firsts = append(all, s), append(firsts, uint32(end))
	}
	if t, err = sample.NewTopology(all); err != nil {
		return nil, nil, fmt.Errorf("make up a small graph: %w", err)
	}
	return t, firsts, nil
}

// Rows returns features of some vertices in memory that the next call reuses, as input of
// a pass on the processor.
func (w *Whole) Rows() (rows func(vertices []uint32) nn.Input, end func(), err error) {
	c, err := newInputs()
	if err != nil {
		return nil, nil, err
	}
	return func(vertices []uint32) nn.Input {
		c.rows.Reset()
		c.spare.Reset()
		return w.Graph.input(c, vertices)
	}, c.close, nil
}

// Labels appends those of some vertices.
func (w *Whole) Labels(to []int32, vertices []uint32) []int32 { return w.Graph.labels(to, vertices) }

// Room returns an error if this process may not take so much more memory.
func Room(needs uint64, what string) error {
	if has := left(); needs > has {
		return short(needs, has, what)
	}
	return nil
}

// short says what there is no room for.
func short(needs, has uint64, what string) error {
	return &budget.Short{
		Cause: fmt.Sprintf("this node %s, which needs %s of memory, and has %s", what, budget.Format(needs), budget.Format(has)),
		Needs: needs, Has: has, Advice: []budget.Advice{"take a smaller {batch}, {fanout} or {hidden}", budget.AllowMore},
	}
}
