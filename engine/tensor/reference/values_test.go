package reference_test

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

func TestMatMul(t *testing.T) {
	b := lay(t)
	x, y := b.of(2, 3, 1, 2, 3, 4, 5, 6), b.of(3, 2, 7, 8, 9, 10, 11, 12)
	c := b.of(2, 2, 1, 1, 1, 1)
	b.MatMul(c, x, y, tensor.NN, true, nil)
	b.is("1 + x*y", c, 59, 65, 140, 155)
	b.MatMul(c, x, b.of(2, 3, 1, 0, 1, 0, 1, 0), tensor.NT, false, &tensor.Epilogue{Bias: b.of(1, 2, -5, 0), Activation: tensor.ReLU})
	b.is("relu(x*z' + bias)", c, 0, 2, 5, 5)
	wide := b.arena.Alloc(tensor.F64, 3, 3)
	b.MatMul(wide, x, b.of(2, 3, 1, 0, 0, 0, 1, 0), tensor.TN, false, nil)
	b.is("x'*z", wide, 1, 4, 0, 2, 5, 0, 3, 6, 0)
	b.MatMul(c, b.zeros(2, 0), b.zeros(0, 2), tensor.NN, false, &tensor.Epilogue{Bias: b.of(1, 2, 3, 4)})
	b.is("bias alone", c, 3, 4, 3, 4)
}

func TestEpilogue(t *testing.T) {
	b := lay(t)
	x, y := b.of(1, 4, -1, 0, 2, -3), b.zeros(1, 4)
	b.Apply(y, x, &tensor.Epilogue{Activation: tensor.ELU})
	b.is("elu", y, math.Exp(-1)-1, 0, 2, math.Exp(-3)-1)
	b.Apply(x, x, &tensor.Epilogue{Activation: tensor.ReLU})
	b.is("relu", x, 0, 0, 2, 0)
}

// The order is bias, activation, dropout, and each decision is that of its key.
func TestDropout(t *testing.T) {
	b := lay(t)
	const cols = 400
	x, y, d := b.zeros(2, cols), b.zeros(2, cols), dropout(.75)
	bias := make([]float64, cols)
	for i := range bias {
		bias[i] = float64(i%3) - 1
	}
	b.Apply(y, x, &tensor.Epilogue{Bias: b.of(1, cols, bias...), Activation: tensor.ReLU, Dropout: d})
	kept := 0
	for i := range 2 {
		for j := range cols {
			want := max(bias[j], 0) * 4
			if d.Key.With(uint64(vertices[i])).Column(uint32(j)) < keyed.Threshold(.75) {
				want = 0
			} else {
				kept++
			}
			if got := y.F64()[i*cols+j]; got != want {
				t.Fatalf("[%d,%d] is %v, want %v", i, j, got, want)
			}
		}
	}
	if kept < 150 || kept > 250 {
		t.Errorf("%d of 800 are kept of a quarter", kept)
	}
}

func TestAggregate(t *testing.T) {
	b := lay(t)
	g := &tensor.CSR{Rows: 3, Cols: 2, Indptr: []int64{1, 3, 3, 4}, Indices: []int32{9, 0, 1, 1}, Values: []float32{9, 2, -1, 3}}
	x, y := b.of(2, 2, 1, 10, 2, 20), b.of(3, 2, 1, 1, 1, 1, 1, 1)
	b.Aggregate(y, g, none, x, tensor.Mean, true, nil)
	b.is("1 + the mean", y, 1, 1, 1, 1, 7, 61)
	b.Aggregate(y, g, b.of(1, 3, 1, 1, -1), x, tensor.Sum, false, &tensor.Epilogue{Activation: tensor.ReLU})
	b.is("relu of the sum", y, 3, 30, 0, 0, 0, 0)
	which := b.arena.Alloc(tensor.I32, 3, 2)
	b.AggregateMax(y, which, g, b.of(2, 2, -1, -4, -1, -3))
	b.is("the largest", y, -1, -3, 0, 0, -1, -3)
	b.is("whose it is", which, 0, 1, -1, -1, 1, 1)
	b.AggregateMaxBack(x, g, b.of(3, 2, 1, 2, 4, 8, 16, 32), which, true)
	b.is("the gradient", x, 2, 10, 18, 54)
	dense := b.arena.Alloc(tensor.F64, 3, 2)
	b.Densify(dense, g)
	b.is("the matrix", dense, 2, -1, 0, 0, 0, 3)
}

