package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

func jobOf(fanouts []int, values ...string) recipe.Recipe {
	r := recipe.DefaultRecipe(nn.Program)
	r.Model.Layers = len(fanouts)
	r.Epochs, r.Batch, r.Seed, r.Fanouts = 3, 60, 7, fanouts
	r.Sharing = strategy.Given(program.Name, values...)
	return r
}

// A world is a job on some nodes, each with a program beside it.
type world struct {
	t        *testing.T
	shards   []*graph.Shard
	recipe   recipe.Recipe
	nodes    int
	desks    []*desk.Desk
	programs []*desktest.Program
	dirs     []string
	epochs   [][]trained.Epoch
	// change changes the options of a run, if it is not nil.
	change func(node int, o *train.Options)
}

func newWorld(t *testing.T, nodes int, r recipe.Recipe, shards []*graph.Shard) *world {
	w := &world{t: t, shards: shards, recipe: r, nodes: nodes, epochs: make([][]trained.Epoch, nodes)}
	for range nodes {
		w.desks = append(w.desks, desk.New())
		w.programs = append(w.programs, &desktest.Program{Rate: 1e-3})
		w.dirs = append(w.dirs, "")
	}
	return w
}

// attach starts the program of a node. ended receives its error.
func (w *world) attach(node int) (ended chan error) {
	w.t.Helper()
	p, err := w.desks[node].Attach()
	if err != nil {
		w.t.Fatal(err)
	}
	w.programs[node].Line = desktest.Local(p)
	ended = make(chan error, 1)
	go func() {
		defer p.Leave()
		ended <- w.programs[node].Run()
	}()
	w.t.Cleanup(p.Leave)
	return ended
}

// run runs the job once.
func (w *world) run(ctx context.Context) []error {
	owners := traintest.Uneven(len(w.shards), w.nodes)
	m := traintest.NewMesh(w.nodes, owners)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, w.nodes)
	var all sync.WaitGroup
	for node := range w.nodes {
		all.Go(func() {
			o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Resume: true, Dir: w.dirs[node], Desk: w.desks[node]}
			held, own := w.shards, o
			if w.nodes > 1 {
				held, own = m.Of(node, w.shards, o)
			} else {
				own.Work = peer.Work{Nodes: []string{"n0"}}
			}
			own.Report = func(e trained.Epoch) { w.epochs[node] = append(w.epochs[node], e) }
			if w.change != nil {
				w.change(node, &own)
			}
			_, errs[node] = train.Run(ctx, w.recipe, held, own)
			if errs[node] != nil { // as the mesh does, with a new generation
				cancel(fmt.Errorf("node %d: %w", node, errs[node]))
			}
		})
	}
	all.Wait()
	return errs
}

// whole runs the job with all programs to its end.
func (w *world) whole() {
	w.t.Helper()
	var ended []chan error
	for node := range w.nodes {
		ended = append(ended, w.attach(node))
	}
	if err := errors.Join(w.run(w.t.Context())...); err != nil {
		w.t.Fatal(err)
	}
	w.finish(ended)
}

func (w *world) finish(ended []chan error) {
	w.t.Helper()
	for node, d := range w.desks {
		d.End(&desk.Ending{Done: true})
		if err := <-ended[node]; err != nil {
			w.t.Errorf("the program of node %d: %v", node, err)
		}
	}
}

// union returns what the programs of all nodes have seen in a step.
func (w *world) union(at desktest.Place) (roots, vertices map[int64]bool, edges map[[2]int64]bool) {
	roots, vertices, edges = map[int64]bool{}, map[int64]bool{}, map[[2]int64]bool{}
	for _, p := range w.programs {
		seen := p.Seen[at]
		for _, v := range seen.Roots {
			if roots[v] {
				w.t.Errorf("%v: vertex %d is a seed vertex of two nodes", at, v)
			}
			roots[v] = true
		}
		for _, v := range seen.Vertices {
			vertices[v] = true
		}
		maps.Copy(edges, seen.Edges)
	}
	return roots, vertices, edges
}

