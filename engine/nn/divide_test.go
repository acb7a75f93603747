package nn_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// divided is stages where those with blocks run in two steps, in other parts.
func (r *run) divided(t *testing.T, g *graph, sparse bool) []float64 {
	kept := newArena(t, r.device)
	sources := [][]uint32{g.all()[:3], g.all()[3:4], g.all()[4:]}
	targets := [][]uint32{g.all()[:6], g.all()[6:7], g.all()[7:]}
	var x, carry tensor.Matrix
	for i, info := range r.Stages() {
		next, beside := kept.Alloc(r.device.Type(), g.n, info.Out), kept.Alloc(r.device.Type(), g.n, info.CarryOut)
		d, ok := r.Divide(i, sparse)
		if ok != (info.Hops > 0) {
			t.Fatalf("stage %d with %d hops can be divided: %v", i, info.Hops, ok)
		}
		carried := x
		if ok && d.Carried > 0 {
			carried = kept.Alloc(r.device.Type(), g.n, d.Carried)
			for _, vertices := range sources {
				r.arena.Reset()
				var in nn.Input
				var rows tensor.Matrix
				if i == 0 {
					in = g.input(r.device, vertices, sparse)
				} else {
					rows = x.RowRange(int(vertices[0]), len(vertices))
				}
				y := r.Carry(i, in, rows)
				r.device.Combine(carried.RowRange(int(vertices[0]), len(vertices)), 1, y, 0, tensor.Matrix{})
			}
		}
		for _, vertices := range targets {
			r.arena.Reset()
			var in nn.Input
			var rows, besides tensor.Matrix
			at := int(vertices[0])
			if i == 0 {
				in = g.input(r.device, vertices, sparse)
			} else {
				rows = x.RowRange(at, len(vertices))
			}
			if info.CarryIn > 0 {
				besides = carry.RowRange(at, len(vertices))
			}
			var y, c tensor.Matrix
			if ok {
				if !d.Own {
					in.Dense, rows = tensor.Matrix{}, tensor.Matrix{}
					if sparse && i == 0 {
						in.Sparse = &tensor.CSR{}
					}
				}
				b := g.block(vertices, 0, r.Form(), true)
				y, c = r.Sum(i, &b, in, rows, carried, besides)
			} else {
				y, c = r.Stage(i, nil, in, rows, besides)
			}
			r.device.Combine(next.RowRange(at, len(vertices)), 1, y, 0, tensor.Matrix{})
			if info.CarryOut > 0 {
				r.device.Combine(beside.RowRange(at, len(vertices)), 1, c, 0, tensor.Matrix{})
			}
		}
		x, carry = next, beside
	}
	return r.read(x)
}

// A stage in two steps gives the bits of the stage, for every kind of model, and whether
// dropout is on or not.
func TestDividedStagesAreTheStages(t *testing.T) {
	devices := []tensor.Device{ref(), cpu.New(2)}
	defer devices[1].Close()
	for i, s := range specs() {
		name, _ := json.Marshal(s)
		if s.Model == "contrast" || s.Related() {
			continue // a user's, which says nothing of two steps
		}
		columns := []int{3, 9}[i/2%2]
		g := newGraph(uint64(i), 11, columns)
		m := newModel(t, s, columns)
		w := weights(m, uint64(i))
		for _, device := range devices {
			if device.Type() == tensor.F32 && i%3 > 0 {
				continue
			}
			for _, sparse := range []bool{false, true} {
				r := newRun(t, device, m, w)
				r.Gradients = tensor.Matrix{}
				want := slices.Clone(r.stages(g, sparse))
				if got := r.divided(t, g, sparse); !slices.Equal(got, want) {
					t.Errorf("%s, sparse %v, on %s: %v, and in two steps %v", name, sparse, device.Name(), want, got)
				}
			}
		}
	}
}

// What both steps take is what is forecast.
func TestForecastOfDividedStages(t *testing.T) {
	for _, s := range specs() {
		m := newModel(t, s, 9)
		for i, info := range m.Stages() {
			d, ok := m.Divide(i, false)
			if !ok {
				continue
			}
			one, _ := m.ForecastSum(i, nn.InputSize{Rows: 1000}, nn.Size{Targets: 1000, Sources: 5000, Entries: 9000})
			more, _ := m.ForecastSum(i, nn.InputSize{Rows: 1000}, nn.Size{Targets: 1000, Sources: 50000, Entries: 90000})
			if one < 4*1000*info.Out || one != more {
				t.Errorf("%s: the sums of %d columns take %d bytes, and %d of more sources", info.Name, info.Out, one, more)
			}
			if few, many := m.ForecastCarry(i, nn.InputSize{Rows: 1000}), m.ForecastCarry(i, nn.InputSize{Rows: 2000}); d.Carried > 0 && (few > many || few > 4*1000*(d.Carried+info.In)+1024) {
				t.Errorf("%s: to carry %d columns takes %d bytes, and %d for twice as many rows", info.Name, d.Carried, few, many)
			}
		}
	}
}

// A stage takes as much memory as the first that is like it, and most are like another.
func TestStagesThatAreLike(t *testing.T) {
	for _, name := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn"} {
		spec := nn.Defaults(name)
		spec.Layers, spec.Hidden = 8, 12
		m, err := nn.New(spec, 12, 12)
		if err != nil {
			t.Fatal(err)
		}
		alike := 0
		for s, stage := range m.Stages() {
			like := m.Like(s)
			if like == s {
				continue
			}
			alike++
			size := nn.Size{Sources: 700, Targets: 300, Entries: 2000}
			if got, want := m.ForecastStage(like, nn.InputSize{}, size), m.ForecastStage(s, nn.InputSize{}, size); got != want {
				t.Errorf("%s: %s takes %d bytes, and stage %d, which is like it, %d", name, stage.Name, want, like, got)
			}
			if _, ok := m.Divide(s, false); !ok {
				continue
			}
			got, _ := m.ForecastSum(like, nn.InputSize{Rows: 300}, size)
			want, _ := m.ForecastSum(s, nn.InputSize{Rows: 300}, size)
			carried := m.ForecastCarry(like, nn.InputSize{Rows: 700}) - m.ForecastCarry(s, nn.InputSize{Rows: 700})
			if got != want || carried != 0 {
				t.Errorf("%s: sums of %s take %d bytes, and of stage %d %d; what edges carry differs by %d", name, stage.Name, want, like, got, carried)
			}
		}
		if alike < 4 {
			t.Errorf("%s: %d stages are like another", name, alike)
		}
	}
}
