package task_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const width = 3

// drawn makes rows of targets of a kind, some of which are missing.
func drawn(r *rand.Rand, kind *task.Kind, rows int) (targets []int32) {
	for range rows {
		for range kind.Targets.Words(width) {
			word := graph.NoLabel
			switch {
			case r.IntN(4) == 0:
			case kind.Targets == graph.OneClass:
				word = r.Int32N(width)
			case kind.Targets == graph.YesOrNo:
				word = wordOf(float32(r.IntN(2)))
			default:
				word = wordOf(float32(3 * r.NormFloat64()))
			}
			targets = append(targets, word)
		}
	}
	return targets
}

func wordOf(x float32) int32 { return int32(math.Float32bits(x)) }

// on returns a matrix of a device with some numbers, and the numbers of a matrix.
func on(t testing.TB, d tensor.Device, numbers []float64) tensor.Matrix {
	t.Helper()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	m := a.Alloc(d.Type(), len(numbers)/width, width)
	d.Write(m, numbers)
	return m
}

func numbersOf(d tensor.Device, m tensor.Matrix) []float64 {
	to := make([]float64, m.Rows*m.Cols)
	d.Read(to, m)
	return to
}

// ofRows are the kinds whose targets are those of rows. Package link tests what learns pairs.
func ofRows() []*task.Kind {
	return slices.DeleteFunc(slices.Clone(task.Kinds), func(k *task.Kind) bool { return k.Pairs })
}

// each calls with every loss of every such kind.
func each(t *testing.T, f func(t *testing.T, kind *task.Kind, of task.Task)) {
	for _, kind := range ofRows() {
		for _, loss := range kind.LossNames() {
			spec := task.Spec{Kind: kind.Name, Loss: loss, Metric: kind.Metrics[0].Name, Width: width}
			t.Run(kind.Name+"/"+loss, func(t *testing.T) { f(t, kind, task.New(spec)) })
			if spec.Delta = 0.3; loss == task.Huber {
				t.Run(kind.Name+"/"+loss+"/delta", func(t *testing.T) { f(t, kind, task.New(spec)) })
			}
			if spec.Weights = []float64{0.5, 3, 2}; kind.Weighted {
				t.Run(kind.Name+"/"+loss+"/weighted", func(t *testing.T) { f(t, kind, task.New(spec)) })
			}
		}
	}
}

// Gradients are those of finite differences, in float64.
func TestGradients(t *testing.T) {
	d := reference.New()
	defer d.Close()
	each(t, func(t *testing.T, kind *task.Kind, of task.Task) {
		r := rand.New(rand.NewPCG(1, 2))
		const rows, scale, step = 20, -0.25, 1e-6
		z := make([]float64, rows*width)
		for i := range z {
			z[i] = 2 * r.NormFloat64()
		}
		targets := drawn(r, kind, rows)
		dz := on(t, d, make([]float64, rows*width))
		of.Loss(d, dz, on(t, d, z), targets, scale)
		got := numbersOf(d, dz)
		at := func(i int, by float64) float64 {
			moved := slices.Clone(z)
			moved[i] += by
			return of.Loss(d, tensor.Matrix{}, on(t, d, moved), targets, scale)
		}
		moving := 0
		for i := range z {
			want := scale * (at(i, step) - at(i, -step)) / (2 * step)
			if math.Abs(got[i]-want) > 1e-7*(1+math.Abs(want)) {
				t.Fatalf("output %d: a gradient of %g, and %g by differences", i, got[i], want)
			}
			if want != 0 {
				moving++
			}
		}
		if moving < rows {
			t.Errorf("%d outputs have a gradient", moving)
		}
	})
}

// The loss of rows is that of each by itself, in place too, and missing rows have none.
func TestRowsAreIndependent(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	each(t, func(t *testing.T, kind *task.Kind, of task.Task) {
		r := rand.New(rand.NewPCG(3, 4))
		const rows = 30
		z := make([]float64, rows*width)
		for i := range z {
			z[i] = float64(float32(2 * r.NormFloat64()))
		}
		targets, words := drawn(r, kind, rows), of.Words()
		for i := range words {
			targets[i] = graph.NoLabel
		}
		all := on(t, d, z)
		sum := of.Loss(d, all, all, targets, 0.5)
		back, single := numbersOf(d, all), 0.0
		for row := range rows {
			one := on(t, d, z[row*width:][:width])
			single += of.Loss(d, one, one, targets[row*words:][:words], 0.5)
			if got := numbersOf(d, one); !slices.Equal(got, back[row*width:][:width]) {
				t.Fatalf("row %d: %v, and among others %v", row, got, back[row*width:][:width])
			}
		}
		if math.Abs(single-sum) > 1e-9*sum || sum <= 0 {
			t.Errorf("rows have %g together, and %g one by one", sum, single)
		}
		if !slices.Equal(back[:width], make([]float64, width)) {
			t.Errorf("a row without a target has the gradient %v", back[:width])
		}
	})
}

