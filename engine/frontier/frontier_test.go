package frontier

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// TestAnyNodeSamplesTheSame compares with one node that has all edges, bit by bit.
func TestAnyNodeSamplesTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, weighted := range []bool{false, true} {
		all := shards(weighted)
		whole, err := sample.NewTopology(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []sample.Weighting{sample.Ones, sample.Sums, sample.Symmetric} {
			for _, loops := range []bool{false, true} {
				for _, n := range []int{2, 3, 5} {
					form := sample.Form{SelfLoops: loops, Weighting: w}
					nodes, _ := mesh(t, all, n, r)
					for _, fanouts := range [][]int{{4, 3, 2}, {0, 0}, {70, 1}} {
						o := sample.Options{Fanouts: fanouts, Form: form, Seed: 11}
						alike(t, nodes, sample.New(whole, o), o, r)
					}
				}
			}
		}
	}
}

// alike has all nodes sample at the same time.
func alike(t *testing.T, nodes []*node, whole *sample.Sampler, o sample.Options, r *rand.Rand) {
	t.Helper()
	for _, x := range nodes {
		x.server = Serve(x.peers)
		x.server.Ready(x.topology, o)
	}
	for step := range uint64(2) {
		var all sync.WaitGroup
		for _, x := range nodes {
			of := roots(r, 60)
			var want, got sample.Batch
			if err := whole.Sample(t.Context(), &want, 3, step, of); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				var tally peer.Tally
				f := x.frontier()
				f.Tally = &tally
				o := o
				o.Far, o.Inverses = f, f.Inverses
				if err := sample.New(x.topology, o).Sample(t.Context(), &got, 3, step, of); err != nil {
					t.Error(err)
					return
				}
				for i := range want.Blocks {
					a, b := &want.Blocks[i], &got.Blocks[i]
					if !slices.Equal(a.Vertices, b.Vertices) || !slices.Equal(a.Indptr, b.Indptr) || !slices.Equal(a.Indices, b.Indices) || !slices.Equal(a.Values, b.Values) {
						t.Errorf("%v, fan-outs %v: block %d of node %d differs", o.Form, o.Fanouts, i, x.work.Self)
					}
				}
				owners := map[int]bool{}
				for i, owner := range x.work.Owners {
					if owner != x.work.Self && x.layout.Firsts[i+1] > x.layout.Firsts[i] {
						owners[owner] = true
					}
				}
				// The last node has no edges of its own, and asks for all.
				c, last := tally.Read().Requests[peer.Topology], x.work.Self == len(nodes)-1
				each := len(o.Fanouts)
				if o.Form.Weighting == sample.Symmetric {
					each++ // and one for degrees
				}
				if c > uint64(each*len(owners)) || last && c == 0 {
					t.Errorf("%d questions in %d hops to %d owners", c, len(o.Fanouts), len(owners))
				}
			})
		}
		all.Wait()
	}
}

// pair is two nodes, of which the first asks; o is what the second draws by.
func pair(t testing.TB, o sample.Options) (asks, serves *node) {
	nodes, _ := mesh(t, shards(true), 3, rand.New(rand.NewPCG(3, 3)))
	for _, x := range nodes {
		x.server.Ready(x.topology, o)
	}
	return nodes[2], nodes[0]
}

func TestQuestionsAreChecked(t *testing.T) {
	o := sample.Options{Fanouts: []int{3, 2}, Seed: 1}
	asks, serves := pair(t, o)
	near, far := uint32(0), uint32(0)
	for v := range uint32(vertices) {
		if serves.topology.Near(v) {
			near = v
		} else {
			far = v
		}
	}
	body := func(numbers ...uint32) (b []byte) {
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		return b
	}
	for _, c := range []struct {
		want string
		hop  uint32
		body []byte
	}{
		{"", 0, body(3, near)},
		{"", 1, body(2, near, near)},
		{"question of 0 bytes", 0, nil},
		{"question of 4 bytes", 0, body(3)},
		{"question of 9 bytes", 0, append(body(3, near), 0)},
		{"question of 16777220 bytes", 0, make([]byte, mostBody+4)},
		{"fan-out of 2", 0, body(2, near)},
		{"fan-out of 3", 2, body(3, near)},
		{"fan-out of 3", 1<<32 - 2, body(3, near)},
		{"do not need degrees", ends, body(0, near)},
		{"question of 4 bytes", ends, body(0)},
		{"are not here", 0, body(3, near, far)},
		{"are not here", 0, body(3, near, vertices)},
		{"are not here", 0, body(3, 1<<32-1)},
	} {
		q := peer.Query{Service: peer.Draws, Kind: peer.Topology, Epoch: 1, Part: c.hop, Body: c.body, Limit: 1 << 20}
		_, err := asks.peers.Ask(t.Context(), 0, q, nil)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, and %q was expected", err, c.want)
		}
	}
}

