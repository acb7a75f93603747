package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
)

// same compares the results of all nodes with each other and with those of one node.
func same(t *testing.T, name string, results []*Result, one *Result) {
	t.Helper()
	for node, e := range results {
		if *e != *results[0] {
			t.Errorf("%s: node %d has %+v and node 0 has %+v", name, node, e, results[0])
		}
		if e.Train != one.Train || e.Val != one.Val || e.Test != one.Test {
			t.Errorf("%s: node %d has\n%+v %+v %+v, and one node alone\n%+v %+v %+v", name, node, e.Train, e.Val, e.Test, one.Train, one.Val, one.Test)
		}
	}
}

func evalSpecs() map[string]nn.Spec {
	specs := map[string]nn.Spec{}
	for _, model := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "mlp"} {
		s := nn.Defaults(model)
		s.Layers, s.Hidden = 3, 8
		specs[model] = s
	}
	jump := nn.Defaults("sage")
	jump.Head, jump.Jump, jump.Layers, jump.Hidden = nn.HeadLinear, nn.JumpCat, 3, 8
	specs["jump"] = jump
	second, largest := specs["gat"], specs["sage"]
	second.Version, largest.Aggregator = 2, "max"
	specs["gatv2"], specs["max"] = second, largest
	return specs
}

// Nodes come to the bits of one node, whatever memory each has: at first each may use
// all it wants, then some have room for parts only, and some keep rows in files.
func TestNodesEvaluateAsOne(t *testing.T) {
	dense, sparse := enginetest.Communities(t, 1500), enginetest.Cora(t)
	chunks := enginetest.Communities(t, 6*chunkRows) // of which each shard has two
	const most = 2                                   // all but a byte of what the whole takes
	specs, parts := evalSpecs(), 0
	for _, c := range []struct {
		spec, topology string
		shards         []*graph.Shard
		nodes          int
	}{
		{"gcn", "sharded", sparse, 3}, {"gcn", "replicated", chunks, 2}, {"gcn", "sharded", dense, 5},
		{"sage", "replicated", sparse, 2}, {"sage", "sharded", chunks, 3},
		{"gat", "sharded", sparse, 2}, {"gat", "replicated", dense, 5},
		{"gcnii", "sharded", dense, 3}, {"jump", "replicated", dense, 3}, {"jump", "sharded", dense, 2}, {"mlp", "sharded", dense, 3},
		{"gin", "sharded", chunks, 3}, {"resgcn", "sharded", dense, 2}, {"gatv2", "sharded", sparse, 3}, {"max", "sharded", dense, 2},
	} {
		of := setup{spec: specs[c.spec], metric: task.ROCAUC, topology: c.topology, dir: t.TempDir()}
		one := of.alone(t, c.shards)
		want, err := one.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := newMesh(c.nodes, enginetest.Uneven(len(c.shards), c.nodes))
		all := m.start(t, of, c.shards)
		for epoch, memory := range [][]uint64{{plenty}, {plenty, most, 1}, {1, plenty, most}} {
			for node, tr := range all {
				if tr.Limit(memory[node%len(memory)]); tr.memory == most {
					tr.Limit(tr.wholeBytes(tr.all()) - 1)
				}
			}
			how := fmt.Sprintf("%s, %s, %d shards, %d nodes, memory %d", c.spec, c.topology, len(c.shards), c.nodes, memory)
			same(t, how, m.evaluated(t, all, epoch+1), want)
			for node, tr := range all {
				owns := tr.own.rows > 0
				switch memory := memory[node%len(memory)]; {
				case memory == plenty && owns != tr.whole.ready, memory == 1 && owns && !tr.planned.inFile:
					t.Errorf("%s: node %d doesn't use its memory as it may", how, node)
				case memory == most && owns && !tr.planned.inFile:
					parts++
				}
			}
		}
	}
	if parts == 0 {
		t.Error("no node has parts without files")
	}
}

func TestNodesEvaluateAsOneInFloat64(t *testing.T) {
	shards := enginetest.Tiny(t, 60, 6)
	for name, spec := range evalSpecs() {
		of := setup{spec: spec, metric: task.ROCAUC, topology: "sharded", wide: true, dir: t.TempDir()}
		one := of.alone(t, shards)
		want, err := one.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, nodes := range []int{1, 2, 3, 5} {
			m := newMesh(nodes, enginetest.Uneven(len(shards), nodes))
			all := m.start(t, of, shards)
			for epoch, memory := range []uint64{1 << 40, 1} {
				for _, tr := range all {
					tr.Limit(memory)
				}
				same(t, fmt.Sprintf("%s, %d nodes, memory %d", name, nodes, memory), m.evaluated(t, all, epoch+1), want)
			}
		}
	}
}

