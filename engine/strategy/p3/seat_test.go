package p3

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A seat is a node of a job.
type seat struct {
	j         *job
	node      int
	exchange  *exchange.Exchange
	source    *Source
	front     *Front
	model     *nn.Model
	device    tensor.Device
	dealer    deal.Dealer
	sampler   *sample.Sampler
	batch     *Batch
	hand      Hand
	pass      *nn.Pass
	work      tensor.Arena
	gradients tensor.Matrix
	groups    []deal.Group
	blocks    []sample.Batch
	theirs    [][]deal.Group // of other nodes, where they are drawn here
	drawn     [][]*sample.Batch
	start     peer.Tally
	tally     peer.Tally
	edges     int // how many sources and edges the first blocks had
	targets   int
	loss      float64
}

// A table is all nodes of a job.
type table struct {
	net   *loopback.Net
	seats []*seat
}

func (tb *table) each(do func(s *seat) error) error {
	errs := make([]error, len(tb.seats))
	var running sync.WaitGroup
	for i, s := range tb.seats {
		running.Go(func() { errs[i] = do(s) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// sit makes all nodes ready for steps.
func (j *job) sit(t testing.TB, nodes int) *table {
	t.Helper()
	tb, l := &table{net: loopback.New(nodes)}, j.layout(nodes)
	work := peer.Work{Owners: l.Owners}
	for i := range nodes {
		work.Nodes = append(work.Nodes, fmt.Sprintf("n%d", i))
	}
	for i := range nodes {
		work.Self = i
		tb.seats = append(tb.seats, j.seat(t, tb.net.Node(i), work, l))
	}
	err := tb.each(func(s *seat) error { return s.bring(t.Context(), l) })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range tb.seats {
		t.Cleanup(func() {
			s.front.Close()
			s.device.Close()
		})
	}
	return tb
}

func (j *job) seat(t testing.TB, peers *loopback.Node, w peer.Work, l peer.Layout) *seat {
	t.Helper()
	s := &seat{j: j, node: w.Self, model: j.model(t), device: j.device()}
	s.exchange, s.source = exchange.New(peers, w), Register(peers)
	peers.Open()
	store := j.part(t, l, w.Self)
	if err := s.source.Ready(store, j.wire); err != nil {
		t.Fatal(err)
	}
	var err error
	s.dealer, err = Deal(l, settings(j))
	if err != nil {
		t.Fatal(err)
	}
	kept := arena(t, s.device)
	s.work = arena(t, s.device)
	s.pass = s.model.NewPass(s.device, s.work)
	s.pass.Weights, s.pass.Gradients, s.pass.Train = kept.Alloc(s.device.Type(), 1, s.model.Size()), kept.Alloc(s.device.Type(), 1, s.model.Size()), true
	s.device.Write(s.pass.Weights, weights(s.model))
	s.gradients = s.pass.Gradients
	s.sampler = j.sampler(t, s.model)
	one := j.device()
	t.Cleanup(one.Close)
	s.hand = Hand{one, arena(t, one), arena(t, one)}
	return s
}

func (s *seat) bring(ctx context.Context, l peer.Layout) error {
	w := peer.Work{Self: s.node, Owners: l.Owners}
	for i := range l.Nodes {
		w.Nodes = append(w.Nodes, fmt.Sprintf("n%d", i))
	}
	columns, err := s.source.Columns(ctx, w, l, 1<<30, &s.start)
	if err == nil {
		err = s.source.Bring(ctx, columns, w, &s.start)
	}
	if err != nil {
		return err
	}
	s.front, err = New(Options{
		Model: s.model, Device: s.device, Gradients: s.gradients, Columns: columns,
		Exchange: s.exchange, Work: w, Deterministic: s.j.deterministic, Resample: s.j.resample, Inflight: s.j.inflight,
		Edges: s.j.edges(), Fanouts: s.j.fanouts,
	})
	if err == nil {
		s.batch = s.front.NewBatch()
	}
	return err
}

// edges returns how many edges the graph has.
func (j *job) edges() (n uint64) {
	for _, s := range j.shards {
		n += uint64(len(s.Indices))
	}
	return n
}

// ahead makes a step ready.
func (s *seat) ahead(ctx context.Context, epoch, step int, roots []uint32) error {
	s.groups = s.dealer.Deal(s.groups, roots, s.node)
	for len(s.blocks) < len(s.groups) {
		s.blocks = append(s.blocks, sample.Batch{})
	}
	s.batch.Begin()
	s.edges, s.targets = 0, 0
	for i, g := range s.groups {
		if len(g.Roots) == 0 {
			continue
		}
		if err := s.sampler.Sample(ctx, &s.blocks[i], uint64(epoch), uint64(step), g.Roots); err != nil {
			return err
		}
		blocks := s.blocks[i].Blocks
		for k := range blocks {
			blocks[k].Transpose()
		}
		if len(blocks) > 0 {
			s.edges += blocks[0].Entries() + blocks[0].Cols
			s.targets += blocks[0].Rows
		} else {
			s.targets += len(g.Roots)
		}
		s.batch.Add(g.Grain, g.Roots, blocks)
	}
	for node := range s.front.nodes {
		if err := s.draw(ctx, node, epoch, step, roots); err != nil {
			return err
		}
	}
	return s.front.Ahead(ctx, s.batch, s.hand, step, key(epoch, step), &s.tally)
}

// draw samples the groups of another node where nodes sample each other's. Otherwise it sets what that
// node may send.
func (s *seat) draw(ctx context.Context, node, epoch, step int, roots []uint32) error {
	if node == s.node {
		return nil
	}
	for len(s.theirs) < s.front.nodes {
		s.theirs, s.drawn = append(s.theirs, nil), append(s.drawn, nil)
	}
	s.theirs[node] = s.dealer.Deal(s.theirs[node], roots, node)
	if !s.j.resample {
		for _, g := range s.theirs[node] {
			if len(g.Roots) > 0 {
				s.front.Expect(s.batch, node, g.Grain, len(g.Roots))
			}
		}
		return nil
	}
	if !s.front.Computes() {
		return nil
	}
	for i, g := range s.theirs[node] {
		if len(g.Roots) == 0 {
			continue
		}
		for len(s.drawn[node]) <= i {
			s.drawn[node] = append(s.drawn[node], &sample.Batch{})
		}
		b := s.drawn[node][i]
		if err := s.sampler.Sample(ctx, b, uint64(epoch), uint64(step), g.Roots); err != nil {
			return err
		}
		s.batch.AddOf(node, g.Grain, g.Roots, b.Blocks)
	}
	return nil
}

// send has a step that is ready be under way.
func (s *seat) send(ctx context.Context, epoch, step int) error {
	return s.front.Send(ctx, s.batch, uint32(epoch), key(epoch, step), s.pass.Weights, step)
}

// step computes a step that is ready, and adds up over all nodes.
func (s *seat) step(ctx context.Context, epoch, step int, roots []uint32) error {
	if !s.batch.Sent() {
		if err := s.send(ctx, epoch, step); err != nil {
			return err
		}
	}
	if err := s.front.Sums(s.batch); err != nil {
		return err
	}
	s.device.Zero(s.gradients)
	s.loss = 0
	rest := s.front.Rest()
	size := 0
	for _, r := range rest {
		size += r.Count
	}
	summer, spans, holders := exchange.NewSummer[float64](size), [][]exchange.Span(nil), make([]int, len(s.j.shards))
	if s.j.deterministic {
		for i := range holders {
			holders[i] = -1
		}
		for node := range s.front.nodes {
			for _, g := range s.dealer.Deal(nil, roots, node) {
				holders[g.Grain] = node
			}
		}
		spans = exchange.Spans(holders, s.front.nodes)
		summer.Begin(spans[s.node])
	}
	all := make([]float64, s.model.Size())
	n := 0
	row := make([]float64, size)
	compact := func(to []float64) {
		s.device.Read(all, s.gradients)
		for _, r := range rest {
			to = to[copy(to, all[r.First:][:r.Count]):]
		}
	}
	for i, g := range s.groups {
		if len(g.Roots) == 0 {
			continue
		}
		s.learn(n, g.Roots, s.blocks[i].Blocks, epoch, step, len(roots))
		n++
		if s.j.deterministic {
			compact(summer.Row(g.Grain))
			s.device.Zero(s.gradients)
		}
	}
	mine := [][]float64{row}
	if s.j.deterministic {
		mine = summer.Sums()
	} else {
		compact(row)
	}
	if err := s.front.Back(ctx, s.batch, uint32(epoch)); err != nil {
		return err
	}
	notes, err := exchange.Reduce(ctx, s.exchange, exchange.Round{
		Tag: exchange.Tag{Epoch: uint32(epoch), Step: uint32(step)}, Note: exchange.Note{Loss: s.loss}, Tally: &s.tally, Spans: spans,
	}, mine, row)
	if err != nil {
		return err
	}
	s.loss = 0
	for _, n := range notes {
		s.loss += n.Loss
	}
	s.device.Read(all, s.gradients)
	from := row
	for _, r := range rest {
		from = from[copy(all[r.First:][:r.Count], from):]
	}
	s.device.Write(s.gradients, all)
	return s.front.Done(ctx, s.batch)
}

func (s *seat) learn(n int, roots []uint32, blocks []sample.Block, epoch, step, size int) {
	s.work.Reset()
	s.pass.Key = key(epoch, step)
	vertices := roots
	if len(blocks) > 0 {
		vertices = blocks[0].Vertices
	}
	z := s.pass.ForwardFrom(blocks, vertices, s.batch.Sum(n))
	dz := s.work.Alloc(s.device.Type(), z.Rows, z.Cols)
	loss, _ := s.device.CrossEntropy(dz, z, labels(roots), 1/float64(size))
	s.loss += loss
	s.pass.BackwardTo(s.batch.Error(n), dz)
}

func (s *seat) gradient() []float64 {
	g := make([]float64, s.model.Size())
	s.device.Read(g, s.gradients)
	return g
}

// run makes a step ready on all nodes and computes it.
func (tb *table) run(ctx context.Context, epoch, step int, roots []uint32) error {
	return tb.each(func(s *seat) error {
		if err := s.ahead(ctx, epoch, step, roots); err != nil {
			return err
		}
		return s.step(ctx, epoch, step, roots)
	})
}

// rootsOf are some vertices, in an order that is a step's.
func rootsOf(j *job, step, n int) []uint32 {
	var all []uint32
	for _, v := range rand.New(rand.NewPCG(9, uint64(step))).Perm(int(j.shards[0].Total))[:n] {
		all = append(all, uint32(v))
	}
	return all
}

// distance is the largest difference of two rows, relative to the largest number.
func distance(a, b []float64) float64 {
	most, of := 0.0, 0.0
	for i := range a {
		most, of = max(most, math.Abs(a[i]-b[i])), max(of, math.Abs(b[i]))
	}
	if slices.ContainsFunc(a, math.IsNaN) {
		return math.NaN()
	}
	return most / of
}

func settings(j *job) strategy.Settings {
	s := strategy.Settings{Strategy: "p3", Deterministic: j.deterministic}
	if j.sliced {
		s = s.With("p3.roots=slices")
	}
	return s
}
