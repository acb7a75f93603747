//go:build long

package train_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// beyond returns the shards of two rings. The first two shards are the same in every such
// graph and have all training vertices; the third has the rest. No edge is between them.
func beyond(rest int) (shards []*graph.Shard) {
	const each, features, classes = 600, 4, 3
	total, first := 2*each+rest, 0
	for i, n := range []int{each, each, rest} {
		s := &graph.Shard{
			Number: i, Shards: 3, First: uint32(first), Vertices: n, Total: uint32(total), Features: features, Classes: classes, DType: graph.F32,
			Indptr: []int64{0}, DenseRows: graph.DenseRows{Dense: make([]float32, n*features)}, Labels: make([]int32, n), Marks: [][]graph.Mark{make([]graph.Mark, n)},
			Originals: graph.Originals{Ints: make([]int64, n)},
		}
		for row := range n {
			v := first + row
			s.Labels[row] = int32(v % classes)
			s.Dense[row*features+v%classes], s.Dense[row*features+3] = 1, float32(v%7)/7
			if i < 2 {
				s.Marks[0][row] = graph.Mark(1 + v%3)
				a, b := int32((v+1)%(2*each)), int32((v+each)%(2*each))
				s.Indices = append(s.Indices, min(a, b), max(a, b))
			} else {
				s.Indices = append(s.Indices, int32(first+(row+1)%n))
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
		first += n
	}
	return shards
}

// held finds the memory of all slices that can be reached from a value.
type held struct {
	seen  map[seenAt]bool
	spans [][2]uintptr // of memory, which may overlap
}

// bytes returns how much memory that is.
func (h *held) bytes() (sum float64) {
	slices.SortFunc(h.spans, func(a, b [2]uintptr) int { return cmp.Compare(a[0], b[0]) })
	end := uintptr(0)
	for _, s := range h.spans {
		if s[1] > end {
			sum += float64(s[1] - max(s[0], end))
			end = s[1]
		}
	}
	return sum
}

type seenAt struct {
	at uintptr
	of reflect.Type
}

func (h *held) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() || h.seen[seenAt{v.Pointer(), v.Type()}] {
			return
		}
		h.seen[seenAt{v.Pointer(), v.Type()}] = true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			h.walk(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			h.walk(field)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			h.walk(v.MapIndex(key))
		}
	case reflect.Array, reflect.Slice:
		of := v.Type().Elem()
		if v.Kind() == reflect.Slice {
			h.spans = append(h.spans, [2]uintptr{v.Pointer(), v.Pointer() + uintptr(v.Cap())*of.Size()})
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map, reflect.Array, reflect.Slice:
			for i := range v.Len() {
				h.walk(v.Index(i))
			}
		}
	}
}

const few, many = 100_000, 200_000 // vertices of others; far more than a batch has

// TestMemoryOfVerticesBeyond has a node train and evaluate on graphs of which others have
// more and more: what it holds does not grow with them.
func TestMemoryOfVerticesBeyond(t *testing.T) {
	graphs := [2][]*graph.Shard{beyond(few), beyond(many)}
	for _, c := range []struct {
		model    string
		strategy []string
		most     float64 // bytes for each vertex beyond
	}{
		{"sage", []string{"centric", "centric.cache=100"}, 0.05},
		{"sage", []string{"leap", "leap.mode=migrate"}, 0.05},
		{"sage", []string{"local"}, 0.05},
		{"gat", []string{"centric"}, 0.05},
		{"gcn", []string{"centric"}, 0.05},
		{"gcn", []string{"p3"}, 0.05},
		{"gcn", []string{"graph"}, 0.05},
		{"gat", []string{"graph", "pipe.ways=3"}, 0.05},
		{"sage", []string{"pipe", "pipe.ways=3", "pipe.stages=1"}, 0.05},
	} {
		name := fmt.Sprint(c.model, c.strategy)
		r := traintest.Small(c.model)
		if c.strategy[0] == "graph" || c.strategy[0] == "pipe" {
			r = traintest.FullGraph(c.model, 4)
		}
		r.Sharing = strategy.Given(c.strategy[0], append(c.strategy[1:], "topology=sharded")...)
		grown := grownBy(t, r, graphs, 1, func(grown float64) bool { return math.Abs(grown) <= c.most })
		t.Logf("%s: %.3f bytes for each vertex beyond", name, grown)
		if grown > c.most {
			t.Errorf("%s: %.3f bytes for each vertex beyond, and not at most %v", name, grown, c.most)
		}
	}
}

// grownBy returns how many bytes more the first of three nodes holds for each vertex between
// few and many. It looks again until enough says that it may stop: buffers that went to another
// node may come back late, so what a node needs is the least that it was seen to hold.
func grownBy(t *testing.T, r recipe.Recipe, graphs [2][]*graph.Shard, workers int, enough func(float64) bool) float64 {
	t.Helper()
	least := [2]float64{math.Inf(1), math.Inf(1)}
	grown := math.Inf(1)
	for tries := 0; tries < 24 && !enough(grown); tries++ {
		for i := range least {
			least[i] = min(least[i], heldBy(t, r, graphs[i], workers))
		}
		grown = (least[1] - least[0]) / (many - few)
	}
	return grown
}

