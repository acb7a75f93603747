//go:build cuda && emulator

package device

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A school trains a model of three layers on samples of a graph, step by step.
type school struct {
	t       *testing.T
	d       *Device
	model   *nn.Model
	pass    *nn.Pass
	adam    *nn.Optimizer
	work    tensor.Arena
	rows    tensor.Arena
	sampler *sample.Sampler
	batch   sample.Batch
	roots   []uint32
	step    uint64
}

const schooled, schoolFeatures, schoolClasses = 600, 12, 5

func newSchool(t *testing.T, d *Device, kind string, fanouts ...int) *school {
	t.Helper()
	spec := nn.Defaults(kind)
	spec.Layers, spec.Hidden = 3, 8
	model, err := nn.New(spec, schoolFeatures, schoolClasses)
	if err != nil {
		t.Fatal(err)
	}
	s := &school{t: t, d: d, model: model}
	arena := func(bytes int) tensor.Arena {
		a, err := d.NewArena(bytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	kept := arena(1 << 20)
	s.work, s.rows = arena(1<<20), arena(1<<20)
	s.pass = model.NewPass(d, s.work)
	s.pass.Weights, s.pass.Gradients, s.pass.Train = kept.Alloc(tensor.F32, 1, model.Size()), kept.Alloc(tensor.F32, 1, model.Size()), true
	first, err := model.Initial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	d.Write(s.pass.Weights, first)
	if s.adam, err = nn.NewOptimizer(nn.OptimizerSpec{Kind: "adam"}, d, kept, model.Size()); err != nil {
		t.Fatal(err)
	}
	s.sampler = sample.New(roundabout(t), sample.Options{Fanouts: fanouts, Form: model.Form(), Seed: 1})
	return s
}

// roundabout is a graph in which vertices have from none to some twenty in-edges.
func roundabout(t *testing.T) *sample.Topology {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	shard := &graph.Shard{Shards: 1, Vertices: schooled, Total: schooled, Indptr: []int64{0}}
	for range schooled {
		row := map[int32]bool{}
		for range r.IntN(20) {
			row[int32(r.IntN(schooled))] = true
		}
		from := len(shard.Indices)
		for v := range row {
			shard.Indices = append(shard.Indices, v)
		}
		slices.Sort(shard.Indices[from:])
		shard.Indptr = append(shard.Indptr, int64(len(shard.Indices)))
	}
	topology, err := sample.NewTopology([]*graph.Shard{shard})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// prepare draws the next step's blocks, of so many roots, and writes their rows.
func (s *school) prepare(roots int) {
	s.step++
	s.roots = s.roots[:0]
	for i := range roots {
		s.roots = append(s.roots, uint32(i*7+int(s.step))%schooled)
	}
	if err := s.sampler.Sample(s.t.Context(), &s.batch, 1, s.step, s.roots); err != nil {
		s.t.Fatal(err)
	}
	for i := range s.batch.Blocks {
		s.batch.Blocks[i].Transpose()
	}
	s.rows.Reset()
}

// learn does a step and returns its loss.
func (s *school) learn() float64 {
	ids := s.batch.Blocks[0].Vertices
	x := s.rows.Alloc(tensor.F32, len(ids), schoolFeatures)
	values := make([]float32, len(ids)*schoolFeatures)
	for i := range values {
		values[i] = float32((int(ids[i/schoolFeatures])*31+i%schoolFeatures*17)%19)/19 - .5
	}
	s.d.Write32(x, values)
	labels := make([]int32, len(s.roots))
	for i, v := range s.roots {
		labels[i] = int32(v % schoolClasses)
	}
	s.work.Reset()
	s.d.Zero(s.pass.Gradients)
	s.pass.Key = keyed.New(1, keyed.Dropout).With(s.step)
	z := s.pass.Forward(s.batch.Blocks, nn.Input{Dense: x, Vertices: ids})
	dz := s.work.Alloc(tensor.F32, z.Rows, z.Cols)
	s.d.Ask()
	s.d.CrossEntropy(dz, z, labels, 1/float64(len(labels)))
	s.pass.Backward(dz)
	s.d.Finite(s.pass.Gradients)
	loss, _, finite := s.d.Told()
	if !finite {
		s.t.Fatalf("step %d: a gradient is not finite", s.step)
	}
	s.adam.Step(s.pass.Weights, s.pass.Gradients, 0.01)
	return loss
}

// What is given to the GPU as chains is what is given to it kernel by kernel, to the bit:
// steps of all shapes, and the same step again and again.
func TestChainsAreTheirKernels(t *testing.T) {
	for _, kind := range []string{"sage", "gcn", "gat", "resgcn"} {
		var losses [2][]float64
		var weights [2][]float32
		for way := range losses {
			d := opened(t, Options{})
			d.tape.Single = way == 0
			s := newSchool(t, d, kind, 4, 3, 3)
			for i := range 10 {
				s.prepare([]int{40, 40, 41, 64, 7}[i%5])
				losses[way] = append(losses[way], s.learn())
			}
			losses[way] = append(losses[way], s.learn(), s.learn()) // the last blocks again
			weights[way] = numbers(d, s.pass.Weights)
			chains := d.Counts().Chains
			if way == 0 && chains != 0 || way == 1 && chains < 10 {
				t.Errorf("%s: %d chains were launched", kind, chains)
			}
		}
		if !slices.Equal(losses[0], losses[1]) || !slices.Equal(weights[0], weights[1]) || losses[0][0] == losses[0][5] {
			t.Errorf("%s: the losses are %v, and kernel by kernel %v", kind, losses[1], losses[0])
		}
	}
}

// A step on blocks that the GPU has is one chain, one copy and one wait, of so many kernels.
func TestWhatAStepTakes(t *testing.T) {
	d := opened(t, Options{})
	s := newSchool(t, d, "sage", 4, 3, 3)
	s.prepare(40)
	for range 3 {
		s.learn()
	}
	before := d.Counts()
	const steps = 4
	for range steps {
		s.learn()
	}
	now := d.Counts()
	took := Counts{driver.Counts{Kernels: now.Kernels - before.Kernels, Alone: now.Alone - before.Alone, Chains: now.Chains - before.Chains}, now.Products - before.Products, now.Copies - before.Copies, now.Waits - before.Waits}
	t.Logf("%d steps of three layers take %+v", steps, took)
	// The rows that are written cut a step from the update before.
	if took.Kernels > steps*40 || took.Alone > steps*2 || took.Chains > steps || took.Copies > 3*steps || took.Waits != steps {
		t.Errorf("%d steps take %+v", steps, took)
	}
	if n := testing.AllocsPerRun(3, func() {
		s.d.Adam(s.pass.Weights, s.pass.Gradients, s.adam.Moments()[0].Row, s.adam.Moments()[1].Row, tensor.AdamStep{Step: 1, Epsilon: 1})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// More rows of kernels than chains are kept take turns.
func TestChainsAreForgotten(t *testing.T) {
	d := opened(t, Options{})
	m := matrix(t, d, 3, 4, func(int) float32 { return 1 })
	want := float32(1)
	for round := range 3 {
		for n := range 40 { // more than are kept
			for range 4 + n {
				d.Combine(m, 1, m, 0, tensor.Matrix{})
			}
			d.Combine(m, 1, m, 1, m)
			want *= 2
			if got := numbers(d, m); got[0] != want || got[11] != want {
				t.Fatalf("round %d, %d kernels: got %v, want %v", round, n, got[0], want)
			}
			if want > 1e30 {
				d.Combine(m, 1/float64(want), m, 0, tensor.Matrix{})
				want = 1
			}
		}
	}
	if d.Counts().Chains < 40 {
		t.Errorf("%d chains were launched", d.Counts().Chains)
	}
}

// Lists of the host's may change when an operation has returned, however many there are
// on a tape, how large they are, and whatever cuts it.
func TestLoansKeepWhatTheyWereGiven(t *testing.T) {
	d := opened(t, Options{})
	const n = 40_000
	x := matrix(t, d, n, 1, func(i int) float32 { return float32(i) })
	y := matrix(t, d, 60*n, 1, nil)
	ids := make([]uint32, n)
	for i := range 60 {
		for j := range ids {
			ids[j] = uint32((j + i/2*7) % n) // each list twice
		}
		d.Gather(y.RowRange(i*n, n), []tensor.Part{{X: x}}, ids)
		if i%20 == 19 {
			d.Write32(x.RowRange(0, 1), []float32{0})
		}
	}
	clear(ids)
	got := numbers(d, y)
	for i := range 60 {
		for _, j := range []int{0, 1, n / 2, n - 1} {
			if want := float32((j + i/2*7) % n); got[i*n+j] != want {
				t.Fatalf("list %d: row %d is %v, want %v", i, j, got[i*n+j], want)
			}
		}
	}
	if copies := d.Counts().Copies; copies > 30 {
		t.Errorf("%d copies", copies)
	}
	// And however often the tape is given away before the GPU has come to any of it.
	const few, times = 10, 30
	for i := range times {
		for j := range few {
			ids[j] = uint32(i*few + j + 1)
		}
		d.Gather(y.RowRange(i*few, few), []tensor.Part{{X: x}}, ids[:few])
		d.Write32(x.RowRange(0, 1), []float32{0})
	}
	for i, v := range numbers(d, y.RowRange(0, times*few)) {
		if v != float32(i+1) {
			t.Fatalf("row %d is %v", i, v)
		}
	}
}
