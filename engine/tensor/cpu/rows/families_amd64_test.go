package rows

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// with computes with other kernels for a while.
func with(k *assembly, f func()) {
	was := kernels
	kernels = k
	defer func() { kernels = was }()
	f()
}

// A memory is what an operation reads and writes: matrices with gaps, which belong
// to what is compared.
type memory struct {
	r    *rand.Rand
	all  [][]float32
	ints []int32
}

func (m *memory) matrix(rows, cols, gap int) tensor.Matrix {
	stride := cols + gap
	skip := m.r.IntN(5)
	s := make([]float32, rows*stride+skip+1)
	for i := range s {
		s[i] = float32(m.r.NormFloat64() * 3)
	}
	if n := len(s) / 40; n > 0 {
		for _, v := range []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-40, -200, 200, 1e-6, -1e-6} {
			s[m.r.IntN(len(s))] = v
		}
	}
	m.all = append(m.all, s)
	return tensor.Over(tensor.F32, rows, cols, stride, unsafe.Pointer(&s[skip]))
}

func (m *memory) vector(n int) []float32 { return m.matrix(1, n, 0).F32() }

// bits are those of all memory. Numbers that are none are equal.
func (m *memory) bits() []uint32 {
	var all []uint32
	for _, s := range m.all {
		for _, v := range s {
			if v != v {
				v = float32(math.NaN())
			}
			all = append(all, math.Float32bits(v))
		}
	}
	for _, v := range m.ints {
		all = append(all, uint32(v))
	}
	return all
}

// operations are all that have kernels.
var operations = map[string]func(m *memory, rows, cols, gap int){
	"Apply": func(m *memory, rows, cols, gap int) {
		for _, e := range m.epilogues(rows, cols) {
			Apply(m.matrix(rows, cols, gap), m.matrix(rows, cols, gap), 0, rows, &e)
		}
	},
	"ApplyBack": func(m *memory, rows, cols, gap int) {
		for _, e := range m.epilogues(rows, cols) {
			ApplyBack(m.matrix(rows, cols, gap), nil, m.matrix(rows, cols, gap), m.matrix(rows, cols, gap), 0, rows, &e)
			ApplyBack(m.matrix(rows, cols, gap), m.vector(cols), m.matrix(rows, cols, gap), m.matrix(rows, cols, gap), 0, rows, &e)
		}
	},
	"Combine": func(m *memory, rows, cols, gap int) {
		x := m.matrix(rows, cols, gap)
		Combine(m.matrix(rows, cols, gap), 0.3, x, 0, tensor.Matrix{})
		Combine(m.matrix(rows, cols, gap), 0.3, x, -1.7, m.matrix(rows, cols, gap))
		half := tensor.Over(tensor.BF16, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(m.vector(rows*cols))))
		Combine(half, 1, x, 0, tensor.Matrix{})
		Combine(m.matrix(rows, cols, gap), 1, half, 0, tensor.Matrix{})
	},
	"Gather": func(m *memory, rows, cols, gap int) {
		ids, to := make([]uint32, 3*rows), make([]int32, 3*rows)
		for i := range ids {
			ids[i], to[i] = uint32(m.r.IntN(rows)), int32(m.r.IntN(rows))
		}
		x := m.matrix(len(ids), cols, gap)
		Gather(x, []tensor.Part{{X: m.matrix(rows, cols, gap)}}, ids)
		ScatterAdd(m.matrix(rows, cols, gap), x, to, 0, rows)
	},
	"ColumnSums": func(m *memory, rows, cols, gap int) {
		x := m.matrix(rows, cols, gap)
		ColumnSums(m.vector(cols), x)
	},
	"LayerNorm": func(m *memory, rows, cols, gap int) {
		x, stats, gamma := m.matrix(rows, cols, gap), m.matrix(rows, 2, gap), m.matrix(1, cols, 0)
		LayerNorm(m.matrix(rows, cols, gap), stats, x, gamma, m.matrix(1, cols, 0), 0, rows, nil)
		LayerNormBack(m.matrix(rows, cols, gap), m.vector(cols), m.vector(cols), m.matrix(rows, cols, gap), x, stats, gamma, 0, rows)
	},
	"Max": func(m *memory, rows, cols, gap int) {
		which := make([]int32, rows*cols)
		w := tensor.Over(tensor.I32, rows, cols, cols, unsafe.Pointer(&which[0]))
		y := m.matrix(rows, cols, gap)
		Max(y, w, m.matrix(rows, cols, gap), 2, true)
		Max(y, w, m.matrix(rows, cols, gap), 5, false)
		MaxBack(m.matrix(rows, cols, gap), m.matrix(rows, cols, gap), w, 5)
		m.ints = append(m.ints, which...)
	},
	"Losses": func(m *memory, rows, cols, gap int) {
		labels := make([]int32, rows)
		for i := range labels {
			labels[i] = int32(m.r.IntN(cols+1)) - 1
		}
		sums := m.vector(4)
		for i, f := range []func(dz, z tensor.Matrix, labels []int32, scale float64, scratch []float32) (float64, int){CrossEntropy, BinaryCrossEntropy} {
			loss, right := f(m.matrix(rows, cols, gap), m.matrix(rows, cols, gap), labels, 0.01, nil)
			sums[2*i], sums[2*i+1] = float32(loss), float32(right)
		}
	},
	"Updates": func(m *memory, rows, cols, _ int) {
		n := rows * cols
		v := m.vector(n)
		for i := range v {
			v[i] = abs(v[i])
		}
		o := NewAdamRule(tensor.AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Decay: 0.01, Step: 3})
		Adam(m.vector(n), m.vector(n), m.vector(n), v, &o)
		o = NewAdamRule(tensor.AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Decay: 0.01, Decoupled: true, Step: 3})
		Adam(m.vector(n), m.vector(n), m.vector(n), v, &o)
		SGD(m.vector(n), m.vector(n), nil, 0.1, 0, 0.01)
		SGD(m.vector(n), m.vector(n), m.vector(n), 0.1, 0.9, 0.01)
	},
	"DropValues": func(m *memory, rows, cols, _ int) {
		g := &tensor.CSR{Rows: rows, Cols: cols, Indptr: []int64{3}, Indices: []int32{0, 0, 0}}
		for range rows {
			for range m.r.IntN(2 * cols) {
				g.Indices = append(g.Indices, int32(m.r.IntN(cols)))
			}
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
		DropValues(m.matrix(1, g.Entries(), 0), m.matrix(1, g.Entries(), 0), g, 0, rows, m.dropout(rows))
		DropValues(m.matrix(1, g.Entries(), 0), tensor.Matrix{}, g, 0, rows, m.dropout(rows))
	},
}

