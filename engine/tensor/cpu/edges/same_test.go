package edges

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// everything runs all operations and returns the bits of what they wrote.
func everything(e *Edges, s shape, heads, width int) map[string][]uint32 {
	rng := rand.New(rand.NewPCG(5, 6))
	o := s.attended(rng, heads, width, 0.4)
	bits := map[string][]uint32{}
	keep := func(what string, fs ...*framed) {
		for i, f := range fs {
			bits[fmt.Sprintf("%s %d", what, i)] = f.bits()
		}
	}
	o.first(e)
	keep("Attend", o.y, o.stats, o.dx, o.dleft, o.dright)
	o.second(e)
	keep("AttendV2", o.y2, o.s2, o.dx, o.dto, o.da)
	e.HeadDot(o.left.Matrix, o.x.Matrix, o.a.Matrix)
	e.HeadDotBack(o.dx.Matrix, o.da.Matrix, o.left.Matrix, o.x.Matrix, o.a.Matrix)
	keep("HeadDot", o.left, o.dx, o.da)
	values := random(rng, tensor.F32, 1, o.g.Entries())
	half := random(rng, tensor.BF16, o.g.Cols, heads*width)
	for _, x := range []*framed{o.x, half} {
		for i, v := range []tensor.Matrix{{}, values.Matrix} {
			for _, how := range []tensor.Aggregation{tensor.Sum, tensor.Mean} {
				y, dx := o.y.clone(), o.dx.clone()
				e.Aggregate(y.Matrix, o.g, v, x.Matrix, how, how == tensor.Mean, nil)
				e.AggregateBack(dx.Matrix, o.g, v, o.dy.Matrix, how, how == tensor.Sum)
				keep(fmt.Sprintf("Aggregate of %s, %d, %d", x.Type, i, how), y, dx)
			}
		}
	}
	which := frame(rng, tensor.I32, o.g.Rows, heads*width)
	e.AggregateMax(o.y.Matrix, which.Matrix, o.g, o.x.Matrix)
	e.AggregateMaxBack(o.dx.Matrix, o.g, o.dy.Matrix, which.Matrix, true)
	keep("AggregateMax", o.y, which, o.dx)
	return bits
}

func same(t *testing.T, what string, a, b map[string][]uint32) {
	t.Helper()
	for name, bits := range a {
		if !slices.Equal(bits, b[name]) {
			t.Errorf("%s: %s has other bits", what, name)
		}
	}
}

// large has some hundred chunks, and hubs of several pieces.
var large = shape{rows: 3000, cols: 2500, degree: 15, hub: 40000, values: true}

// Results don't depend on how many workers there are.
func TestThreads(t *testing.T) {
	for _, f := range families() {
		alone := everything(edgesOn(t, f, 1), large, 4, 11)
		for _, threads := range []int{2, 8} {
			same(t, fmt.Sprintf("%s, %d threads", f, threads), alone, everything(edgesOn(t, f, threads), large, 4, 11))
		}
	}
}

// AVX2 and AVX-512 agree in every bit.
func TestFamilies(t *testing.T) {
	if family.Current() != family.AVX512 {
		t.Logf("nothing to compare on %s", family.Current())
		return
	}
	small := shape{rows: 90, cols: 110, degree: 5, hub: 900}
	narrow, wide := edgesOn(t, family.AVX2, 1), edgesOn(t, family.AVX512, 1)
	for _, h := range append(heads, [][2]int{{1, 16}, {1, 40}, {1, 47}, {1, 100}, {1, 128}, {20, 9}, {33, 1}}...) {
		if h[1] == 0 {
			continue
		}
		what := fmt.Sprintf("%d heads of %d", h[0], h[1])
		same(t, what, everything(narrow, small, h[0], h[1]), everything(wide, small, h[0], h[1]))
	}
	same(t, "large", everything(narrow, large, 8, 8), everything(wide, large, 8, 8))
}

// A row that is summed in pieces has the bits of one that is not.
func TestPieces(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		g := shape{rows: 5, cols: 300, degree: 3, hub: 9000, values: true}.graph(rng)
		const width = 33
		x := random(rng, tensor.F32, g.Cols, width)
		y := random(rng, tensor.F32, g.Rows, width)
		whole := y.clone()
		a := aggregation{e: e, cut: cut{g.Indptr, 1000}, indices: g.Indices, x: x.Matrix, values: valuesOf(g, tensor.Matrix{}), mean: true, add: true}
		e.ready(cut{g.Indptr, 1 << 20}, 1, width)
		run := func(y tensor.Matrix, grain int64) {
			a.y, a.cut.grain = y, grain
			e.pool.Run(a.cut.chunks(), &a)
		}
		run(y.Matrix, 1000)
		run(whole.Matrix, 1<<20)
		if !slices.Equal(y.bits(), whole.bits()) {
			t.Error("pieces add up to other bits")
		}
	})
}

// Every row is in one chunk, and no chunk but a hub's has many more entries than a
// grain.
func TestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range append(shapes, large) {
		g := s.graph(rng)
		for _, grain := range []int64{1, 7, 64, 5000} {
			c := cut{g.Indptr, grain}
			next := 0
			for chunk := range c.chunks() {
				first, last, hub := c.chunk(chunk)
				if first != next || last < first || hub < last || hub > last+1 {
					t.Fatalf("%s: chunk %d is %d, %d, %d after %d", s, chunk, first, last, hub, next)
				}
				if n := g.Indptr[last] - g.Indptr[first]; n > 2*grain {
					t.Fatalf("%s: chunk %d has %d entries and no hub", s, chunk, n)
				}
				next = hub
			}
			if next != g.Rows {
				t.Fatalf("%s: %d rows of %d", s, next, g.Rows)
			}
		}
	}
}

// In steady state nothing is allocated.
func TestAllocations(t *testing.T) {
	for _, f := range families() {
		e := edgesOn(t, f, 2)
		rng := rand.New(rand.NewPCG(1, 2))
		o := shape{rows: 300, cols: 250, degree: 15, hub: 20000, values: true}.attended(rng, 3, 9, 0.5)
		which := frame(rng, tensor.I32, o.g.Rows, 27)
		half := random(rng, tensor.BF16, o.g.Cols, 27)
		epilogue := &tensor.Epilogue{Activation: tensor.ReLU}
		n := testing.AllocsPerRun(5, func() {
			o.first(e)
			o.second(e)
			e.HeadDot(o.left.Matrix, o.x.Matrix, o.a.Matrix)
			e.HeadDotBack(o.dx.Matrix, o.da.Matrix, o.left.Matrix, o.x.Matrix, o.a.Matrix)
			e.Aggregate(o.y.Matrix, o.g, tensor.Matrix{}, o.x.Matrix, tensor.Mean, true, epilogue)
			e.AggregateBack(o.dx.Matrix, o.g, tensor.Matrix{}, o.dy.Matrix, tensor.Mean, true)
			e.Aggregate(o.y.Matrix, o.g, tensor.Matrix{}, half.Matrix, tensor.Sum, false, nil)
			e.AggregateMax(o.y.Matrix, which.Matrix, o.g, o.x.Matrix)
			e.AggregateMaxBack(o.dx.Matrix, o.g, o.dy.Matrix, which.Matrix, true)
		})
		if n != 0 {
			t.Errorf("%s: %g allocations", f, n)
		}
	}
}