// Weights of 1 change nothing but digits, and others weigh the losses of their class, or of a yes.
func TestWeights(t *testing.T) {
	d := reference.New()
	defer d.Close()
	z := []float64{1, -2, 0.5, 0.3, 2, -1}
	for _, kind := range task.Kinds {
		for _, loss := range kind.LossNames() {
			if !kind.Weighted {
				continue
			}
			of := func(weights []float64, targets ...int32) float64 {
				return task.New(task.Spec{Kind: kind.Name, Loss: loss, Width: width, Weights: weights}).Loss(d, tensor.Matrix{}, on(t, d, z), targets, 1)
			}
			none := graph.NoLabel
			first, second := []int32{0, none}, []int32{none, 1}
			both := []int32{0, 1}
			if kind.Targets != graph.OneClass {
				yes := wordOf(1)
				first, second = []int32{yes, none, none, none, none, none}, []int32{none, none, none, none, yes, none}
				both = []int32{yes, none, none, none, yes, none}
			}
			if a, b := of(nil, both...), of([]float64{1, 1, 1}, both...); math.Abs(a-b) > 1e-12 {
				t.Errorf("%s of %s: %g, and with weights of 1 %g", loss, kind.Name, a, b)
			}
			if a, b := 2*of(nil, first...)+5*of(nil, second...), of([]float64{2, 5, 7}, both...); math.Abs(a-b) > 1e-12 {
				t.Errorf("%s of %s: %g in place of %g", loss, kind.Name, b, a)
			}
		}
	}
}

// A NaN among outputs is seen in the loss.
func TestNaNHasNoLoss(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	each(t, func(t *testing.T, kind *task.Kind, of task.Task) {
		target := slices.Repeat([]int32{wordOf(1)}, of.Words())
		if kind.Targets == graph.OneClass {
			target = []int32{0}
		}
		if loss := of.Loss(d, tensor.Matrix{}, on(t, d, []float64{math.NaN(), 1, 1}), target, 1); !math.IsNaN(loss) {
			t.Errorf("a loss of %g", loss)
		}
	})
}

// Losses of a cell, by definition.
func TestLosses(t *testing.T) {
	d := reference.New()
	defer d.Close()
	softplus := func(x float64) float64 { return math.Log(1 + math.Exp(x)) }
	for _, c := range []struct {
		kind, loss string
		y          float64
		target     float32
		want       float64
		delta      float64
	}{
		{"multilabel", task.BCE, 1.5, 1, softplus(-1.5), 0},
		{"multilabel", task.BCE, 1.5, 0, softplus(1.5), 0},
		{"multilabel", task.BCE, -800, 0, 0, 0},
		{"multilabel", task.BCE, -800, 1, 800, 0},
		{"regression", task.L2, 3, 1, 4, 0},
		{"regression", task.L1, -3, 1, 4, 0},
		{"regression", task.Huber, 3, 1, 1.5, 0},
		{"regression", task.Huber, 0.5, 1, 0.125, 0},
		{"regression", task.Huber, -2, 1, 2.5, 0},
		{"regression", task.Huber, -2, 1, 4.5, 4},
		{"regression", task.Huber, 3, 1, 0.875, 0.5},
		{"regression", task.L1, 3, 1, 2, 0.5},
	} {
		of := task.New(task.Spec{Kind: c.kind, Loss: c.loss, Width: 1, Delta: c.delta})
		a, err := d.NewArena(0)
		if err != nil {
			t.Fatal(err)
		}
		z := a.Alloc(d.Type(), 1, 1)
		d.Write(z, []float64{c.y})
		if got := of.Loss(d, tensor.Matrix{}, z, []int32{wordOf(c.target)}, 1); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s of %g for %g: %g in place of %g", c.loss, c.y, c.target, got, c.want)
		}
		a.Close()
	}
}

