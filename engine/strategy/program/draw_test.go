package program_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A drawer asks for batches beside those of epochs.
type drawer struct {
	t    *testing.T
	line desktest.Line
	room desk.Region
}

// drawerOf attaches a program to a node of a world that runs.
func drawerOf(t *testing.T, w *world, node int) *drawer {
	t.Helper()
	p, err := w.desks[node].Attach()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Leave)
	d := &drawer{t: t, line: desktest.Local(p)}
	d.ask(desk.Question{Type: desk.Hello, Version: desk.Version}, "ready")
	d.room = *d.ask(desk.Question{Type: desk.Room, Bytes: 1 << 12}, "room").Region
	return d
}

func (d *drawer) ask(q desk.Question, want string) desktest.Reply {
	d.t.Helper()
	a, err := d.line.Ask(q)
	if err != nil || a.Type != want {
		d.t.Fatalf("%s is answered by %+v, %v", q.Type, a, err)
	}
	return a
}

func (d *drawer) question(number uint64, fanouts []int, vertices ...int64) desk.Question {
	r := d.room
	r.Bytes = uint64(8 * len(vertices))
	copy(desk.Numbers[int64](d.line.Data(r)), vertices)
	return desk.Question{Type: desk.Draw, Region: &r, Fanout: fanouts, Number: number}
}

// begin runs a world until the test ends it.
func (w *world) begin(t *testing.T) {
	ended := make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(ended)
		if err := errors.Join(w.run(ctx)...); ctx.Err() == nil { // else it is cut off
			t.Errorf("the run ended: %v", err)
			for _, d := range w.desks { // so that nobody waits for an answer
				d.End(&desk.Ending{Why: "the run ended"})
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}

// Batches of any vertices are of the graph, whenever they are asked for, and leave those of
// the epochs as they are.
func TestDrawnBatchesAreOfTheGraph(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := jobOf([]int{4, 3})
	r.Features = "row"
	data, err := dataset.Open(shards, 0, r.Features)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 1, r, shards)
	w.begin(t)
	d := drawerOf(t, w, 0)
	next := func(want string) desktest.Reply { return d.ask(desk.Question{Type: desk.Next}, want) }
	draw := func(fanouts ...int) {
		vertices := []int64{int64(data.About.Vertices) - 1, 0, 3, 500}
		b := d.ask(d.question(7, fanouts, vertices...), "batch")
		if !slices.Equal(desk.Numbers[int64](d.line.Data(b.NID))[:4], vertices) || b.Epoch != 0 || b.Step != 7 {
			t.Fatalf("%+v", b)
		}
		checkBatch(t, data, d.line, &b, fanouts)
	}
	draw(2, 0, 3)
	b := next("batch")
	before := slices.Clone(d.line.Data(b.X))
	draw(5)
	draw()
	if !slices.Equal(before, d.line.Data(b.X)) {
		t.Error("the batch of the step has changed")
	}
	checkBatch(t, data, d.line, &b, r.Fanouts)
	for step := 1; step < b.Steps; step++ {
		b := next("batch")
		checkBatch(t, data, d.line, &b, r.Fanouts)
	}
	next("last")
	draw(1, 1)
	next("end")
	draw(9)
}

// One program gets any vertices of a mesh, while no other takes part; and the same as on one
// node.
func TestDrawnOnAnyNumberOfNodes(t *testing.T) {
	shards := traintest.Communities(t, 900)
	var first []int64
	for nodes := 1; nodes <= 3; nodes++ {
		w := newWorld(t, nodes, jobOf([]int{1}), shards)
		w.begin(t)
		d := drawerOf(t, w, nodes-1)
		var all []int64
		for number, vertices := range [][]int64{{1, 899, 400}, {333}, {5, 6, 7, 600}} {
			b := d.ask(d.question(uint64(number), []int{3, 4}, vertices...), "batch")
			all = append(all, desk.Numbers[int64](d.line.Data(b.NID))...)
			all = append(all, desk.Numbers[int64](d.line.Data(b.Edges))...)
			all = append(all, desk.Numbers[int64](d.line.Data(b.Y))...)
			for _, x := range desk.Numbers[float32](d.line.Data(b.X)) {
				all = append(all, int64(1e6*x))
			}
		}
		if first == nil {
			first = all
		}
		if len(all) < 100 || !slices.Equal(all, first) {
			t.Errorf("%d nodes draw %d numbers that are not those of one node", nodes, len(all))
		}
	}
}

// The vertices of a part are those of all nodes together, each once.
func TestVerticesOfAPart(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for part, mark := range map[string]graph.Mark{desk.Train: graph.Train, desk.Val: graph.Validation, desk.Test: graph.Test, desk.All: 0} {
		var want, got, names []int64
		for _, s := range shards {
			for row, m := range s.Marks[0] {
				if part == desk.All || m == mark {
					want = append(want, int64(s.First)+int64(row), s.Originals.Ints[row])
				}
			}
		}
		w := newWorld(t, 3, jobOf([]int{1}), shards)
		w.begin(t)
		for node := range 3 {
			d := drawerOf(t, w, node)
			a := d.ask(desk.Question{Type: desk.Own, Part: part}, "owned")
			got = append(got, desk.Numbers[int64](d.line.Data(a.NID))...)
			names = append(names, desk.Numbers[int64](d.line.Data(*a.IDs))...)
		}
		pairs := make([][2]int64, len(got))
		for i, v := range got {
			pairs[i] = [2]int64{v, names[i]}
		}
		slices.SortFunc(pairs, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		flat := []int64{}
		for _, p := range pairs {
			flat = append(flat, p[:]...)
		}
		if len(want) == 0 || !slices.Equal(flat, want) {
			t.Errorf("%s: %d vertices, and not %d", part, len(got), len(want)/2)
		}
	}
}

// Each node knows all labels and marks.
func TestLabelsAndMarks(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for nodes := 1; nodes <= 3; nodes++ {
		w := newWorld(t, nodes, jobOf([]int{1}), shards)
		w.begin(t)
		d := drawerOf(t, w, nodes-1)
		a := d.ask(desk.Question{Type: desk.Know}, "known")
		y, marks := desk.Numbers[int32](d.line.Data(a.Y)), d.line.Data(a.Marks)
		for _, s := range shards {
			from, end := int(s.First), int(s.First)+s.Vertices
			if !slices.Equal(y[from:end], s.Labels) || !slices.Equal(marks[from:end], s.Marks[0]) {
				t.Errorf("shard %d of %d nodes has other labels or marks", s.Number, nodes)
			}
		}
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for want, change := range map[string]func(q *desk.Question, room []int64){
		"vertex 900 is asked for, and the graph has 900": func(_ *desk.Question, room []int64) { room[1] = 900 },
		"vertex -1 is asked for":                         func(_ *desk.Question, room []int64) { room[0] = -1 },
		"vertex 4 is asked for twice":                    func(_ *desk.Question, room []int64) { room[0], room[1] = 4, 4 },
		"is not the one that room was given in":          func(q *desk.Question, _ []int64) { q.Region.Memory++ },
	} {
		w := newWorld(t, 1, jobOf([]int{1}), traintest.Communities(t, 900))
		w.begin(t)
		d := drawerOf(t, w, 0)
		q := d.question(0, []int{2}, 4, 5)
		change(&q, desk.Numbers[int64](d.line.Data(*q.Region)))
		if a := d.ask(q, "failed"); !strings.Contains(a.Error, want) {
			t.Errorf("%q, and %q was expected", a.Error, want)
		}
	}
}