// TestAnyFanout draws vertices that are no part of an epoch, as a node with all edges does.
func TestAnyFanout(t *testing.T) {
	nodes, _ := mesh(t, shards(true), 3, rand.New(rand.NewPCG(3, 3)))
	whole, err := sample.NewTopology(shards(true))
	if err != nil {
		t.Fatal(err)
	}
	o := sample.Options{Fanouts: []int{3, 2}, Seed: 1}
	for _, x := range nodes {
		x.server.Ready(x.topology, o)
	}
	f := nodes[2].frontier()
	o.Far = f
	s := sample.New(nodes[2].topology, o)
	for _, fanouts := range [][]int{{7}, {5, 0, 2}, {}} {
		var want, got sample.Batch
		of := []uint32{5, 17, 400}
		if err := sample.New(whole, sample.Options{Fanouts: fanouts, Seed: 1}).Sample(t.Context(), &want, AnyFanout, 9, of); err != nil {
			t.Fatal(err)
		}
		before := s.Fan(fanouts)
		if err := s.Sample(t.Context(), &got, AnyFanout, 9, of); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Fan(before), fanouts) || len(got.Blocks) != len(fanouts) {
			t.Fatalf("%d hops by %d", len(got.Blocks), fanouts)
		}
		for i := range want.Blocks {
			a, b := &want.Blocks[i], &got.Blocks[i]
			if !slices.Equal(a.Vertices, b.Vertices) || !slices.Equal(a.Indices, b.Indices) {
				t.Errorf("%d: block %d differs", fanouts, i)
			}
		}
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	_, x := pair(t, sample.Options{Fanouts: []int{3}})
	own := uint32(0)
	for !x.topology.Near(own) {
		own++
	}
	f := x.frontier()
	var to sample.Drawn
	for want, ask := range map[string]func() error{
		"the numbers are too large":      func() error { return f.Draw(t.Context(), 1<<32, 0, 0, 3, nil, &to) },
		"has no edges here":              func() error { return f.Draw(t.Context(), 0, 1, 0, 3, []uint32{own}, &to) },
		"the graph has 600":              func() error { return f.Draw(t.Context(), 0, 0, 0, 3, []uint32{vertices}, &to) },
		"fan-out of 4 was asked for":     func() error { return f.Draw(t.Context(), 1, 0, 0, 4, []uint32{far(x)}, &to) },
		"ask for the rows of hop 1: ask": func() error { return f.Draw(t.Context(), 1, 0, 1, 3, []uint32{far(x)}, &to) },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}

// far is a vertex that is not the node's.
func far(x *node) uint32 {
	v := uint32(0)
	for x.topology.Near(v) {
		v++
	}
	return v
}

// TestBadAnswersAreErrors has the owner answer something else.
func TestBadAnswersAreErrors(t *testing.T) {
	asks, serves := pair(t, sample.Options{Fanouts: []int{3}})
	for _, b := range [][]byte{nil, make([]byte, header), answerOf(1, 1, 0, 1, vertices), answerOf(2, 0, 0, 0, 0)} {
		serves.peers.Answer(peer.Draws, func(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
			if q.Limit != header+4+3*8 {
				t.Errorf("up to %d bytes are taken", q.Limit)
			}
			return reply(b)
		})
		v := uint32(0)
		for !serves.topology.Near(v) {
			v++
		}
		err := asks.frontier().Draw(t.Context(), 0, 0, 0, 3, []uint32{v}, &sample.Drawn{})
		if err == nil || !strings.Contains(err.Error(), "the answer of node a is not usable") {
			t.Error(err)
		}
	}
}

// TestLongAnswersComeInPieces has an owner answer fewer rows than it is asked for.
func TestLongAnswersComeInPieces(t *testing.T) {
	o := sample.Options{Fanouts: []int{0}, Seed: 1}
	asks, serves := pair(t, o)
	var own []uint32
	for v := range uint32(vertices) {
		if serves.topology.Near(v) {
			own = append(own, v)
		}
	}
	var want, got sample.Drawn
	if err := asks.frontier().Draw(t.Context(), 1, 2, 0, 0, own, &want); err != nil {
		t.Fatal(err)
	}
	asked, drawer := 0, &drawer{Drawer: sample.NewDrawer(serves.topology, o)}
	serves.peers.Answer(peer.Draws, func(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
		asked++
		if q.Limit != mostAnswer {
			t.Errorf("up to %d bytes are taken", q.Limit)
		}
		q.Body = q.Body[:min(len(q.Body), prefix+4*7)]
		if err := drawer.draw(t.Context(), q); err != nil {
			return err
		}
		parts := encode(&drawer.drawn, &drawer.head)
		return reply(parts[:]...)
	})
	if err := asks.frontier().Draw(t.Context(), 1, 2, 0, 0, own, &got); err != nil {
		t.Fatal(err)
	}
	if asked != (len(own)+6)/7 || !slices.Equal(want.Indptr, got.Indptr) || !slices.Equal(want.Sources, got.Sources) || !slices.Equal(want.Weights, got.Weights) || !slices.Equal(want.Degrees, got.Degrees) {
		t.Errorf("%d questions for %d rows, or other rows", asked, len(own))
	}
}

// TestQuestionsWait asks before the owner has its data, and all owners at once.
func TestQuestionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := sample.Options{Fanouts: []int{3}}
		nodes, net := mesh(t, shards(false), 5, rand.New(rand.NewPCG(3, 3)))
		net.Delay = 50 * time.Millisecond
		f := nodes[4].frontier()
		of := roots(rand.New(rand.NewPCG(1, 1)), vertices)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Draw(ctx, 0, 0, 0, 3, of, &sample.Drawn{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		for _, x := range nodes {
			time.AfterFunc(time.Second, func() { x.server.Ready(x.topology, o) })
		}
		var to sample.Drawn
		if err := f.Draw(t.Context(), 0, 0, 0, 3, of, &to); err != nil || len(to.Degrees) != vertices {
			t.Errorf("%d rows, %v", len(to.Degrees), err)
		}
		if took := time.Since(start); took != 1050*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// TestOneThatFailsEndsTheOthers has one owner refuse while the others never answer.
func TestOneThatFailsEndsTheOthers(t *testing.T) {
	nodes, net := mesh(t, shards(false), 5, rand.New(rand.NewPCG(3, 3)))
	refused := errors.New("not today")
	net.Trouble = func(_ context.Context, _, to int, _ peer.Query) error {
		if to == nodes[0].work.Owners[1] {
			return refused
		}
		return nil
	}
	err := nodes[4].frontier().Draw(t.Context(), 0, 0, 0, 3, roots(rand.New(rand.NewPCG(1, 1)), vertices), &sample.Drawn{})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
}

// at answers at once, from memory.
type at struct {
	peer.Peers
	drawers []*drawer // of the nodes
	mu      []sync.Mutex
}

func (a *at) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	a.mu[node].Lock()
	defer a.mu[node].Unlock()
	d := a.drawers[node]
	if err := d.draw(ctx, q); err != nil {
		return nil, err
	}
	parts := encode(&d.drawn, &d.head)
	answer := buf[:0]
	for _, p := range parts {
		answer = append(answer, p...)
	}
	return answer, nil
}

// TestMemoryIsUsedAgain counts what Draw allocates once it has asked for as much: for
// each owner a goroutine, and nothing for rows.
func TestMemoryIsUsedAgain(t *testing.T) {
	o := sample.Options{Fanouts: []int{3}}
	nodes, _ := mesh(t, shards(true), 5, rand.New(rand.NewPCG(3, 3)))
	asks := nodes[4]
	a := &at{mu: make([]sync.Mutex, len(nodes))}
	for _, x := range nodes {
		a.drawers = append(a.drawers, &drawer{Drawer: sample.NewDrawer(x.topology, o)})
	}
	f := New(a, asks.work, asks.layout)
	of := roots(rand.New(rand.NewPCG(1, 1)), vertices)
	var to sample.Drawn
	step := uint64(0)
	got := testing.AllocsPerRun(50, func() {
		step++
		if err := f.Draw(t.Context(), 0, step, 0, 3, of, &to); err != nil {
			t.Error(err)
		}
	})
	if got > 20 {
		t.Errorf("%v allocations for %d rows", got, vertices)
	}
}

// TestAnswersKeepToTheirLimit asks for a hub three times, and takes few bytes.
func TestAnswersKeepToTheirLimit(t *testing.T) {
	const degree = 1000
	hub := &graph.Shard{Shards: 1, Vertices: degree, Total: degree, Indptr: []int64{0}}
	for u := range int32(degree) {
		hub.Indices = append(hub.Indices, u)
		hub.Indptr = append(hub.Indptr, degree)
	}
	topology, err := sample.NewTopology([]*graph.Shard{hub})
	if err != nil {
		t.Fatal(err)
	}
	d := &drawer{Drawer: sample.NewDrawer(topology, sample.Options{Fanouts: []int{0}})}
	const head = header + 3*4
	for limit, rows := range map[int]int{
		0: 0, head - 1: 0, head: 0, head + 4*degree - 1: 0, head + 4*degree: 1, head + 12*degree - 1: 2, head + 12*degree: 3, mostAnswer: 3,
	} {
		err := d.draw(t.Context(), peer.Query{Epoch: 1, Body: answerOf(0, 0, 0, 0), Limit: limit})
		if (err == nil) != (rows > 0) || err == nil && (len(d.drawn.Degrees) != rows || len(d.drawn.Sources) != rows*degree) {
			t.Errorf("%d rows of %d entries in %d bytes: %v", len(d.drawn.Degrees), len(d.drawn.Sources), limit, err)
		}
		if limit < head && !strings.Contains(err.Error(), "3 rows were asked for, which do not fit in an answer") {
			t.Error(err)
		}
	}
}

// TestRowsThatNobodyWaitsForAreNotRead draws by relation, which reads whole rows.
func TestRowsThatNobodyWaitsForAreNotRead(t *testing.T) {
	related := graph.EdgeValues{Related: &graph.Related{Count: 1, Of: []float32{0, 0, 0}}}
	topology, err := sample.NewTopology([]*graph.Shard{{Shards: 1, Vertices: 3, Total: 3, Indptr: []int64{0, 3, 3, 3}, Indices: []int32{0, 1, 2}, EdgeValues: related}})
	if err != nil {
		t.Fatal(err)
	}
	net := loopback.New(1)
	s := Serve(net.Node(0))
	s.Ready(topology, sample.Options{Fanouts: []int{2}, Each: [][]int{{2}}, Form: sample.Form{Relations: 1}})
	q := peer.Query{Epoch: 1, Body: answerOf(2, 0, 0), Limit: mostAnswer}
	got := 0
	reply := func(...[]byte) error { got++; return nil }
	if err := s.answer(t.Context(), 0, q, reply); err != nil || got != 1 {
		t.Fatal(err)
	}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for range 50 { // it may see that before it draws, or not
		if err := s.answer(ctx, 0, q, reply); !errors.Is(err, gone) || errors.Is(err, peer.ErrRefused) || got != 1 {
			t.Fatal(err)
		}
	}
}

// TestOwnersHaveNoMoreThanTheGraph has one say, row by row, that its vertices have more edges
// together than there are.
func TestOwnersHaveNoMoreThanTheGraph(t *testing.T) {
	asks, serves := pair(t, sample.Options{Fanouts: []int{0}})
	var own []uint32
	for v := uint32(0); len(own) < 2; v++ {
		if serves.topology.Near(v) {
			own = append(own, v)
		}
	}
	for degree, good := range map[uint32]bool{5: true, 6: false, 11: false} {
		asked := 0
		serves.peers.Answer(peer.Draws, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			asked++
			return reply(answerOf(1, degree, 0, degree), bytes.Repeat(answerOf(1), int(degree)))
		})
		f := asks.frontier()
		f.Edges = 10
		for range 2 { // hops are apart
			asked = 0
			err := f.Draw(t.Context(), 1, 0, 0, 0, own, &sample.Drawn{})
			if good && (err != nil || asked != 2) || !good && (err == nil || !strings.Contains(err.Error(), "of a graph of 10 edges")) {
				t.Errorf("two rows of %d edges: %v", degree, err)
			}
		}
	}
}

// FuzzServer asks an owner whatever a peer may ask. It refuses, or answers what decode takes.
func FuzzServer(f *testing.F) {
	o := sample.Options{Fanouts: []int{3, 2}, Seed: 1}
	_, serves := pair(f, o)
	near := uint32(0)
	for !serves.topology.Near(near) {
		near++
	}
	f.Add(uint32(0), uint32(1), uint32(2), answerOf(3, near))
	f.Add(uint32(1), uint32(1), uint32(2), answerOf(2, near, near))
	f.Add(uint32(ends), uint32(0), uint32(0), answerOf(0, near))
	f.Add(uint32(0), uint32(0), uint32(0), answerOf(3, uint32(vertices)))
	f.Add(uint32(7), uint32(0), uint32(0), answerOf(3))
	f.Fuzz(func(t *testing.T, hop, epoch, step uint32, body []byte) {
		q := peer.Query{Service: peer.Draws, Part: hop, Epoch: epoch, Step: step, Body: body, Limit: mostAnswer}
		err := serves.server.answer(t.Context(), 2, q, func(parts ...[]byte) error {
			b, asked := bytes.Join(parts, nil), len(body)/4-1
			if hop == ends {
				_, err := decodeInverses(nil, b, asked)
				return err
			}
			var r rows
			r.reset(0)
			fanout := int(binary.LittleEndian.Uint32(body)) // it is the hop's, but where any may be asked for
			n, err := r.decode(b, asked, fanout, vertices)
			if err == nil && n != asked {
				return fmt.Errorf("%d rows of %d", n, asked)
			}
			return err
		})
		if err != nil && !errors.Is(err, peer.ErrRefused) {
			t.Fatal(err)
		}
	})
}
