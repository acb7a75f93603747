package program_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
)

// weighed gives the edges of a source weights.
func weighed(from graph.Source) graph.Source {
	s := from.(*source.Assembled)
	s.Info.Weighted = true
	read := s.ReadEdges
	s.ReadEdges = func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		return read(ctx, func(b graph.EdgeBatch) error {
			for i := range b.Src {
				b.Weights = append(b.Weights, float32(i%9)+0.5)
			}
			return yield(b)
		})
	}
	return s
}

// edgeOf describes an edge with what it has.
func edgeOf(source, target int64, kind int64, weight float32, row []float32) string {
	return fmt.Sprint(source, target, kind, weight, row)
}

// edgesOf lists the edges of a graph.
func edgesOf(shards []*graph.Shard) map[string]bool {
	all := map[string]bool{}
	for _, s := range shards {
		for v := range s.Vertices {
			for e := s.Indptr[v]; e < s.Indptr[v+1]; e++ {
				kind, weight, row := int64(-1), float32(-1), []float32(nil)
				if s.Related != nil {
					kind = int64(s.Related.Of[e])
				}
				if s.Weights != nil {
					weight = s.Weights[e]
				}
				if s.EdgeRows.Columns > 0 {
					row = s.EdgeRows.Append(nil, e)
				}
				all[edgeOf(int64(s.Indices[e]), int64(s.First)+int64(v), kind, weight, row)] = true
			}
		}
	}
	return all
}

// given lists the edges of a batch, in its order.
func given(line desktest.Line, b *desktest.Reply, columns int) (all []string) {
	ids, ends := desk.Numbers[int64](line.Data(b.NID)), desk.Numbers[int64](line.Data(b.Edges))
	n := len(ends) / 2
	for i := range n {
		kind, weight, row := int64(-1), float32(-1), []float32(nil)
		if b.EdgeType != nil {
			kind = desk.Numbers[int64](line.Data(*b.EdgeType))[i]
		}
		if b.EdgeWeight != nil {
			weight = desk.Numbers[float32](line.Data(*b.EdgeWeight))[i]
		}
		if b.EdgeAttr != nil {
			row = desk.Numbers[float32](line.Data(*b.EdgeAttr))[i*columns:][:columns]
		}
		all = append(all, edgeOf(ids[ends[i]], ids[ends[n+i]], kind, weight, row))
	}
	return all
}

