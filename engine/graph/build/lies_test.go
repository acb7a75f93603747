package build

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// openMaker returns a node that makes all shards of a graph, and who tells it what to do.
func openMaker(t *testing.T, change func(*job)) (*mesh, *conductor) {
	t.Helper()
	src := shape{vertices: 40, edges: 100, features: 3, density: 1}.source(1)
	m := newMesh(t, src, 1)
	w := m.makers(1, "{}")
	c := &conductor{Makers: w, b: newBuilder(src, Options{Shards: 1}, &plan{shards: 1})}
	j := job{Meta: src.Meta(), Shards: 1, DType: graph.F32, Shift: 3, Nodes: w.Nodes, Owners: w.Owners, Spec: w.Spec, Output: 1 << 16}
	change(&j)
	body, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.deliver(t.Context(), 0, append(c.message(sayOpen), body...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.servers["n0"].Close)
	return m, c
}

// all64 is a message's payload: records.
func all64(list ...uint64) []byte { return wire.AppendRecords(nil, list, nil) }

// number says that all vertices are in shard 0.
func (c *conductor) number(t *testing.T) {
	t.Helper()
	if err := c.deliver(t.Context(), 0, append(c.message(sayParts), make([]byte, 80)...)); err != nil {
		t.Fatal(err)
	}
	if err := c.deliver(t.Context(), 0, c.message(sayNumber)); err != nil {
		t.Fatal(err)
	}
}

// finished does a task and waits for it.
func (c *conductor) finished(t *testing.T, what byte) error {
	t.Helper()
	if err := c.deliver(t.Context(), 0, append(c.message(sayDo), what)); err != nil {
		return err
	}
	for {
		if _, done, err := c.say(t.Context(), 0, c.message(sayPoll)); done || err != nil {
			return err
		}
	}
}

// A maker refuses a task whose turn has not come. Each of these once ended the daemon.
func TestTasksOutOfOrder(t *testing.T) {
	t.Run("place before sort", func(t *testing.T) {
		_, c := openMaker(t, func(*job) {})
		if err := c.deliver(t.Context(), 0, append(c.message(sayHalves), all64(5<<32|7<<1|1)...)); err != nil {
			t.Fatal(err)
		}
		c.number(t)
		if err := c.finished(t, doPlace); err == nil {
			t.Error("edges were read that had not been sorted")
		}
	})
	t.Run("features of none", func(t *testing.T) {
		_, c := openMaker(t, func(j *job) { j.Meta.Features, j.Random = 0, true })
		c.number(t)
		if err := c.deliver(t.Context(), 0, append(c.message(sayColumn), make([]byte, 8+8*40)...)); err != nil {
			t.Fatal(err)
		}
		if err := c.finished(t, doMake); err != nil {
			t.Fatal(err)
		}
		if err := c.finished(t, doDrawRows); err == nil {
			t.Error("features were drawn of a graph that has none")
		}
	})
}

// What comes late, when a maker has gone, has no effect.
func TestLateMessagesToMaker(t *testing.T) {
	m, c := openMaker(t, func(*job) {})
	s := m.servers["n0"]
	late := s.makers[c.ID]
	if err := late.takeParts(make([]uint16, 40)); err != nil {
		t.Fatal(err)
	}
	s.Keep(func(string) bool { return true })
	if err := c.deliver(t.Context(), 0, c.message(sayPing)); err != nil {
		t.Fatal(err)
	}
	s.Keep(func(id string) bool { return id != c.ID })
	if err := c.deliver(t.Context(), 0, c.message(sayPing)); err == nil {
		t.Error("an import that the plan does not list goes on")
	}
	for what, err := range map[string]error{
		"parts": late.takeParts(make([]uint16, 40)), "number": late.number(), "sort": late.begin(doSort), "publish": late.publish(),
	} {
		if err == nil {
			t.Errorf("%s was done after the end", what)
		}
	}
	if left := m.left(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A node that sends more than the graph has is refused before the disk is full.
func TestNoMoreThanTheGraph(t *testing.T) {
	_, c := openMaker(t, func(*job) {})
	say := func(what byte, body []byte) error { return c.deliver(t.Context(), 0, append(c.message(what), body...)) }
	many := all64(slices.Repeat([]uint64{5<<32 | 7<<1 | 1}, 100)...)
	for i := range 3 {
		if err := say(sayHalves, many); (err != nil) != (i == 2) {
			t.Errorf("halves, %d: %v", i, err)
		}
	}
	column := append(make([]byte, 8), make([]byte, 1<<15)...)
	if say(sayColumn, column) == nil {
		t.Error("a column of vertices that have no shard yet")
	}
	c.number(t)
	for i := range 2 {
		if err := say(sayEdges, all64(slices.Repeat([]uint64{5<<32 | 7}, 100)...)); (err != nil) != (i == 1) {
			t.Errorf("edges, %d: %v", i, err)
		}
	}
	for i := range 3 {
		if err := say(sayColumn, column); (err != nil) != (i == 2) {
			t.Errorf("columns, %d: %v", i, err)
		}
	}
}

// Runs that a node claims are checked before anything as long is made.
func TestRunsThatNodesClaim(t *testing.T) {
	for name, runs := range map[string][]run{
		"other vertices":  {{first: 8, vertices: 8}},
		"too few":         {{first: 0, vertices: 8}},
		"too many":        {{first: 0, vertices: 8}, {first: 8, vertices: 8}, {first: 16, vertices: 8}},
		"a wide run":      {{first: 0, vertices: 16}},
		"more edges":      {{first: 0, vertices: 8, edges: 60}, {first: 8, vertices: 8, edges: 41}},
		"edges overflown": {{first: 0, vertices: 8, edges: 1 << 49}, {first: 8, vertices: 8, edges: -1 << 49}},
	} {
		g := &blocks{vertices: 40}
		if err := g.takeRuns(appendRuns(nil, runs), nil, 16, 8, 100); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	g := &blocks{vertices: 40}
	if err := g.takeRuns(appendRuns(nil, []run{{first: 0, vertices: 8, edges: 60}, {first: 8, vertices: 8, edges: 40}}), nil, 16, 8, 100); err != nil {
		t.Error(err)
	}
}

// cutEnd is where cutter changes.
func TestCutEnd(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5, 7} {
		for _, shift := range []uint{0, 1, 3, 6} {
			j := &job{Meta: graph.Meta{Vertices: 61}, Shift: shift, Nodes: make([]string, nodes)}
			for node := range nodes {
				end := uint32(0)
				for v := range j.Meta.Vertices {
					if j.cutter(v) <= node {
						end = v + 1
					}
				}
				if got := j.cutEnd(node); got != end {
					t.Errorf("%d nodes, shift %d, node %d: %d, want %d", nodes, shift, node, got, end)
				}
			}
		}
	}
}

// What makers say of their shards must fit the graph.
func TestMakersThatLie(t *testing.T) {
	src := shape{vertices: 300, edges: 2000}.source(1)
	for what, lie := range map[string]func(*graph.ShardInfo){
		"vertices": func(i *graph.ShardInfo) { i.Vertices++ },
		"edges":    func(i *graph.ShardInfo) { i.Edges += 1 << 40 },
		"cut":      func(i *graph.ShardInfo) { i.Cut = i.Edges + 1 },
		"halo":     func(i *graph.ShardInfo) { i.Halo = 301 },
	} {
		m := newMesh(t, src, 2)
		w := m.makers(4, "")
		ask := w.Ask
		w.Ask = func(ctx context.Context, node string, message, into []byte) ([]byte, error) {
			b, err := ask(ctx, node, message, into)
			var list []made
			if err == nil && message[0] == sayPoll && len(b) > 1 && json.Unmarshal(b[1:], &list) == nil {
				lie(&list[0].Info)
				said, err := json.Marshal(list)
				return append(b[:1:1], said...), err
			}
			return b, err
		}
		_, err := Conduct(t.Context(), src, Options{Dir: filepath.Join(t.TempDir(), "one"), Shards: 4, Partitioner: stream}, w)
		w.Drop(t.Context())
		if err == nil || !strings.Contains(fmt.Sprint(err), errMessage.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
