package pipe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/blocks"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const classes, features = 3, 5

// A world is a directed graph in shards, with what is learnt of it.
type world struct {
	firsts   []uint32
	topology *sample.Topology
	edges    int
	x        []float64
	labels   []int32
	learnt   int
	sparse   bool
}

// newWorld makes shards of such sizes. Edges end where they may.
func newWorld(t testing.TB, seed uint64, sizes []int, may func(from, to int) bool) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{firsts: []uint32{0}}
	var shardOf []int
	for i, n := range sizes {
		w.firsts = append(w.firsts, w.firsts[i]+uint32(n))
		shardOf = append(shardOf, slices.Repeat([]int{i}, n)...)
	}
	n := len(shardOf)
	var shards []*graph.Shard
	for i := range sizes {
		s := &graph.Shard{Number: i, Shards: len(sizes), First: w.firsts[i], Vertices: sizes[i], Total: uint32(n), Indptr: []int64{0}}
		for row := range sizes[i] {
			v := int(s.First) + row
			for u := range n {
				if u != v && v%7 != 6 && may(shardOf[u], i) && r.Float64() < 4/float64(n) {
					s.Indices = append(s.Indices, int32(u))
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		w.edges += len(s.Indices)
		shards = append(shards, s)
	}
	var err error
	if w.topology, err = sample.NewTopology(shards); err != nil {
		t.Fatal(err)
	}
	for range n * features {
		x := 0.0
		if r.IntN(3) > 0 {
			x = float64(float32(r.NormFloat64()))
		}
		w.x = append(w.x, x)
	}
	for v := range n {
		label := int32(r.IntN(classes))
		if v%4 == 1 {
			label = -1
		} else {
			w.learnt++
		}
		w.labels = append(w.labels, label)
	}
	return w
}

func anywhere(int, int) bool { return true }

func (w *world) vertices() int { return len(w.labels) }

// input is the features of some vertices, in memory of its own.
func (w *world) input(d tensor.Device, vertices []uint32) nn.Input {
	in := nn.Input{Vertices: vertices}
	dense := make([]float64, 0, len(vertices)*features)
	csr := &tensor.CSR{Rows: len(vertices), Cols: features, Indptr: []int64{0}}
	for _, v := range vertices {
		for c, x := range w.x[int(v)*features:][:features] {
			dense = append(dense, x)
			if x != 0 {
				csr.Indices, csr.Values = append(csr.Indices, int32(c)), append(csr.Values, float32(x))
			}
		}
		csr.Indptr = append(csr.Indptr, int64(len(csr.Indices)))
	}
	if w.sparse {
		b := sample.Block{CSR: *csr}
		b.Transpose()
		csr.Transposed = b.Transposed
		in.Sparse = csr
		return in
	}
	in.Dense = tensor.Over(tensor.F64, len(vertices), features, features, unsafe.Pointer(unsafe.SliceData(dense)))
	if d.Type() == tensor.F32 {
		narrow := make([]float32, len(dense))
		for i, x := range dense {
			narrow[i] = float32(x)
		}
		in.Dense = tensor.OverF32(len(vertices), features, narrow)
	}
	return in
}

// source is Features of a node.
type source struct {
	*world
	device tensor.Device
}

func (s source) Input(_, _ int, vertices []uint32) (nn.Input, error) {
	return s.input(s.device, vertices), nil
}

// A setup is how a job is shared.
type setup struct {
	spec                        nn.Spec
	nodes, stages, ways, chunks int
	costs                       []uint64 // of shards
	Options
	device func() tensor.Device
	rate   float64     // of updates; 0: weights stay
	word   ending.Word // what all nodes say
	noDrop bool
	still  bool                      // all epochs drop alike
	linear bool                      // the loss is a sum of the answers
	apart  bool                      // rows are not received ahead
	split  bool                      // features are multiplied once
	peers  func(node int) peer.Peers // nil: a loopback's
	cuts   []int                     // of the model's stages; nil: by their formula
	dir    string                    // of blocks and histories; "": in memory
	// frozen sets histories before each epoch, none of which begins a period, by level and
	// vertex.
	frozen func(s int, v uint32, column int) float64
}

func deep(model string, layers int) nn.Spec {
	s := nn.Defaults(model)
	s.Layers, s.Hidden, s.Dropout = layers, 4, 0.3
	if s.Model == "gat" {
		s.Hidden, s.Heads = 2, 2
	}
	s.Resolve()
	return s
}

func newSetup(spec nn.Spec, stages, ways, chunks int) setup {
	return setup{
		spec: spec, nodes: stages * ways, stages: stages, ways: ways, chunks: chunks,
		Options: Options{Seed: 11, Shuffle: true, Period: 3, Factor: 2, Halo: Halo{Policy: Exact}, Recompute: true, Histories: Made},
		device:  func() tensor.Device { return reference.New() },
	}
}

// A node is one of a job.
type node struct {
	*Worker
	weights, gradients tensor.Matrix
	tally              peer.Tally
	gradient           []float64
	loss               float64
	word               ending.Word // what all say
	plain              float64     // the loss, not rounded, of what this node answers
}

// A job is nodes that have met.
type job struct {
	setup
	world *world
	model *nn.Model
	net   *loopback.Net
	nodes []*node
}

func (w *world) weights(m *nn.Model) []float64 {
	r := rand.New(rand.NewPCG(3, 3))
	all := make([]float64, m.Size())
	for i := range all {
		all[i] = float64(float32(0.5 * r.NormFloat64()))
	}
	return all
}

func (w *world) model(t testing.TB, s nn.Spec) *nn.Model {
	t.Helper()
	m, err := nn.New(s, features, classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mirrors counts the pairs of a vertex and another way with an edge from it.
func (w *world) mirrors(s *arrange.Shape) int {
	return census.New(w.firsts, w.topology, sample.Form{}).Mirrors(s).Count()
}

// start makes the nodes of a job.
func (w *world) start(t testing.TB, s setup) *job {
	t.Helper()
	shape, err := arrange.NewShape(w.firsts, s.costs, s.ways, s.chunks)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{setup: s, world: w, model: w.model(t, s.spec), net: loopback.New(s.nodes)}
	if s.split {
		j.model = j.model.Split()
	}
	seats := arrange.NewSeats(s.stages, s.ways, s.nodes, func(int, int) uint64 { return 0 })
	var work peer.Work
	for i := range s.nodes {
		work.Nodes = append(work.Nodes, fmt.Sprintf("n%d", i))
	}
	cuts := s.cuts
	if cuts == nil {
		cuts = arrange.Cut(j.model.Stages(), seats.Stages, w.vertices(), w.edges)
	}
	for i := range s.nodes {
		work.Self = i
		d := s.device()
		kept, err := d.NewArena(0)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{weights: kept.Alloc(d.Type(), 1, j.model.Size()), gradients: kept.Alloc(d.Type(), 1, j.model.Size())}
		d.Write(n.weights, w.weights(j.model))
		task := Task{
			Model: j.model, Device: d, Weights: n.weights, Gradients: n.gradients,
			Topology: w.topology, Shape: shape, Seats: seats, Cuts: cuts,
			Features: source{w, d},
			Labels:   func(to []int32, first uint32) { copy(to, w.labels[first:]) },
			Loss: func(dz, z tensor.Matrix, labels []int32) float64 {
				loss, _ := d.CrossEntropy(dz, z, labels, 1/float64(w.learnt))
				if s.linear {
					loss = alongside(d, dz, z)
				}
				n.plain += loss / float64(w.learnt)
				return loss
			},
			Options: s.Options, Work: work, Blocks: blocks.From{Dir: s.dir},
		}
		if s.nodes > 1 {
			peers := peer.Peers(j.net.Node(i))
			if s.peers != nil {
				peers = s.peers(i)
			}
			task.Exchange = exchange.New(peers, work)
			peers.Open()
		}
		if n.Worker, err = New(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		n.apart = s.apart
		t.Cleanup(func() { n.Close(); kept.Close() })
		j.nodes = append(j.nodes, n)
	}
	if err := j.each(func(n *node) error { return n.Meet(t.Context(), nil) }); err != nil {
		t.Fatal(err)
	}
	for _, n := range j.nodes {
		if err := n.Open(); err != nil {
			t.Fatal(err)
		}
		for _, p := range n.passes {
			p.Train = !s.noDrop
		}
	}
	return j
}

func (s *setup) dropout(epoch int) keyed.Key {
	if s.still {
		epoch = 1
	}
	return keyed.New(5, keyed.Dropout).With(uint64(epoch))
}

// each does something for each node, all at once.
func (j *job) each(do func(n *node) error) error {
	errs := make([]error, len(j.nodes))
	var running sync.WaitGroup
	for i, n := range j.nodes {
		running.Go(func() { errs[i] = do(n) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// epoch trains one, from 1 on, and returns the gradient, to which each stage gives its
// columns, and the loss, which is the same on all nodes.
func (j *job) epoch(t testing.TB, epoch int) ([]float64, float64) {
	t.Helper()
	if err := j.try(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	whole, loss := make([]float64, j.model.Size()), j.nodes[0].loss
	given := make([]bool, len(whole))
	for i, n := range j.nodes {
		from, to := n.Own()
		for c := from; c < to; c++ {
			if given[c] && n.gradient[c] != whole[c] {
				t.Fatalf("after epoch %d node %d has another gradient than those before it", epoch, i)
			}
			whole[c], given[c] = n.gradient[c], true
		}
		if n.loss != loss {
			t.Fatalf("after epoch %d node %d has another loss than node 0", epoch, i)
		}
	}
	if i := slices.Index(given, false); i >= 0 {
		t.Fatalf("nobody has column %d of the gradient", i)
	}
	return whole, loss
}

func (j *job) try(ctx context.Context, epoch int) error {
	return j.each(func(n *node) (err error) {
		if j.frozen != nil {
			n.freeze(j.frozen)
		}
		n.plain = 0
		n.loss, n.word, err = n.Epoch(ctx, epoch, j.dropout(epoch), j.word, &n.tally)
		n.gradient = make([]float64, j.model.Size())
		if n.Device.Type() == tensor.F64 {
			n.Device.Read(n.gradient, n.gradients)
		} else {
			for i, x := range n.gradients.F32() {
				n.gradient[i] = float64(x)
			}
		}
		if j.rate > 0 {
			from, to := n.Own()
			own := n.weights.View(0, 1, from, to-from)
			n.Device.Combine(own, 1, own, -j.rate, n.gradients.View(0, 1, from, to-from))
		}
		return err
	})
}

// pastOf returns a copy of a level's history, or nil if the level has no history.
func (w *Worker) pastOf(l *level) tensor.Matrix {
	if !l.past {
		return tensor.Matrix{}
	}
	a, err := w.Device.NewArena(plain.Size(l.rows) + 64)
	if err != nil {
		panic(err)
	}
	m := a.Alloc(w.Device.Type(), l.rows.Rows, l.rows.Cols)
	plain.Write(w.Device, m, w.recalls(l, 0, m.Rows))
	return m
}

// freeze sets histories.
func (n *node) freeze(of func(s int, v uint32, column int) float64) {
	n.history = true
	for _, way := range n.ways {
		for at, l := range way.levels {
			if l == nil || !l.past {
				continue
			}
			m := n.pastOf(l)
			numbers, columns := make([]float64, way.all()*m.Cols), m.Cols
			set := func(row int, v uint32) {
				for c := range columns {
					numbers[row*columns+c] = of(n.first+at, v, c)
				}
			}
			for i, row := range way.places {
				set(int(row), way.first+uint32(i))
			}
			for i, v := range way.mirrors {
				set(way.own()+i, v)
			}
			n.Device.Write(m, numbers)
			if err := n.remember(l, 0, m); err != nil {
				panic(err)
			}
		}
	}
}

// whole is what one machine computes of all vertices at once, with the weights given.
func (w *world) whole(t testing.TB, s setup, epoch int, weights []float64) ([]float64, float64) {
	t.Helper()
	m, d := w.model(t, s.spec), tensor.Device(reference.New())
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	p := m.NewPass(d, a)
	kept, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	p.Weights, p.Gradients = kept.Alloc(d.Type(), 1, m.Size()), kept.Alloc(d.Type(), 1, m.Size())
	d.Write(p.Weights, weights)
	d.Zero(p.Gradients)
	p.Key, p.Train = s.dropout(epoch), !s.noDrop
	var all []uint32
	for v := range w.vertices() {
		all = append(all, uint32(v))
	}
	sampler := sample.New(w.topology, sample.Options{Form: m.Form()})
	blocks := make([]sample.Block, m.Hops())
	for i := range blocks {
		if err := sampler.Part(&blocks[i], 0, w.vertices()); err != nil {
			t.Fatal(err)
		}
		blocks[i].Vertices = all
		blocks[i].Transpose()
	}
	z := p.Forward(blocks, w.input(d, all))
	dz := a.Alloc(d.Type(), z.Rows, z.Cols)
	loss, _ := d.CrossEntropy(dz, z, w.labels, 1/float64(w.learnt))
	p.Backward(dz)
	g := make([]float64, m.Size())
	d.Read(g, p.Gradients)
	return g, loss
}

func mustNear(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers and not %d", what, len(got), len(want))
	}
	largest := 0.0
	for i := range got {
		largest = max(largest, math.Abs(want[i]))
		if math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > tolerance*(1+math.Abs(want[i])) {
			t.Fatalf("%s: number %d is %v and not %v", what, i, got[i], want[i])
		}
	}
	if largest == 0 {
		t.Fatalf("%s: all are 0", what)
	}
}

// alongside is a loss that is linear in the answers.
func alongside(d tensor.Device, dz, z tensor.Matrix) (loss float64) {
	answers, slopes := make([]float64, z.Rows*z.Cols), make([]float64, z.Rows*z.Cols)
	d.Read(answers, z)
	for i := range slopes {
		slopes[i] = float64(i%5) - 1.5
		loss += slopes[i] * answers[i]
	}
	d.Write(dz, slopes)
	return loss
}

// set gives all nodes these weights.
func (j *job) set(weights []float64) {
	for _, n := range j.nodes {
		n.Device.Write(n.weights, weights)
	}
}

// plain is the loss of all nodes, which is not rounded.
func (j *job) plain() (loss float64) {
	for _, n := range j.nodes {
		loss += n.plain
	}
	return loss
}