// Programs get what edges have, the same on any number of nodes, and only those that know of it.
func TestWhatEdgesHave(t *testing.T) {
	for name, c := range map[string]struct {
		source     graph.Source
		tell       func(s *nn.Spec)
		topologies []string
		ready      desktest.Reply
	}{
		"types": {
			enginetest.Typed("wrote", "edited", "rev-wrote"), func(s *nn.Spec) { s.Relations = 3 },
			[]string{strategy.Replicated, strategy.Sharded}, desktest.Reply{Relations: 3},
		},
		"weights": {
			weighed(enginetest.Described(false)), func(s *nn.Spec) { s.Weighted = true },
			[]string{strategy.Replicated, strategy.Sharded}, desktest.Reply{Weighted: true},
		},
		"features": {
			enginetest.Described(true), func(s *nn.Spec) { s.EdgeFeatures = enginetest.DescribedColumns },
			[]string{strategy.Replicated}, desktest.Reply{EdgeColumns: enginetest.DescribedColumns},
		},
		"weights and features": {
			weighed(enginetest.Described(true)), func(s *nn.Spec) { s.Weighted, s.EdgeFeatures = true, enginetest.DescribedColumns },
			[]string{strategy.Replicated}, desktest.Reply{Weighted: true, EdgeColumns: enginetest.DescribedColumns},
		},
	} {
		shards := enginetest.Cut(t, c.source, 6, "")
		whole := edgesOf(shards)
		for _, fresh := range []bool{true, false} {
			var first []string
			for run := range 3 * len(c.topologies) {
				nodes, topology := run/len(c.topologies)+1, c.topologies[run%len(c.topologies)]
				what := fmt.Sprintf("%s, fresh first %t, %d nodes, %s", name, fresh, nodes, topology)
				r := jobOf([]int{4, 3}, "topology="+topology)
				c.tell(&r.Model)
				w := newWorld(t, nodes, r, shards)
				w.begin(t)
				d := attached(t, w, nodes-1, desk.Form{Edges: true, FreshFirst: fresh}, c.ready)
				got := []string(nil)
				for number, vertices := range [][]int64{{1, 599, 400}, {333}, {5, 6, 7, 300}} {
					b := d.ask(d.question(uint64(number), []int{3, 4}, vertices...), "batch")
					got = append(got, given(d.line, &b, c.ready.EdgeColumns)...)
				}
				if nodes == 1 { // a step of several nodes needs all of their programs
					b := d.ask(desk.Question{Type: desk.Next}, "batch")
					for _, edge := range given(d.line, &b, c.ready.EdgeColumns) {
						if !whole[edge] {
							t.Fatalf("%s: there is no edge %s in the graph", what, edge)
						}
					}
				}
				for _, edge := range got {
					if !whole[edge] {
						t.Fatalf("%s: there is no edge %s in the graph", what, edge)
					}
				}
				if first == nil {
					first = got
				}
				if len(got) < 50 || !slices.Equal(got, first) {
					t.Errorf("%s: %d edges are not those of one node", what, len(got))
				}
			}
		}
		// A program that knows nothing of it is given nothing.
		r := jobOf([]int{4, 3})
		c.tell(&r.Model)
		w := newWorld(t, 1, r, shards)
		w.begin(t)
		d := attached(t, w, 0, desk.Form{}, desktest.Reply{})
		if b := d.ask(d.question(0, []int{3}, 1, 2), "batch"); b.EdgeType != nil || b.EdgeWeight != nil || b.EdgeAttr != nil {
			t.Errorf("%s: a program that does not ask gets %+v", name, b)
		}
	}
}

// attached attaches a program that says what it knows to a node of a world that runs.
func attached(t *testing.T, w *world, node int, knows desk.Form, want desktest.Reply) *drawer {
	t.Helper()
	p, err := w.desks[node].Attach()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	d := &drawer{t: t, line: desktest.Local(p)}
	ready := d.ask(desk.Question{Type: desk.Hello, Version: desk.Version, Form: knows}, "ready")
	if ready.Relations != want.Relations || ready.Weighted != want.Weighted || ready.EdgeColumns != want.EdgeColumns {
		t.Errorf("ready says %d relations, weights %t and %d features of edges", ready.Relations, ready.Weighted, ready.EdgeColumns)
	}
	d.room = *d.ask(desk.Question{Type: desk.Room, Bytes: 1 << 12}, "room").Region
	return d
}

// What a recipe says of edges must be what the dataset has.
func TestWhatEdgesCannotHave(t *testing.T) {
	typed := dataset.Describe(enginetest.Cut(t, enginetest.Typed("wrote", "edited"), 2, ""))
	described := dataset.Describe(enginetest.Cut(t, enginetest.Described(true), 2, ""))
	for want, c := range map[string]struct {
		about  dataset.About
		change func(r *recipe.Recipe)
	}{
		"the edges of the dataset have 2": {typed, func(r *recipe.Recipe) { r.Model.Relations = 3 }},
		"the recipe has weights of edges": {typed, func(r *recipe.Recipe) { r.Model.Relations, r.Model.Weighted = 2, true }},
		"the model tells -1 relations":    {typed, func(r *recipe.Recipe) { r.Model.Relations = -1 }},
		"self-loops have none":            {typed, func(r *recipe.Recipe) { r.Model.Relations, r.Model.SelfLoops = 2, nn.LoopsOn }},
		"reads 3 features of edges":       {described, func(r *recipe.Recipe) { r.Model.EdgeFeatures = 3 }},
		"where each node has all edges: lea": {described, func(r *recipe.Recipe) {
			r.Model.EdgeFeatures, r.Sharing = 2, strategy.Given(program.Name, "topology=sharded")
		}},
	} {
		r := jobOf([]int{2})
		if err := r.Check(c.about, strategies.All); err != nil {
			t.Fatal(err)
		}
		c.change(&r)
		if err := r.Check(c.about, strategies.All); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}