// What is large travels in several pieces, to the same end.
func TestLargeRowsTravelInPieces(t *testing.T) {
	before, ranks := windowBytes, rankWindow
	defer func() { windowBytes, rankWindow = before, ranks }()
	windowBytes, rankWindow = 1000, 64
	shards := enginetest.Communities(t, 3000)
	of := setup{spec: evalSpecs()["gcn"], metric: task.ROCAUC, dir: t.TempDir()}
	one := of.alone(t, shards)
	want, err := one.evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := newMesh(3, []int{0, 1, 2, 1, 0})
	all := m.start(t, of, shards)
	for epoch, memory := range []uint64{1 << 40, 1} {
		for _, tr := range all {
			tr.Limit(memory)
		}
		results := m.evaluated(t, all, epoch+1)
		same(t, fmt.Sprintf("memory %d", memory), results, want)
		if n := results[0].Sent.Requests[peer.Activation]; n < 100 {
			t.Errorf("%d questions bring all rows", n)
		}
	}
}

// asked counts questions for offers, as they are carried.
type asked struct {
	mu sync.Mutex
	of map[string]int
}

func (a *asked) watch(m *mesh) {
	a.of = map[string]int{}
	m.net.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.of[fmt.Sprintf("%v: n%d asks n%d for %d of step %d of epoch %d", q.Kind, from, to, q.Part, q.Step, q.Epoch)]++
		return nil
	}
}

// Each node asks each owner once a layer for the rows that it needs, and traffic is counted
// exactly.
func TestWhatAnEvaluationSends(t *testing.T) {
	shards := enginetest.Communities(t, 3000)
	of := setup{spec: evalSpecs()["gcn"], metric: task.Accuracy, topology: "replicated"}
	m := newMesh(3, []int{0, 1, 2, 1, 0})
	all := m.start(t, of, shards)
	var a asked
	a.watch(m)
	for epoch := 1; epoch <= 3; epoch++ {
		clear(a.of)
		results := m.evaluated(t, all, epoch)
		sent := results[0].Sent
		var counted peer.Counts
		rows := 0
		for _, tr := range all {
			counted.Add(tr.halo.parcels.tally.Read())
			rows += tr.halo.size()
		}
		if sent != counted {
			t.Errorf("epoch %d: sent is %+v, and counted %+v", epoch, sent, counted)
		}
		// Three layers of 8 numbers, of which the last has no reader; three nodes,
		// each of which needs something of each.
		const layers, pairs = 2, 6
		bytes := layers * (4*8*rows + pairs*(peer.QueryFraming+peer.AnswerFraming))
		if got := sent.Bytes[peer.Activation]; got != uint64(bytes) || sent.Requests[peer.Activation] != layers*pairs {
			t.Errorf("epoch %d: %d bytes of activations in place of %d, in %d requests", epoch, got, bytes, sent.Requests[peer.Activation])
		}
		first := uint64(0)
		if epoch == 1 {
			first = pairs
		}
		if sent.Requests[peer.Feature] != first || sent.Requests[peer.Topology] != 2*first || sent.Requests[peer.Control] != first+pairs {
			t.Errorf("epoch %d: sent is %+v", epoch, sent)
		}
		for question, n := range a.of {
			if n > 1 {
				t.Errorf("epoch %d: %d times: %s", epoch, n, question)
			}
		}
		if len(a.of) != layers*pairs+pairs+4*int(first) {
			t.Errorf("epoch %d: %d questions: %v", epoch, len(a.of), a.of)
		}
		// Nothing stays on offer: its memory is for the next.
		h := all[0].halo
		late := h.parcels.tag(parcel{what: 0, to: 0, row: 32}, indices/((3+kindsOffered)*3), 0)
		err := h.nodes.Exchange.Take(t.Context(), 1, peer.Activation, late, make([]byte, 32*h.of(1)), nil)
		if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "withdrawn") {
			t.Errorf("epoch %d: what is asked for late is answered with %v", epoch, err)
		}
	}
}

