package embedding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// split is a layout of the vertices on four nodes, with a shard that has none.
func split() *peer.Layout {
	return &peer.Layout{Nodes: 4, Owners: []int{2, 0, 0, 1, 3}, Firsts: []uint32{0, 7, 7, 20, 31, vertices}}
}

// placed returns the tables of the nodes of that layout.
func placed() (all []*Table) {
	l := split()
	for node := range l.Nodes {
		all = append(all, New(Options{Vertices: vertices, Columns: columns, Seed: 3, Optimizer: nn.OptimizerSpec{Kind: "adam"}, Shards: 8, Layout: l, Self: node, Apart: true}))
	}
	return all
}

// A node has the rows that its shards and those of the node before it have in a whole table.
func TestRowsThatAreHere(t *testing.T) {
	whole, l := table("adam"), split()
	for node, tab := range placed() {
		n := 0
		for v := range uint32(vertices) {
			owner := l.Owner(v)
			place := tab.held.place(v)
			if here := owner == node || (owner+1)%4 == node; here != (place >= 0) {
				t.Fatalf("node %d, vertex %d of node %d: %d", node, v, owner, place)
			}
			if place >= 0 {
				n++
				if !slices.Equal(tab.row(tab.rows, place), whole.row(whole.rows, int(v))) {
					t.Errorf("node %d begins with another row of vertex %d", node, v)
				}
			}
		}
		if n != tab.here() || uint64(n) != Held(l, node) {
			t.Errorf("node %d has %d rows of %d", node, tab.here(), n)
		}
	}
	one := New(Options{Vertices: vertices, Columns: columns, Optimizer: nn.OptimizerSpec{Kind: "sgd"}, Layout: split(), Apart: true})
	if _, err := one.partsOf(nil, []uint32{0, 1, 3, 0, 0, 0, 0, 0}, 0); err == nil || !strings.Contains(err.Error(), "the row of vertex 3 is another node's") {
		t.Errorf("a gradient of a row that is elsewhere: %v", err)
	}
}

// Updates of rows that are with their owners are those of a whole table, to the same bits, and the last of
// them can be taken back.
func TestUpdatesOfRowsWithTheirOwners(t *testing.T) {
	const grains, updates = 6, 3
	one, before := table("adam"), []float32(nil)
	random := rand.New(rand.NewPCG(5, 6))
	for update := range uint64(updates) {
		before = slices.Clone(one.rows)
		one.Begin()
		for _, g := range groups(random, grains) {
			add(one, &g)
		}
		one.Update(0.01, update+1)
	}
	all, digests := placed(), make([]string, 4)
	net, w := loopback.New(4), peer.Work{Nodes: []string{"a", "b", "c", "d"}}
	errs := make([]error, 4)
	var running sync.WaitGroup
	for node, tab := range all {
		w := w
		w.Self = node
		x := exchange.New(net.Node(node), w)
		net.Node(node).Open()
		running.Go(func() {
			random := rand.New(rand.NewPCG(5, 6))
			var tally peer.Tally
			for update := range uint32(updates) {
				tab.Begin()
				for i, g := range groups(random, grains) {
					if i%4 == node {
						add(tab, &g)
					}
				}
				tag := exchange.Tag{Epoch: 1, Step: update}
				if errs[node] = tab.Share(t.Context(), x, w, tag, &tally); errs[node] != nil {
					return
				}
				if _, errs[node] = x.Gather(t.Context(), tag, nil, &tally); errs[node] != nil {
					return
				}
				tab.Update(0.01, uint64(update)+1)
			}
			weights := []float32{1, 2, 3}
			for i := range 3 { // of rows that agree, then of one that differs, then of weights
				if node == 3 && i == 1 {
					tab.rows[0]++ // of node 2
				}
				if node == 3 && i == 2 {
					tab.rows[0]--
					weights[0]++
				}
				tag := exchange.Tag{Epoch: 2, Step: uint32(i)}
				of, err := Hash(t.Context(), tab, x, tag, weights, &tally)
				if errs[node] = err; err != nil {
					return
				}
				digests[node] += " " + of
				if _, errs[node] = x.Gather(t.Context(), tag, nil, &tally); errs[node] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for node, tab := range all {
		for v := range uint32(vertices) {
			if place := tab.held.place(v); place >= 0 && !slices.Equal(tab.row(tab.rows, place), one.row(one.rows, int(v))) {
				t.Fatalf("node %d has another row of vertex %d", node, v)
			}
		}
		first, last := strings.Fields(digests[0]), strings.Fields(digests[node])
		for i := range first {
			if same := first[i] == last[i]; same != (node < 3 || i == 0) {
				t.Errorf("hash %d of node %d: %s, and of node 0 %s", i, node, last[i], first[i])
			}
		}
		if !tab.Back() || tab.Back() {
			t.Errorf("node %d takes back what it can't, or not what it can", node)
		}
		for v := range uint32(vertices) {
			if place := tab.held.place(v); place >= 0 && !slices.Equal(tab.row(tab.rows, place), before[int(v)*columns:][:columns]) {
				t.Fatalf("node %d has not gone back to the row of vertex %d", node, v)
			}
		}
	}
}

// Rows are read as they are between two updates: early questions wait, and late ones are refused.
func TestQuestionsWaitForTheirRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := placed()[0]
		answers := make(chan string, 8)
		ask := func(step uint32) {
			go func() {
				err := tab.Enter(t.Context(), 1, step)
				if err == nil {
					tab.Leave()
				}
				answers <- fmt.Sprint(step, err == nil, errors.Is(err, peer.ErrRefused))
			}()
			synctest.Wait()
		}
		want := func(all ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(answers) > 0 {
				got = append(got, <-answers)
			}
			if slices.Sort(got); !slices.Equal(got, all) {
				t.Errorf("answered are %q in place of %q", got, all)
			}
		}
		update := func(n uint64) {
			tab.Begin()
			tab.Add(cpu.New(1), 0, []uint32{8}, tensor.OverF32(1, columns, make([]float32, columns)))
			tab.shared = true
			tab.Update(0.1, n)
		}
		ask(0)
		ask(1)
		want()
		<-time.After(enterWithin) // they are to ask again
		want("0 false false", "1 false false")
		ask(0)
		ask(1)
		tab.Serve(1, 0)
		want("0 true false")
		ask(0)
		want("0 true false")
		update(1)
		ask(0)
		want("0 false true")
		tab.Serve(1, 1)
		want("1 true false")
		tab.Serve(1, 2) // an evaluation
		ask(1)
		ask(2)
		want("1 true false", "2 true false")
		update(2)
		tab.Back()
		ask(2)
		want()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tab.Enter(ctx, 1, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("a question that is given up: %v", err)
		}
	})
}

// Steps of tables whose rows are with their owners allocate nothing either.
func TestStepsWithOwnersAllocateNothing(t *testing.T) {
	tab, all, d := placed()[1], groups(rand.New(rand.NewPCG(9, 1)), 3), cpu.New(1)
	update, owners := uint64(0), tab.held.owners()
	one := func() {
		tab.Serve(1, int(update))
		tab.Begin()
		for i := range all {
			tab.Add(d, all[i].grain, all[i].vertices, tensor.OverF32(len(all[i].vertices), columns, all[i].gradient))
		}
		for _, to := range owners {
			tab.step.parts, _ = tab.partsOf(tab.step.parts, tab.mine[tab.turn][to], to)
		}
		tab.shared = true
		update++
		tab.Update(0.01, update)
	}
	for range 4 {
		one()
	}
	if n := testing.AllocsPerRun(20, one); n > 0 {
		t.Errorf("a step allocates %g times", n)
	}
}
