package p3

import (
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const classes, seed = 3, 5

// A kind of features that a graph has.
type kindOf struct {
	sparse, ones bool
	dtype        graph.DType
	how          string
}

var (
	denseKind  = kindOf{false, false, graph.F32, "none"}
	scaledKind = kindOf{false, false, graph.F32, "row"}
	halfKind   = kindOf{false, false, graph.BF16, "row"}
	sparseKind = kindOf{true, false, graph.F32, "none"}
	onesKind   = kindOf{true, true, graph.F32, "none"}
	countsKind = kindOf{true, true, graph.F32, "row"}
)

// graphOf makes shards of so many vertices, one of which has no edges and a row of
// zeros.
func graphOf(k kindOf, columns int, sizes ...int) []*graph.Shard {
	r, edges := rand.New(rand.NewPCG(3, 1)), rand.New(rand.NewPCG(3, 2)) // the same edges with any features
	total := 0
	for _, n := range sizes {
		total += n
	}
	var shards []*graph.Shard
	first := 0
	for i, n := range sizes {
		s := &graph.Shard{
			Number: i, Shards: len(sizes), First: uint32(first), Vertices: n,
			Total: uint32(total), Features: columns, DType: k.dtype, Classes: classes, Indptr: []int64{0},
		}
		values, rows := []float32{}, &graph.SparseRows{Indptr: []int64{0}}
		for v := first; v < first+n; v++ {
			s.Labels = append(s.Labels, int32(v%classes))
			for u := range total {
				if v != 1 && u != v && edges.IntN(total) < 6 {
					s.Indices = append(s.Indices, int32(u))
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
			for c := range columns {
				f := float32(0)
				switch {
				case v == 1 || r.IntN(3) == 0:
				case k.ones:
					f = 1
				default:
					f = float32(r.NormFloat64())
				}
				if f != 0 || !k.sparse {
					values = append(values, f)
				}
				if f != 0 {
					rows.Columns = append(rows.Columns, int32(c))
				}
			}
			rows.Indptr = append(rows.Indptr, int64(len(rows.Columns)))
		}
		half := make([]uint16, len(values))
		graph.ToBF16(half, values)
		switch {
		case k.sparse:
			s.Sparse, rows.Values = rows, values
		case k.dtype == graph.BF16:
			s.DenseBF16 = half
		default:
			s.Dense = values
		}
		shards = append(shards, s)
		first += n
	}
	return shards
}

// A job is what a test trains.
type job struct {
	spec          nn.Spec
	kind          kindOf
	shards        []*graph.Shard
	fanouts       []int
	deterministic bool
	sliced        bool
	resample      bool
	inflight      int
	device        func() tensor.Device
	wire          string
}

func newJob(spec nn.Spec, k kindOf, columns int) *job {
	return &job{
		spec: spec, kind: k, shards: graphOf(k, columns, 9, 14, 0, 7, 12),
		fanouts: []int{3, 2, 2}, device: func() tensor.Device { return reference.New() },
	}
}

func (j *job) model(t testing.TB) *nn.Model {
	t.Helper()
	m, err := nn.New(j.spec, j.shards[0].Features, classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// weights are random everywhere.
func weights(m *nn.Model) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, m.Size())
	for i := range w {
		w[i] = float64(float32(0.4 * r.NormFloat64()))
	}
	return w
}

func (j *job) sampler(t testing.TB, m *nn.Model) *sample.Sampler {
	t.Helper()
	topology, err := sample.NewTopology(j.shards)
	if err != nil {
		t.Fatal(err)
	}
	return sample.New(topology, sample.Options{Fanouts: j.fanouts[:m.Hops()], Form: m.Form(), Seed: seed})
}

func (j *job) layout(nodes int) peer.Layout {
	l := peer.Layout{Nodes: nodes}
	for i, s := range j.shards {
		l.Owners = append(l.Owners, (i*7+1)%nodes)
		l.Firsts = append(l.Firsts, s.First)
	}
	l.Firsts = append(l.Firsts, j.shards[0].Total)
	return l
}

func labels(vertices []uint32) (all []int32) {
	for _, v := range vertices {
		all = append(all, int32(v%classes))
	}
	return all
}

func key(epoch, step int) keyed.Key {
	return keyed.New(seed, keyed.Dropout).With(uint64(epoch)).With(uint64(step))
}

func arena(t testing.TB, d tensor.Device) tensor.Arena {
	t.Helper()
	a, err := d.NewArena(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// single is the gradient and the loss of a step that one node computes as ever.
func (j *job) single(t testing.TB, epoch, step int, roots []uint32) ([]float64, float64) {
	t.Helper()
	m, d := j.model(t), j.device()
	defer d.Close()
	store, err := features.Open(j.shards, j.kind.how)
	if err != nil {
		t.Fatal(err)
	}
	a := arena(t, d)
	p := m.NewPass(d, a)
	p.Weights, p.Gradients, p.Train, p.Key = a.Alloc(d.Type(), 1, m.Size()), a.Alloc(d.Type(), 1, m.Size()), true, key(epoch, step)
	d.Write(p.Weights, weights(m))
	d.Zero(p.Gradients)
	var b sample.Batch
	if err := j.sampler(t, m).Sample(t.Context(), &b, uint64(epoch), uint64(step), roots); err != nil {
		t.Fatal(err)
	}
	in := nn.Input{Vertices: roots}
	if len(b.Blocks) > 0 {
		in.Vertices = b.Blocks[0].Vertices
	}
	for i := range b.Blocks {
		b.Blocks[i].Transpose()
	}
	var rows features.Rows
	if store.Sparse() {
		store.Fill(&rows, in.Vertices, true, nil)
		in.Sparse = &rows.CSR
	} else {
		in.Dense = a.Alloc(d.Type(), len(in.Vertices), store.Columns())
		store.Dense(d, a, in.Dense, in.Vertices, nil)
	}
	z := p.Forward(b.Blocks, in)
	dz := a.Alloc(d.Type(), z.Rows, z.Cols)
	loss, _ := d.CrossEntropy(dz, z, labels(roots), 1/float64(len(roots)))
	p.Backward(dz)
	g := make([]float64, m.Size())
	d.Read(g, p.Gradients)
	return g, loss
}

// held is the shards as a node has them, and what is known of all.
func (j *job) held(l peer.Layout, node int) (mine []*graph.Shard, stats []graph.FeatureStats) {
	for i, shard := range j.shards {
		stats = append(stats, graph.StatsOf(shard))
		if l.Owners[i] != node {
			bare := *shard
			bare.Dense, bare.DenseBF16, bare.Sparse = nil, nil, nil
			shard = &bare
		}
		mine = append(mine, shard)
	}
	return mine, stats
}