// A peer that does not answer holds up nobody who is stopped, and one that
// refuses is named, with what it was asked for.
func TestAPeerThatDoesNotAnswerItsRows(t *testing.T) {
	shards := enginetest.Communities(t, 3000)
	for _, memory := range []uint64{1 << 40, 1} {
		begun := func() (*mesh, []*member) {
			m := newMesh(3, []int{0, 1, 2, 1, 0})
			all := m.start(t, setup{spec: evalSpecs()["gcn"], metric: task.ROCAUC, dir: t.TempDir()}, shards)
			for _, tr := range all {
				tr.Limit(memory)
			}
			return m, all
		}
		m, all := begun()
		ctx, end := context.WithCancelCause(t.Context())
		silent := make(chan struct{})
		var once sync.Once
		m.net.Trouble = func(ctx context.Context, from, to int, q peer.Query) error {
			if q.Kind != peer.Activation || to != 1 {
				return nil
			}
			once.Do(func() { close(silent) })
			<-ctx.Done()
			return context.Cause(ctx)
		}
		ended := make(chan error)
		go func() {
			ended <- m.each(func(node int) error {
				// The last one to stop may find that another has.
				if _, err := all[node].evaluate(ctx); !errors.Is(err, errEnough) && !errors.Is(err, peer.ErrRefused) {
					return fmt.Errorf("node %d: %w", node, err)
				}
				return nil
			})
		}()
		<-silent
		end(errEnough)
		if err := <-ended; err != nil {
			t.Errorf("memory %d: %v", memory, err)
		}

		m, all = begun()
		m.net.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
			if q.Kind == peer.Activation && from == 2 && to == 1 {
				return errEnough
			}
			return nil
		}
		ctx, end = context.WithCancelCause(t.Context())
		err := m.each(func(node int) error {
			_, err := all[node].evaluate(ctx)
			if node == 2 {
				end(errors.New("over"))
				return err
			}
			return nil
		})
		if !errors.Is(err, errEnough) || !strings.Contains(err.Error(), "run layers.0 over all vertices: take the rows after layers.0 from node n1: ") {
			t.Errorf("memory %d: %v", memory, err)
		}
	}
	// Nothing stays mapped.
	maps, err := os.ReadFile("/proc/self/maps")
	if err == nil && strings.Contains(string(maps), "/rows-") {
		t.Errorf("mapped are still:\n%s", maps)
	}
}

// Once memory has grown, an evaluation allocates what it returns, and nothing by the
// size of the graph or of the model.
func TestEvaluationsAllocateLittle(t *testing.T) {
	few := map[int]float64{}
	for _, vertices := range []int{600, 6000} {
		shards := enginetest.Communities(t, vertices)
		m := newMesh(3, []int{0, 1, 2, 1, 0})
		of := setup{spec: evalSpecs()["gcn"], metric: task.ROCAUC}
		all := m.start(t, of, shards)
		epoch := 0
		start, done := make([]chan int, 3), make(chan error)
		for node, tr := range all {
			start[node] = make(chan int)
			go func() {
				for epoch := range start[node] {
					tr.epoch = epoch
					_, err := tr.evaluate(t.Context())
					done <- err
				}
			}()
		}
		once := func() {
			epoch++
			for _, s := range start {
				s <- epoch
			}
			for range start {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		for range 5 {
			once()
		}
		few[vertices] = testing.AllocsPerRun(20, once)
		for _, s := range start {
			close(s)
		}
	}
	t.Logf("three nodes allocate %v times an evaluation", few)
	// 30 questions and their answers take three each on loopback.
	if few[6000] > few[600]+10 || few[600] > 110 {
		t.Errorf("three nodes allocate %v times an evaluation", few)
	}
}

func TestRowsThatAreNotThereAreRefused(t *testing.T) {
	e := extent{spans: []span{{first: 10, rows: 5}, {first: 40, row: 5, rows: 3}}, rows: 8}
	ids := func(v ...uint32) (b []byte) {
		for _, v := range v {
			b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		return b
	}
	if rows, err := e.decode(ids(10, 14, 40, 42)); err != nil || fmt.Sprint(rows) != "[0 4 5 7]" {
		t.Errorf("%v, %v", rows, err)
	}
	for _, bad := range [][]byte{ids(9), ids(15), ids(39), ids(43), ids(1 << 31), ids(11, 11), ids(41, 10)} {
		if rows, err := e.decode(bad); err == nil {
			t.Errorf("%v: %v", bad, rows)
		}
	}
	if rows, err := (&extent{}).decode(ids(0)); err == nil {
		t.Errorf("a node that has nothing gives %v", rows)
	}
}

func TestMoreRowsThanThereAreAreRefused(t *testing.T) {
	h := &halo{nodes: Nodes{Work: peer.Work{Nodes: []string{"a", "b"}, Self: 1}}, own: extent{rows: 300}}
	if n, err := h.count([]byte{255, 255, 255, 255, 44, 1, 0, 0}); err != nil || n != 300 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range [][]byte{nil, {0, 0, 0, 0}, {0, 0, 0, 0, 45, 1, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 128}, make([]byte, 12)} {
		if n, err := h.count(bad); err == nil {
			t.Errorf("%v: %d", bad, n)
		}
	}
}

func FuzzWanted(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 41, 0, 0, 0})
	f.Add([]byte{})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		e := extent{spans: []span{{first: 10, rows: 5}, {first: 40, row: 5, rows: 3}}, rows: 8}
		rows, err := e.decode(b[:len(b)/4*4])
		for _, row := range rows {
			if row >= 8 {
				t.Errorf("row %d of %x", row, b)
			}
		}
		if err == nil && len(rows) != len(b)/4 {
			t.Errorf("%d rows of %x", len(rows), b)
		}
	})
}