// The nodes together see the same, and learn the same, whatever their number.
func TestTheSameOnAnyNumberOfNodes(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, c := range []struct {
		name    string
		fanouts []int
		values  []string
		exact   bool // each vertex has the same neighbours in all hops
	}{
		{"owners", []int{4, 4}, nil, true},
		{"slices", []int{4, 4}, []string{"program.deal=slices"}, true},
		{"all neighbours", []int{0, 0}, nil, true},
		{"unlike fan-outs", []int{5, 3}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := jobOf(c.fanouts, c.values...)
			one := newWorld(t, 1, r, shards)
			one.whole()
			if steps := len(one.programs[0].Seen); steps < 6 {
				t.Fatalf("%d steps", steps)
			}
			for nodes := 2; nodes <= 3; nodes++ {
				w := newWorld(t, nodes, r, shards)
				w.whole()
				for at := range one.programs[0].Seen {
					roots, vertices, edges := one.union(at)
					r, v, e := w.union(at)
					if !maps.Equal(roots, r) || !maps.Equal(vertices, v) || c.exact && !maps.Equal(edges, e) {
						t.Errorf("%d nodes, %v: %d, %d and %d seed vertices, vertices and edges, and %d, %d and %d on one", nodes, at, len(r), len(v), len(e), len(roots), len(vertices), len(edges))
					}
				}
				for node, p := range w.programs {
					if !reflect.DeepEqual(p.Weights, w.programs[0].Weights) {
						t.Errorf("node %d of %d has other weights than the first", node, nodes)
					}
				}
				if d := traintest.Distance(w.programs[0].Weights, one.programs[0].Weights); c.exact != (d < 1e-9) {
					t.Errorf("%d nodes are %g off one node", nodes, d)
				}
			}
			if traintest.Distance(one.programs[0].Weights, make([]float64, len(one.programs[0].Weights))) == 0 {
				t.Error("nothing was learned")
			}
		})
	}
}

// A batch has the vertices and the edges of the graph, in PyG's order.
func TestBatchesAreOfTheGraph(t *testing.T) {
	dense, sparse := traintest.Communities(t, 900), traintest.CoraShards(t)
	for name, c := range map[string]struct {
		shards []*graph.Shard
		fresh  bool
	}{"dense": {dense, false}, "sparse": {sparse, false}, "fresh edges first": {dense, true}} {
		t.Run(name, func(t *testing.T) {
			shards := c.shards
			r := jobOf([]int{4, 3, 2})
			r.Epochs, r.Features = 1, "row"
			data, err := dataset.Open(shards, 0, r.Features)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, 1, r, shards)
			checked := 0
			d := w.desks[0]
			p, err := d.Attach()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
			line := desktest.Local(p)
			ended := make(chan []error, 1)
			go func() { ended <- w.run(t.Context()) }()
			ask := func(kind string) desktest.Reply {
				a, err := line.Ask(desk.Question{Type: kind, Version: desk.Version, Form: desk.Form{FreshFirst: c.fresh}})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			ask(desk.Hello)
			for b := ask(desk.Next); b.Type == "batch"; b = ask(desk.Next) {
				if b.FreshFirst != c.fresh {
					t.Fatalf("a program that says fresh_first %t gets batches with %t", c.fresh, b.FreshFirst)
				}
				checkBatch(t, data, line, &b, r.Fanouts)
				checked++
			}
			ask(desk.Next) // after last
			if errs := <-ended; errs[0] != nil || checked < 2 {
				t.Errorf("%d batches, %v", checked, errs)
			}
		})
	}
}

// What follows a batch is announced with it once it is prepared, to programs that ask for that.
func TestBatchesAreAnnounced(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, asks := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := jobOf([]int{4, 3})
			r.Epochs, r.Features = 2, "row"
			data, err := dataset.Open(shards, 0, r.Features)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, 1, r, shards)
			w.change = func(_ int, o *train.Options) { o.Threads = 2 } // one prepares nothing ahead
			p, err := w.desks[0].Attach()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
			line := desktest.Local(p)
			ended := make(chan []error, 1)
			go func() { ended <- w.run(t.Context()) }()
			ask := func(kind string) desktest.Reply {
				a, err := line.Ask(desk.Question{Type: kind, Version: desk.Version, Form: desk.Form{Following: asks}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // until as much as may be is prepared
				return a
			}
			steps := ask(desk.Hello).Steps
			for epoch := 1; epoch <= r.Epochs; epoch++ {
				var announced *desk.Batch
				for step := range steps {
					b, want := ask(desk.Next), "batch"
					if announced != nil {
						want = "announced"
					}
					if b.Type != want || b.Epoch != epoch || b.Step != step || step > 1 && (announced != nil) != asks {
						t.Fatalf("step %d of epoch %d is answered by %+v, and was announced as %+v", step, epoch, b, announced)
					}
					if announced = b.Following; announced == nil {
						continue
					}
					if announced.Epoch != epoch || announced.Step != step+1 {
						t.Errorf("step %d of epoch %d announces %+v", step, epoch, announced)
					}
					text, err := json.Marshal(announced)
					var next desktest.Reply
					if err = errors.Join(err, json.Unmarshal(text, &next)); err != nil {
						t.Fatal(err)
					}
					checkBatch(t, data, line, &next, r.Fanouts) // its memory is here
				}
				if announced != nil || ask(desk.Next).Type != "last" {
					t.Errorf("%+v follows the last step of epoch %d", announced, epoch)
				}
				ask(desk.Next)
			}
			if errs := <-ended; errs[0] != nil {
				t.Error(errs)
			}
		})
	}
}

