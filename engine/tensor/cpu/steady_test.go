package cpu_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// A step calls each operation of this package, on matrices that fall into many
// chunks, from the same numbers each time.
type step struct {
	d                               *cpu.Device
	x, y, z, half, wide, which, m   tensor.Matrix
	stats, sums, gamma, scale, vals tensor.Matrix
	parts                           []tensor.Part
	ids                             []uint32
	to, labels                      []int32
	g                               *tensor.CSR
	numbers                         []float32
	exact                           []float64
	e                               tensor.Epilogue
	drop                            tensor.Dropout
	loss                            [4]float64
}

func newStep(d *cpu.Device, a tensor.Arena) *step {
	const rows, cols = 2000, 70
	r := rand.New(rand.NewPCG(3, 4))
	s := &step{
		d: d, x: a.Alloc(tensor.F32, rows, cols), y: a.Alloc(tensor.F32, rows, cols), z: a.Alloc(tensor.F32, rows, cols),
		half: a.Alloc(tensor.BF16, rows, cols), wide: a.Alloc(tensor.F64, rows, cols), which: a.Alloc(tensor.I32, rows, cols),
		m: a.Alloc(tensor.F32, rows, cols), stats: a.Alloc(tensor.F32, rows, 2), sums: a.Alloc(tensor.F32, 3, cols),
		gamma: a.Alloc(tensor.F32, 1, cols), scale: a.Alloc(tensor.F32, rows, 1),
		g: &tensor.CSR{Rows: rows, Cols: cols, Indptr: []int64{0}}, numbers: make([]float32, rows*cols), exact: make([]float64, rows*cols),
	}
	vertices := make([]uint32, rows)
	for i := range rows {
		vertices[i] = r.Uint32()
		s.ids, s.to, s.labels = append(s.ids, r.Uint32N(rows)), append(s.to, r.Int32N(rows)), append(s.labels, r.Int32N(cols+1)-1)
		for range r.IntN(30) {
			s.g.Indices = append(s.g.Indices, r.Int32N(cols))
		}
		s.g.Indptr = append(s.g.Indptr, int64(len(s.g.Indices)))
	}
	s.parts = []tensor.Part{{X: s.half.RowRange(0, rows/2)}, {First: rows / 2, X: s.half.RowRange(rows/2, rows/2)}}
	s.vals = a.Alloc(tensor.F32, 1, s.g.Entries())
	for i := range s.exact {
		s.exact[i] = r.NormFloat64()
	}
	s.drop = tensor.Dropout{P: 0.5, Key: keyed.New(1, keyed.Dropout), Vertices: vertices}
	s.e = tensor.Epilogue{Bias: s.gamma, Activation: tensor.ELU, Dropout: s.drop}
	return s
}

func (s *step) run() {
	d, none := s.d, tensor.Matrix{}
	d.Write(s.x, s.exact)
	d.Write(s.gamma, s.exact[:s.gamma.Cols])
	d.Write(s.scale, s.exact[:s.scale.Rows])
	d.Zero(s.sums)
	sums := func(i int) tensor.Matrix { return s.sums.RowRange(i, 1) }
	d.Apply(s.y, s.x, &s.e)
	d.ApplyBack(s.z, sums(0), s.x, s.y, &s.e)
	d.Combine(s.half, 1, s.z, 0, none)
	d.Gather(s.y, s.parts, s.ids)
	d.ScatterAdd(s.z, s.y, s.to)
	d.ScaleRows(s.y, s.z, s.scale)
	d.Max(s.y, s.which, s.x, 0, true)
	d.Max(s.y, s.which, s.z, 1, false)
	d.MaxBack(s.z, s.y, s.which, 1)
	d.LayerNorm(s.z, s.stats, s.y, s.gamma, sums(0), nil)
	d.LayerNormBack(s.z, sums(1), sums(2), s.z, s.y, s.stats, s.gamma)
	d.ColumnSums(sums(0), s.z)
	d.Densify(s.y, s.g)
	d.DropValues(s.vals, none, s.g, s.drop)
	d.Combine(s.y, 1, s.y, 3, s.z)
	loss, right := d.CrossEntropy(s.z, s.y, s.labels, 0.1)
	s.loss = [4]float64{loss, float64(right)}
	s.loss[2], _ = d.CrossEntropy(none, s.y, s.labels, 1)
	s.loss[3], _ = d.BinaryCrossEntropy(s.z, s.y, s.labels, 1)
	if !d.Finite(s.z) {
		panic("not finite")
	}
	d.Zero(s.m)
	d.Zero(s.y)
	d.Adam(s.x, s.z, s.m, s.y, tensor.AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Step: 1})
	d.SGD(s.x, s.z, s.m, tensor.SGDStep{Rate: 0.1, Momentum: 0.9})
	d.Read32(s.numbers, s.x)
	d.Write32(s.wide, s.numbers)
	d.Read(s.exact, s.wide)
}

func TestNothingIsAllocated(t *testing.T) {
	d := cpu.New(2)
	defer d.Close()
	a, err := d.NewArena(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := newStep(d, a)
	if n := testing.AllocsPerRun(10, s.run); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

func TestBitsDoNotDependOnThreads(t *testing.T) {
	var want []float32
	var loss [4]float64
	for _, threads := range []int{1, 2, 8} {
		d := cpu.New(threads)
		a, err := d.NewArena(8 << 20)
		if err != nil {
			t.Fatal(err)
		}
		s := newStep(d, a)
		for range 5 {
			s.run()
		}
		got := append(slices.Clone(s.numbers), s.vals.F32()...)
		if threads == 1 {
			want, loss = got, s.loss
		}
		if !slices.Equal(got, want) || s.loss != loss {
			t.Errorf("%d threads compute other numbers than one", threads)
		}
		a.Close()
		d.Close()
	}
}

func TestName(t *testing.T) {
	for threads, want := range map[int]string{1: "1 thread)", 3: "3 threads)"} {
		d := cpu.New(threads)
		if name := d.Name(); !strings.HasSuffix(name, want) || !strings.Contains(name, family.Current().String()) {
			t.Errorf("%d threads: the name is %q", threads, name)
		}
		d.Close()
	}
}
