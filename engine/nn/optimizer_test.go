package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Three steps of each optimizer are those of the formulas.
func TestOptimizers(t *testing.T) {
	const decay, momentum = 0.1, 0.9
	d := ref()
	for _, spec := range []nn.OptimizerSpec{
		{Kind: "adam", WeightDecay: decay},
		{Kind: "adamw", WeightDecay: decay},
		{Kind: "sgd", WeightDecay: decay, Momentum: momentum},
		{Kind: "sgd"},
	} {
		a := newArena(t, d)
		o, err := nn.NewOptimizer(spec, d, a, 3)
		if err != nil {
			t.Fatal(err)
		}
		w, g := a.Alloc(tensor.F64, 1, 3), a.Alloc(tensor.F64, 1, 3)
		x, m, v := []float64{1, -2, 0.5}, make([]float64, 3), make([]float64, 3)
		d.Write(w, x)
		for step := 1; step <= 3; step++ {
			rate, grad := 0.1/float64(step), []float64{0.3 * float64(step), -1, 0}
			d.Write(g, grad)
			o.Step(w, g, rate)
			for i, gi := range grad {
				switch spec.Kind {
				case "sgd":
					m[i] = spec.Momentum*m[i] + gi + spec.WeightDecay*x[i]
					x[i] -= rate * m[i]
					continue
				case "adam":
					gi += decay * x[i]
				case "adamw":
					x[i] -= rate * decay * x[i]
				}
				m[i] = 0.9*m[i] + 0.1*gi
				v[i] = 0.999*v[i] + 0.001*gi*gi
				fresh := func(beta float64) float64 { return 1 - math.Pow(beta, float64(step)) }
				x[i] -= rate * (m[i] / fresh(0.9)) / (math.Sqrt(v[i]/fresh(0.999)) + 1e-8)
			}
			got := make([]float64, 3)
			d.Read(got, w)
			mustNear(t, spec.Kind, got, x, 1e-12)
		}
		names := ""
		for _, moment := range o.Moments() {
			names += moment.Name
			got := make([]float64, 3)
			d.Read(got, moment.Row)
			mustNear(t, spec.Kind+"'s "+moment.Name, got, map[string][]float64{"m": m, "v": v}[moment.Name], 1e-12)
		}
		want := map[bool]string{true: "mv"}[spec.Kind != "sgd"]
		if spec.Momentum > 0 {
			want = "m"
		}
		if names != want || o.Steps() != 3 {
			t.Errorf("%s remembers %q and not %q, after %d steps", spec.Kind, names, want, o.Steps())
		}
	}
}

// One that goes on from what a checkpoint holds does as if it had never stopped.
func TestOptimizerGoesOn(t *testing.T) {
	d := ref()
	a := newArena(t, d)
	make1 := func() (*nn.Optimizer, tensor.Matrix) {
		o, err := nn.NewOptimizer(nn.OptimizerSpec{Kind: "adam"}, d, a, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := a.Alloc(tensor.F64, 1, 1)
		d.Write(w, []float64{1})
		return o, w
	}
	g := a.Alloc(tensor.F64, 1, 1)
	d.Write(g, []float64{0.7})
	straight, w := make1()
	straight.Step(w, g, 0.1)
	resumed, again := make1()
	resumed.SetSteps(straight.Steps())
	d.Combine(again, 1, w, 0, tensor.Matrix{})
	for i, m := range straight.Moments() {
		d.Combine(resumed.Moments()[i].Row, 1, m.Row, 0, tensor.Matrix{})
	}
	d.Write(g, []float64{-0.2})
	straight.Step(w, g, 0.1)
	resumed.Step(again, g, 0.1)
	if a, b := w.F64()[0], again.F64()[0]; a != b {
		t.Errorf("%v and %v", a, b)
	}
}

// Columns that are updated by themselves come to the same as all at once.
func TestOptimizersOfColumns(t *testing.T) {
	const size = 70
	d := ref()
	for _, spec := range []nn.OptimizerSpec{{Kind: "adam", WeightDecay: 0.1}, {Kind: "sgd", Momentum: 0.9}, {Kind: "sgd"}} {
		a := newArena(t, d)
		var got [2][]float64
		for i, parts := range [][]int{{size}, {3, 0, 30, size - 33}} {
			o, err := nn.NewOptimizer(spec, d, a, size)
			if err != nil {
				t.Fatal(err)
			}
			w, g := a.Alloc(tensor.F64, 1, size), a.Alloc(tensor.F64, 1, size)
			x := make([]float64, size)
			for c := range x {
				x[c] = float64(c%7) - 2.5
			}
			d.Write(w, x)
			d.Write(g, x)
			for step := 1; step <= 2; step++ {
				first := 0
				for _, n := range parts {
					o.SetSteps(uint64(step - 1))
					o.StepColumns(w, g, first, n, 0.1)
					first += n
				}
			}
			got[i] = make([]float64, size)
			d.Read(got[i], w)
			if o.Steps() != 2 {
				t.Errorf("%d updates", o.Steps())
			}
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%+v: %v and %v", spec, got[1], got[0])
		}
	}
}

func TestBadOptimizers(t *testing.T) {
	for _, c := range []struct {
		spec nn.OptimizerSpec
		want string
	}{
		{nn.OptimizerSpec{Kind: "lion"}, `{optimizer} is "lion": it is one of adam, adamw and sgd`},
		{nn.OptimizerSpec{Kind: "adam", WeightDecay: -1}, "{weight-decay} is -1"},
		{nn.OptimizerSpec{Kind: "sgd", WeightDecay: math.NaN()}, "{weight-decay} is NaN"},
		{nn.OptimizerSpec{Kind: "sgd", Momentum: 1}, "{train.momentum} is 1, but must be at least 0 and below 1"},
		{nn.OptimizerSpec{Kind: "adam", Momentum: 0.5}, "is for {optimizer} sgd, and this is adam"},
	} {
		if _, err := nn.NewOptimizer(c.spec, ref(), nil, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