// heldBy returns how much memory the first of three nodes holds, with so many prefetch
// workers, after steps and an evaluation.
func heldBy(t *testing.T, r recipe.Recipe, shards []*graph.Shard, workers int) float64 {
	t.Helper()
	if s := &r.Sharing; slices.Contains([]string{"leap", "centric", "local"}, s.Strategy) && s.Values[s.Strategy+".cache"] == "" {
		*s = s.With(s.Strategy + ".cache=off") // kept rows take what memory is left
	}
	m := traintest.NewMesh(3, []int{0, 1, 2})
	all := m.Start(t, r, shards, train.Options{Threads: 4 * workers, Strategies: strategies.All})
	err := m.Each(func(node int) error {
		for i := range 2 {
			epoch, step := 1, i
			if r.Batch == 0 { // an epoch is one step
				epoch, step = 1+i, 0
			}
			if _, err := traintest.StepOnce(t.Context(), all[node], epoch, step); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(r.Sharing, err)
	}
	m.Evaluated(t, all, 1)
	h := held{seen: map[seenAt]bool{}}
	h.walk(reflect.ValueOf(all[0].Run))
	return h.bytes()
}

// TestMemoryBesideReplicatedEdges has a node know all edges: beside these it holds at most
// four bytes for each vertex of others, with one prefetch worker or eight.
func TestMemoryBesideReplicatedEdges(t *testing.T) {
	const edges = 8 + 4 // bytes of the bounds and the edge of each vertex beyond
	graphs := [2][]*graph.Shard{beyond(few), beyond(many)}
	for _, c := range []struct {
		model, strategy string
		most            float64
	}{
		{"sage", "centric", 0.05},
		{"sage", "leap", 0.05},
		{"sage", "local", 0.05},
		{"sage", "p3", 0.05},
		{"gat", "centric", 0.2}, // a bit for a self-loop
		{"gcn", "centric", 4.05},
		{"gcn", "p3", 4.05},
	} {
		for _, workers := range []int{1, 8} {
			r := traintest.Small(c.model)
			r.Sharing = strategy.Given(c.strategy, "topology=replicated")
			grown := grownBy(t, r, graphs, workers, func(grown float64) bool { return grown-edges <= c.most }) - edges
			t.Logf("%s, %s, %d workers: %.3f bytes for each vertex beyond, beside its edges", c.model, c.strategy, workers, grown)
			if grown > c.most {
				t.Errorf("%s, %s, %d workers: %.3f bytes for each vertex beyond, and not at most %v", c.model, c.strategy, workers, grown, c.most)
			}
		}
	}
}

// TestGraphFallsWithNodes trains a planted graph of many edges by graph: what the worst node
// holds beside its shards falls with the nodes.
func TestGraphFallsWithNodes(t *testing.T) {
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 120_000, Edges: 4_000_000, Features: 16, Classes: 4, Communities: 64, Inside: 0.9, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	shards := enginetest.Cut(t, src, 64, "")
	edges := 0
	for _, s := range shards {
		edges += len(s.Indices)
	}
	r := traintest.FullGraph("gcn", 4)
	r.Model.Hidden, r.Sharing = 32, strategy.Given("graph")
	single := r
	single.Sharing = strategy.Settings{}
	l := traintest.Started(t, single, shards, train.Options{Threads: 1, Strategies: strategies.All})
	need, err := l.Run.Forecast(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Run.Close()
	t.Logf("a step of one node by itself needs %.1f MiB", float64(need.OnHost())/(1<<20))
	var alone [2]float64
	for _, c := range []struct {
		nodes int
		most  float64 // of what one node alone holds
	}{{1, 1}, {3, 0.85}, {8, 0.4}} { // what ways mirror, and parts that share sources, do not fall as fast
		m := traintest.NewMesh(c.nodes, nil)
		for i := range shards {
			m.Owners = append(m.Owners, i*c.nodes/len(shards))
		}
		all := m.Start(t, r, shards, train.Options{Threads: 1, Strategies: strategies.All})
		err := m.Each(func(node int) error {
			_, err := traintest.StepOnce(t.Context(), all[node], 1, 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var worst [2]float64
		for node, l := range all {
			h, of := held{seen: map[seenAt]bool{}}, held{seen: map[seenAt]bool{}}
			h.walk(reflect.ValueOf(l.Run))
			shards, _ := m.Of(node, shards, train.Options{})
			of.walk(reflect.ValueOf(shards))
			worst[0] = max(worst[0], h.bytes()-of.bytes())
			worst[1] = max(worst[1], float64(traintest.PipedOf(l).Bytes()))
		}
		if c.nodes == 1 {
			alone = worst
		}
		t.Logf("%d nodes, %d edges: the worst holds %.1f MiB in slices beside its shards (%.2fx of one), and %.1f MiB with rows (%.2fx)", c.nodes, edges,
			worst[0]/(1<<20), worst[0]/alone[0], worst[1]/(1<<20), worst[1]/alone[1])
		for _, x := range []float64{worst[0] / alone[0], worst[1] / alone[1]} {
			if x > c.most {
				t.Errorf("%d nodes: the worst holds %.2fx of what one does", c.nodes, x)
			}
		}
	}
}
