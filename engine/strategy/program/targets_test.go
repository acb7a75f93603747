package program_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// planted are the targets of a vertex. Some are missing, and of some vertices all are.
func planted(vertex, column int) float64 {
	switch {
	case vertex%11 == 0, (vertex+column)%5 == 0:
		return math.NaN()
	case column == 1:
		return -1
	}
	return float64(vertex%7)/4 + float64(column)
}

func targetShards(t *testing.T, targets graph.Targets, columns int) []*graph.Shard {
	t.Helper()
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 600, Edges: 3000, Features: 5, Classes: 3, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Cut(t, enginetest.WithTargets(src, targets, columns, planted), 6, "")
}

// want returns what a program should read of a vertex's column.
func want(targets graph.Targets, original int64, column int) float32 {
	x := planted(int(original), column)
	if targets == graph.YesOrNo && !math.IsNaN(x) {
		if x > 0 {
			return 1
		}
		return 0
	}
	return float32(x)
}

func same(a, b float32) bool { return a == b || a != a && b != b }

// Programs get targets with columns as float32, on any number of nodes, and a NaN for each that
// is missing.
func TestTargetsWithColumns(t *testing.T) {
	for _, c := range []struct {
		targets graph.Targets
		columns int
	}{{graph.YesOrNo, 3}, {graph.Numbers, 2}, {graph.Numbers, 1}} {
		shards := targetShards(t, c.targets, c.columns)
		originals := map[int64]int64{}
		for _, s := range shards {
			for row, id := range s.Originals.Ints {
				originals[int64(s.First)+int64(row)] = id
			}
		}
		r := jobOf([]int{3, 2})
		r.Learn(task.For(c.targets))
		for nodes := 1; nodes <= 3; nodes++ {
			w := newWorld(t, nodes, r, shards)
			w.begin(t)
			p, err := w.desks[nodes-1].Attach()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Leave)
			d := &drawer{t: t, line: desktest.Local(p)}
			ready := d.ask(desk.Question{Type: desk.Hello, Version: desk.Version, Form: desk.Form{Columns: true}}, "ready")
			if ready.Targets != string(c.targets) || ready.Classes != c.columns {
				t.Errorf("ready says %q with %d columns", ready.Targets, ready.Classes)
			}
			d.room = *d.ask(desk.Question{Type: desk.Room, Bytes: 1 << 12}, "room").Region
			check := func(vertices []int64, y []float32) {
				t.Helper()
				if len(y) != c.columns*len(vertices) {
					t.Fatalf("%s on %d nodes: %d numbers for %d vertices", c.targets, nodes, len(y), len(vertices))
				}
				for i, got := range y {
					v, column := vertices[i/c.columns], i%c.columns
					if want := want(c.targets, originals[v], column); !same(got, want) {
						t.Fatalf("%s on %d nodes: column %d of vertex %d is %g, and not %g", c.targets, nodes, column, v, got, want)
					}
				}
			}
			b := d.ask(d.question(1, []int{2}, 599, 0, 11, 300, 5), "batch")
			check(desk.Numbers[int64](d.line.Data(b.NID))[:b.Roots], desk.Numbers[float32](d.line.Data(b.Y)))
			a := d.ask(desk.Question{Type: desk.Know}, "known")
			every := make([]int64, 600)
			for v := range every {
				every[v] = int64(v)
			}
			check(every, desk.Numbers[float32](d.line.Data(a.Y)))
			if nodes > 1 {
				continue // a step of several nodes needs all of their programs
			}
			b = d.ask(desk.Question{Type: desk.Next}, "batch")
			if b.Roots == 0 {
				t.Fatal("the first step has no seed vertices")
			}
			check(desk.Numbers[int64](d.line.Data(b.NID))[:b.Roots], desk.Numbers[float32](d.line.Data(b.Y)))
		}
	}
}

// A program that knows classes alone is not given anything else.
func TestProgramThatKnowsNoColumns(t *testing.T) {
	r := jobOf([]int{2})
	r.Learn(task.For(graph.YesOrNo))
	w := newWorld(t, 1, r, targetShards(t, graph.YesOrNo, 2))
	w.begin(t)
	p, err := w.desks[0].Attach()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	a, err := desktest.Local(p).Ask(desk.Question{Type: desk.Hello, Version: desk.Version})
	if err != nil || a.Type != "failed" || !strings.Contains(a.Error, "take the package of the same release") {
		t.Errorf("%+v, %v", a, err)
	}
}

// Pairs are not learnt by programs.
func TestProgramsLearnNoLinks(t *testing.T) {
	about := dataset.Describe(traintest.Communities(t, 600))
	r := jobOf([]int{3, 3})
	r.Learn(task.Named("link"))
	if err := r.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), "learns no links") {
		t.Error(err)
	}
}