// Meters of some shards each, merged on any of their nodes, come to the same bits as one meter
// of all; and to what the metrics are by definition.
func TestMetersMerge(t *testing.T) {
	for _, kind := range ofRows() {
		of := task.New(task.Spec{Kind: kind.Name, Loss: kind.Losses[0].Name, Width: width})
		r, words := rand.New(rand.NewPCG(5, 6)), of.Words()
		const shards = 4
		owned := [][]int{{1, 3}, {0}, {2}}
		for round := range 20 {
			whole, parts := of.Meter(), []task.Meter{of.Meter(), of.Meter(), of.Meter()}
			for _, m := range append([]task.Meter{whole}, parts...) {
				m.Reset(shards)
				m.Add(0, make([]float32, width), drawnFull(kind)) // of before
				m.Reset(shards)
			}
			var outputs [][]float32
			var targets [][]int32
			for shard := range shards {
				for range r.IntN(round + 1) {
					output, target := make([]float32, width), drawn(r, kind, 1)
					if !task.Has(target) {
						continue
					}
					for c := range output {
						output[c] = float32(1000 * r.NormFloat64())
					}
					outputs, targets = append(outputs, output), append(targets, target)
					whole.Add(shard, output, target)
					parts[slices.IndexFunc(owned, func(of []int) bool { return slices.Contains(of, shard) })].Add(shard, output, target)
				}
			}
			var messages [][]byte
			for i, m := range parts {
				messages = append(messages, m.Export(nil, owned[i]))
				if len(messages[i]) != m.Exported(len(owned[i])) {
					t.Fatalf("%s: %d bytes, and %d are said", kind.Name, len(messages[i]), m.Exported(len(owned[i])))
				}
			}
			want := valuesOf(whole)
			for i, m := range parts {
				for k, message := range messages {
					if k == i {
						continue
					}
					if err := m.Merge(message, owned[k], len(outputs)); err != nil {
						t.Fatal(kind.Name, err)
					}
				}
				if got := valuesOf(m); !maps.Equal(got, want) || m.Count() != len(outputs) || whole.Count() != len(outputs) {
					t.Fatalf("%s, round %d, part %d: %v of %d, and all together %v of %d", kind.Name, round, i, got, m.Count(), want, whole.Count())
				}
			}
			if by := naive(kind, outputs, targets, words); !near(want, by) {
				t.Fatalf("%s, round %d: %v, and by definition %v", kind.Name, round, want, by)
			}
		}
	}
}

func drawnFull(kind *task.Kind) []int32 {
	if kind.Targets == graph.OneClass {
		return []int32{1}
	}
	return slices.Repeat([]int32{wordOf(1)}, width)
}

func valuesOf(m task.Meter) map[string]float64 {
	to := map[string]float64{}
	m.Values(to)
	return to
}

func near(a, b map[string]float64) bool {
	return maps.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) })
}

// naive returns the metrics by definition.
func naive(kind *task.Kind, outputs [][]float32, targets [][]int32, words int) map[string]float64 {
	values := map[string]float64{}
	switch kind.Targets {
	case graph.OneClass:
		return valuesNaive(outputs, targets)
	case graph.YesOrNo:
		f1, n, right, both := 0.0, 0, 0.0, 0.0
		for c := range words {
			tp, sum := 0.0, 0.0
			for i := range outputs {
				if targets[i][c] == graph.NoLabel {
					continue
				}
				yes, said := targets[i][c] == wordOf(1), outputs[i][c] > 0
				if yes {
					sum++
				}
				if said {
					sum++
				}
				if yes && said {
					tp++
				}
			}
			if sum > 0 {
				f1, n = f1+2*tp/sum, n+1
			}
			right, both = right+tp, both+sum
		}
		if n > 0 {
			values[task.MacroF1], values[task.MicroF1] = f1/float64(n), 2*right/both
		}
	default:
		absolute, square, cells, r2, columns := 0.0, 0.0, 0.0, 0.0, 0.0
		for c := range words {
			var known []float64
			off := 0.0
			for i := range outputs {
				if targets[i][c] == graph.NoLabel {
					continue
				}
				y := float64(math.Float32frombits(uint32(targets[i][c])))
				d := float64(outputs[i][c]) - y
				known, absolute, off, cells = append(known, y), absolute+math.Abs(d), off+d*d, cells+1
			}
			mean, variance := 0.0, 0.0
			for _, y := range known {
				mean += y / float64(len(known))
			}
			for _, y := range known {
				variance += (y - mean) * (y - mean)
			}
			if square += off; len(known) > 1 {
				r2, columns = r2+1-off/variance, columns+1
			}
		}
		if cells > 0 {
			values[task.MAE], values[task.RMSE] = absolute/cells, math.Sqrt(square/cells)
		}
		if columns > 0 {
			values[task.R2] = r2 / columns
		}
	}
	return values
}