// Tags of what is offered at a time are distinct, however much that is, and none is
// too large.
func TestTagsOfAnEvaluationAreDistinct(t *testing.T) {
	before := windowBytes
	defer func() { windowBytes = before }()
	windowBytes = 1 << 10
	for _, nodes := range []int{2, 7, 300} {
		h := &parcels{nodes: &Nodes{Work: peer.Work{Nodes: make([]string, nodes)}}, stages: make([]string, 9)}
		seen := map[exchange.Tag]bool{}
		for what := range len(h.stages) + kindsOffered {
			for _, to := range []int{0, 1, nodes - 1} {
				p := parcel{what: what, to: to, row: 12}
				bytes := 12 * 50_000_000
				window, places := h.window(p, bytes)
				n := (bytes + window - 1) / window
				if window%p.row != 0 || n > places {
					t.Fatalf("%d nodes: %d windows of %d bytes, of which %d have a place", nodes, n, window, places)
				}
				for _, place := range []int{0, n - 1} {
					tag := h.tag(p, places, place)
					if tag.Index >= indices {
						t.Errorf("%d nodes: index %d", nodes, tag.Index)
					}
					if seen[tag] && !(nodes == 2 && to == 1) {
						t.Errorf("%d nodes: %+v has the tag of another", nodes, p)
					}
					seen[tag] = true
				}
			}
		}
	}
}

// BenchmarkSharedEvaluation evaluates Cora on nodes of one process, which take turns on its
// cores, and on one node alone.
func BenchmarkSharedEvaluation(b *testing.B) {
	shards, of := enginetest.Cora(b), setup{spec: nn.Defaults("gcn"), metric: task.Accuracy, features: "row"}
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			m := newMesh(nodes, []int{0, 1 % nodes, 2 % nodes, 0})
			all := []*member{of.alone(b, shards)}
			if nodes > 1 {
				all = m.start(b, of, shards)
			}
			epoch := 0
			b.ReportAllocs()
			for b.Loop() {
				epoch++
				err := m.each(func(node int) error {
					all[node].epoch = epoch
					_, err := all[node].evaluate(b.Context())
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What another node says of degrees is a number.
func TestDegreesOfOthersAreChecked(t *testing.T) {
	shards := enginetest.Communities(t, 1500)
	for _, wrong := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		m := newMesh(2, enginetest.Uneven(len(shards), 2))
		all := m.start(t, setup{spec: evalSpecs()["gcn"], metric: task.Accuracy, topology: "sharded"}, shards)
		for _, of := range all[1].weaver.inverse {
			for i := range of {
				of[i] = wrong
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, len(all))
		_ = m.each(func(node int) error {
			_, errs[node] = all[node].evaluate(ctx)
			if node == 0 {
				cancel() // the other waits for it
			}
			return nil
		})
		if errs[0] == nil || !strings.Contains(errs[0].Error(), "has a degree whose root is 1/") {
			t.Errorf("%g: %v", wrong, errs[0])
		}
	}
}