// Two equal scores share, and a third so far above takes all.
func TestAttend(t *testing.T) {
	b := lay(t)
	g := &tensor.CSR{Rows: 3, Cols: 3, Indptr: []int64{0, 2, 2, 5}, Indices: []int32{0, 1, 0, 1, 2}}
	x, y, stats := b.of(3, 1, 1, 3, 7), b.zeros(3, 1), b.zeros(3, 2)
	b.Attend(y, stats, g, x, b.of(3, 1, 2, 2, 500), b.of(3, 1, 1, 1, 1), .2, tensor.Dropout{}, 0)
	b.is("y", y, 2, 0, 7)
	b.is("stats", stats, 3, 2, 0, 0, 501, 1)
	// Below 0 scores are -10*.2 and -5*.2: one apart.
	e := math.Exp(-1)
	b.Attend(y, stats, g, x, b.of(3, 1, -11, -6, -6), b.of(3, 1, 1, 1, 1), .2, tensor.Dropout{}, 0)
	slope := float64(float32(.2))
	if math.Abs(y.F64()[0]-(e+3)/(1+e)) > 1e-7 || math.Abs(stats.F64()[0]+5*slope) > 1e-12 {
		t.Errorf("y is %v and stats %v", y.F64(), stats.F64())
	}
	b.AttendV2(y, stats, g, x, b.of(3, 1, 0, 0, 0), b.of(1, 1, 0), .2, tensor.Dropout{}, 0)
	b.is("y of no scores", y, 2, 0, 11.0/3)
}

func TestLosses(t *testing.T) {
	b := lay(t)
	z, dz := b.of(3, 2, 0, math.Log(3), 5, 5, 1, 1), b.zeros(3, 2)
	loss, right := b.CrossEntropy(dz, z, []int32{1, 0, -1}, 2)
	if math.Abs(loss-(math.Log(4)-math.Log(3)+math.Log(2))) > 1e-12 || right != 2 {
		t.Errorf("the loss is %v, %d are right", loss, right)
	}
	b.is("dz", dz, .5, -.5, -1, 1, 0, 0)
	loss, right = b.BinaryCrossEntropy(dz, z, []int32{-5, 1, 1}, 1)
	one, five := math.Exp(-1), math.Exp(-5)
	if want := 10 + 2*math.Log1p(five) - 5 + 2 + 2*math.Log1p(one) - 1; math.Abs(loss-want) > 1e-12 || right != 0 {
		t.Errorf("the loss is %v, want %v; %d are right", loss, want, right)
	}
	b.is("dz", dz, 0, 0, 1/(1+five), 1/(1+five)-1, 1/(1+one), 1/(1+one)-1)
	if loss, _ := b.BinaryCrossEntropy(none, b.of(1, 2, -1000, 1000), []int32{1}, 1); loss != 0 {
		t.Errorf("the loss of what is certain is %v", loss)
	}
	defer func() {
		if recover() == nil {
			t.Error("a label of 2 classes is 2")
		}
	}()
	b.CrossEntropy(dz, z, []int32{0, 0, 2}, 1)
}

// The first step of Adam is Rate in the direction of the gradient.
func TestUpdates(t *testing.T) {
	b := lay(t)
	w, g, m, v := b.of(1, 3, 1, 1, 1), b.of(1, 3, 4, -2, 0), b.zeros(1, 3), b.zeros(1, 3)
	b.Adam(w, g, m, v, tensor.AdamStep{Rate: .125, Beta1: .5, Beta2: .75, Step: 1, Epsilon: 1e-300})
	b.is("w", w, .875, 1.125, 1)
	b.is("m", m, 2, -1, 0)
	b.is("v", v, 4, 1, 0)
	b.Adam(w, b.zeros(1, 3), b.zeros(1, 3), b.zeros(1, 3), tensor.AdamStep{Rate: .5, Beta1: .5, Beta2: .5, Step: 3, Epsilon: 1, Decay: .5, Decoupled: true})
	b.is("w that decays by itself", w, .875*.75, 1.125*.75, .75)
	w = b.of(1, 2, 2, -1)
	b.Adam(w, b.of(1, 2, 1, 1), b.zeros(1, 2), b.zeros(1, 2), tensor.AdamStep{Rate: .5, Beta1: .5, Beta2: .5, Step: 1, Epsilon: 1e-300, Decay: 1})
	b.is("w that decays by the gradient", w, 1.5, -1)
	w, m = b.of(1, 2, 2, 4), b.of(1, 2, 1, 1)
	b.SGD(w, b.of(1, 2, 3, 5), m, tensor.SGDStep{Rate: .25, Momentum: .5, Decay: .5})
	b.is("m", m, 4.5, 7.5)
	b.is("w", w, 2-4.5/4, 4-7.5/4)
	b.SGD(w, b.of(1, 2, 1, 1), none, tensor.SGDStep{Rate: .25})
	b.is("w", w, 1.75-4.5/4, 3.75-7.5/4)
}