// valuesNaive is naive for classes.
func valuesNaive(outputs [][]float32, targets [][]int32) map[string]float64 {
	right, f1, n := 0.0, 0.0, 0.0
	for c := range width {
		tp, sum := 0.0, 0.0
		for i, row := range outputs {
			said := slices.Index(row, slices.Max(row))
			if said == c {
				sum++
			}
			if int(targets[i][0]) == c {
				sum++
			}
			if said == c && int(targets[i][0]) == c {
				tp++
			}
		}
		if right += tp; sum > 0 {
			f1, n = f1+2*tp/sum, n+1
		}
	}
	if len(outputs) == 0 {
		return map[string]float64{task.Accuracy: 0, task.MacroF1: 0}
	}
	return map[string]float64{task.Accuracy: right / float64(len(outputs)), task.MacroF1: f1 / n}
}

// A name means the same in all kinds, and each kind can be found.
func TestKinds(t *testing.T) {
	for _, kind := range task.Kinds {
		if task.Named(kind.Name) != kind || !kind.Pairs && task.For(kind.Targets) != kind || kind.Output(kind.Losses[0].Name) == "" {
			t.Errorf("%s is not what is found", kind.Name)
		}
		for _, m := range kind.Metrics {
			if task.MetricNamed(m.Name) != m {
				t.Errorf("%s of %s is another elsewhere", m.Name, kind.Name)
			}
			if m.Ranked && kind.Ranks == nil && !kind.Pairs {
				t.Errorf("%s of %s ranks, and nothing says how", m.Name, kind.Name)
			}
		}
	}
	if task.Named("") != task.Kinds[0] || task.Named("nothing") != nil || task.For("nothing") != nil || task.MetricNamed("nothing") != (task.Metric{}) {
		t.Error("a name that nothing has")
	}
	if (task.Spec{Metric: task.Accuracy}).Ranked() || !(task.Spec{Metric: task.ROCAUC}).Ranked() || !(task.Spec{Kind: "multilabel", Metric: task.MicroF1}).Ranked() || (task.Spec{Kind: "link", Metric: task.ROCAUC}).Ranked() {
		t.Error("what is ranked")
	}
}

// What no meter can have exported is refused, or merges into numbers that can be.
func FuzzMerge(f *testing.F) {
	kinds := ofRows()
	for i, kind := range kinds {
		m := task.New(task.Spec{Kind: kind.Name, Loss: kind.Losses[0].Name, Width: width}).Meter()
		m.Reset(2)
		m.Add(1, []float32{1, -2, 3}, drawnFull(kind))
		f.Add(m.Export(nil, []int{1}), i, 1)
		f.Add(slices.Repeat([]byte{0xff}, m.Exported(1)), i, 1<<40)
		f.Add(make([]byte, m.Exported(1)), i, 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, k, most int) {
		kind := kinds[(k%len(kinds)+len(kinds))%len(kinds)]
		most = max(0, most&(1<<40-1))
		m := task.New(task.Spec{Kind: kind.Name, Loss: kind.Losses[0].Name, Width: width}).Meter()
		m.Reset(2)
		if err := m.Merge(b, []int{1}, most); err != nil {
			if m.Count() != 0 {
				t.Error("what is refused is added")
			}
			return
		}
		if m.Count() > most {
			t.Errorf("%d rows of %d", m.Count(), most)
		}
		for name, x := range valuesOf(m) {
			if kind.Targets != graph.Numbers && !(x >= 0 && x <= 1) {
				t.Errorf("%s: %s of %s", fmt.Sprint(x), name, kind.Name)
			}
		}
	})
}