func (m *memory) dropout(rows int) tensor.Dropout {
	d := tensor.Dropout{P: 0.4, Key: keyed.New(m.r.Uint64(), keyed.Dropout), Vertices: make([]uint32, rows)}
	for i := range d.Vertices {
		d.Vertices[i] = m.r.Uint32()
	}
	return d
}

func (m *memory) epilogues(rows, cols int) []tensor.Epilogue {
	var all []tensor.Epilogue
	for a := tensor.Linear; a <= tensor.ELU; a++ {
		for _, d := range []tensor.Dropout{{}, m.dropout(rows)} {
			all = append(all, tensor.Epilogue{Activation: a, Dropout: d}, tensor.Epilogue{Activation: a, Dropout: d, Bias: m.matrix(1, cols, 0)})
		}
	}
	return all
}

func TestFamiliesHaveTheSameBits(t *testing.T) {
	if family.Current() < family.AVX512 {
		return // there is one family, or none
	}
	for name, operation := range operations {
		for _, s := range [][3]int{{1, 1, 0}, {3, 7, 1}, {5, 8, 0}, {2, 15, 3}, {4, 16, 0}, {7, 17, 2}, {9, 31, 0}, {40, 33, 1}, {150, 64, 0}, {3, 257, 5}} {
			compute := func(k *assembly) []uint32 {
				m := &memory{r: rand.New(rand.NewPCG(uint64(s[0]), uint64(s[1])))}
				with(k, func() { operation(m, s[0], s[1], s[2]) })
				return m.bits()
			}
			if !slices.Equal(compute(&avx2Kernels), compute(&avx512Kernels)) {
				t.Errorf("%s of %d x %d with gaps of %d: AVX2 and AVX-512 differ", name, s[0], s[1], s[2])
			}
		}
	}
}