func checkBatch(t *testing.T, data *dataset.Graph, line desktest.Line, b *desktest.Reply, fanouts []int) {
	t.Helper()
	ids, edges := desk.Numbers[int64](line.Data(b.NID)), desk.Numbers[int64](line.Data(b.Edges))
	labels, x := desk.Numbers[int64](line.Data(b.Y)), desk.Numbers[float32](line.Data(b.X))
	n, columns := len(edges)/2, data.About.Features
	if len(ids) != b.Nodes || len(labels) != b.Roots || len(x) != b.Nodes*columns || b.HopNodes[0] != b.Roots {
		t.Fatalf("%+v", b)
	}
	distinct := map[int64]bool{}
	for _, v := range ids {
		distinct[v] = true
	}
	if len(distinct) != len(ids) {
		t.Errorf("%d of %d vertices are distinct", len(distinct), len(ids))
	}
	var given []int32
	given = data.TargetsOf(given, toIDs(ids[:b.Roots]))
	for i, y := range given {
		if labels[i] != int64(y) {
			t.Fatalf("vertex %d has label %d, and not %d", ids[i], labels[i], y)
		}
	}
	first, at, reached := 0, 0, b.HopNodes[0]
	end := n
	for hop, edgesOf := range b.HopEdges {
		drawn := map[int64]map[int64]bool{}
		old := edgesOf - b.HopFresh[hop]
		places := make([]int, 0, edgesOf)
		for i := range edgesOf {
			places = append(places, at+i)
			if b.FreshFirst && i < old {
				places[i] = end - old + i
			} else if b.FreshFirst {
				places[i] = at + i - old
			}
		}
		for k, i := range places {
			u, v := edges[i], edges[n+i]
			if v < 0 || v >= int64(reached) || u >= int64(reached+b.HopNodes[hop+1]) {
				t.Fatalf("hop %d has an edge from %d to %d, and its targets are below %d", hop+1, u, v, reached)
			}
			if fresh := k >= old; fresh != (v >= int64(first)) {
				t.Fatalf("hop %d counts %d fresh edges, and edge %d of %d has the target %d of %d", hop+1, b.HopFresh[hop], k, edgesOf, v, first)
			}
			if drawn[v] == nil {
				drawn[v] = map[int64]bool{}
			}
			drawn[v][ids[u]] = true
		}
		for v := range reached {
			row, _ := data.Topology.Row(int(ids[v]))
			if got := len(drawn[int64(v)]); got != int(sample.Kept(int32(len(row)), fanouts[hop])) {
				t.Errorf("vertex %d has %d of %d neighbours in hop %d", ids[v], got, len(row), hop+1)
			}
			for u := range drawn[int64(v)] {
				if !slices.Contains(row, int32(u)) {
					t.Errorf("%d is no neighbour of %d", u, ids[v])
				}
			}
		}
		if b.FreshFirst {
			at, end = at+b.HopFresh[hop], end-old
		} else {
			at += edgesOf
		}
		first, reached = reached, reached+b.HopNodes[hop+1]
	}
	if at != end || reached != b.Nodes {
		t.Errorf("the hops have edges up to %d and from %d on of %d, and %d of %d vertices", at, end, n, reached, b.Nodes)
	}
	sums := make([]float64, b.Nodes)
	for i, v := range x {
		sums[i/columns] += math.Abs(float64(v))
	}
	for i, sum := range sums {
		if math.Abs(sum-1) > 1e-5 && sum != 0 { // rows are normalised
			t.Fatalf("the row of vertex %d adds up to %g", ids[i], sum)
		}
	}
}

func toIDs(of []int64) (all []uint32) {
	for _, v := range of {
		all = append(all, uint32(v))
	}
	return all
}

// What a program reports is recorded, and decides which epoch is best.
func TestReportsAreRecorded(t *testing.T) {
	w := newWorld(t, 2, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	accuracies := []float64{0.5, 0.75, 0.625}
	for node, p := range w.programs {
		p.Last = func(epoch int) desk.Scores {
			loss, acc := float64(epoch)+10*float64(node), accuracies[epoch-1]
			return desk.Scores{Loss: &loss, ValAcc: &acc}
		}
	}
	w.whole()
	for node, epochs := range w.epochs {
		if len(epochs) != 3 {
			t.Fatalf("node %d has %d epochs", node, len(epochs))
		}
		for i, e := range epochs {
			if e.Loss != float64(i+1) || e.Eval == nil || e.Eval.Val == nil || *e.Eval.Val != accuracies[i] || e.Eval.Test != nil || e.Hash == "" || e.Hash != w.epochs[0][i].Hash {
				t.Errorf("node %d: %+v, %+v", node, e.Record, e.Eval)
			}
		}
		if epochs[0].Hash == epochs[1].Hash {
			t.Error("two epochs have one hash")
		}
	}
	other := newWorld(t, 2, w.recipe, w.shards)
	for _, p := range other.programs {
		p.Rate *= 2
	}
	other.whole()
	if other.epochs[0][2].Hash == w.epochs[0][2].Hash {
		t.Error("other sums have the same hash")
	}
	if ends := w.programs[1].Ends; !slices.Equal(ends, []int{1, 2, 3}) {
		t.Errorf("the program hears of the ends of %v", ends)
	}
}