func TestLayerNorm(t *testing.T) {
	b := lay(t)
	x, y, stats := b.of(2, 2, 1, 3, 5, 5), b.zeros(2, 2), b.zeros(2, 2)
	b.LayerNorm(y, stats, x, b.of(1, 2, 2, 2), b.of(1, 2, 10, 20), nil)
	inverse := 1 / math.Sqrt(1+1e-5)
	b.is("y", y, 10-2*inverse, 20+2*inverse, 10, 20)
	b.is("stats", stats, 2, inverse, 5, 1/math.Sqrt(1e-5))
}

func TestGatherAndScatter(t *testing.T) {
	b := lay(t)
	x := b.of(3, 1, 1, 2, 3)
	half := b.arena.Alloc(tensor.BF16, 2, 1)
	b.Write(half, []float64{1.00390625, 1.01171875}) // ties between two of BF16: to even
	y := b.arena.Alloc(tensor.F32, 4, 1)
	b.Gather(y, []tensor.Part{{First: 5, X: x}, {First: 8, X: half}}, []uint32{9, 7, 5, 8})
	b.is("y", y, 1.015625, 3, 1, 1)
	b.ScatterAdd(x, y, []int32{0, 0, 2, 0})
	b.is("x", x, 1+1.015625+3+1, 2, 4)
}

func TestSpecialNumbers(t *testing.T) {
	b := lay(t)
	m := b.zeros(2, 2)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b.Write(m, []float64{1, 2, 3, bad})
		if b.Finite(m) || !b.Finite(m.View(0, 2, 0, 1)) {
			t.Errorf("%v is or makes its neighbours not finite", bad)
		}
	}
	half := b.arena.Alloc(tensor.BF16, 1, 4)
	b.Write(half, []float64{math.NaN(), math.Inf(1), math.MaxFloat32, -0x1.fep127})
	to := make([]float64, 4)
	b.Read(to, half)
	if !math.IsNaN(to[0]) || !math.IsInf(to[1], 1) || !math.IsInf(to[2], 1) || to[3] != -0x1.fep127 {
		t.Errorf("BF16 holds %v", to)
	}
}

// What is handed out is not a number, until it is written.
func TestArena(t *testing.T) {
	b := lay(t)
	for _, kind := range []tensor.Type{tensor.F32, tensor.F64, tensor.BF16} {
		m := b.arena.Alloc(kind, 3, 5)
		to := make([]float64, 15)
		b.Read(to, m)
		for _, x := range to {
			if !math.IsNaN(x) {
				t.Fatalf("%s holds %v", kind, to)
			}
		}
	}
	if _, err := b.NewArena(-1); err == nil {
		t.Error("an arena of -1 bytes")
	}
}

func TestWrongShapesPanic(t *testing.T) {
	b := lay(t)
	for name, f := range map[string]func(){
		"MatMul":    func() { b.MatMul(b.zeros(2, 2), b.zeros(2, 3), b.zeros(2, 3), tensor.NN, false, nil) },
		"Apply":     func() { b.Apply(b.zeros(2, 2), b.zeros(2, 3), nil) },
		"Dropout":   func() { b.Apply(b.zeros(9, 2), b.zeros(9, 2), &tensor.Epilogue{Dropout: dropout(.5)}) },
		"Aggregate": func() { b.Aggregate(b.zeros(5, 2), graph(false), none, b.zeros(6, 2), tensor.Sum, false, nil) },
		"Gather":    func() { b.Gather(b.zeros(1, 2), []tensor.Part{{First: 3, X: b.zeros(2, 2)}}, []uint32{5}) },
		"HeadDot":   func() { b.HeadDot(b.zeros(2, 3), b.zeros(2, 4), b.zeros(1, 4)) },
		"SGD":       func() { b.SGD(b.zeros(1, 1), b.zeros(1, 1), none, tensor.SGDStep{Momentum: .5}) },
		"Write":     func() { b.Write(b.zeros(2, 2), make([]float64, 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
