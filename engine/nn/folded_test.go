package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	shards "github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

// wide is a graph of three types whose few targets, the first vertices, hear many sources: two of
// the types are such sources, one of them without features.
var wide = &shards.Types{
	Vertices: []shards.VertexType{
		{Name: "a", Vertices: 4, Features: 2}, {Name: "b", Vertices: 150, First: 2, Features: 3}, {Name: "c", Vertices: 150, First: 5, Features: 1, Bare: true},
	},
	Relations: []shards.Relation{
		{Source: "b", Name: "to", Target: "a"}, {Source: "c", Name: "to", Target: "a"}, {Source: "a", Name: "by", Target: "a"}, {Source: "a", Name: "to", Target: "c"},
	},
}

// wideGraph returns its features and its edges. Vertex 3 hears none, and nothing is of the last relation.
func wideGraph(t *testing.T) (*graph, *sample.Topology) {
	t.Helper()
	const n = 304
	r := rand.New(rand.NewPCG(3, 4))
	g := &graph{n: n, columns: 6, x: make([]float64, 6*n), labels: make([]int32, n)}
	for v := range n {
		of := wide.Vertices[0]
		if v >= 4 {
			of = wide.Vertices[1+v%2]
		}
		for i := range of.Features {
			x := 1.0
			if !of.Bare {
				x = float64(float32(r.NormFloat64()))
			}
			g.x[6*v+of.First+i] = x
		}
		g.labels[v] = int32(v % classes)
	}
	s := &shards.Shard{Shards: 1, Vertices: n, Total: n, Indptr: make([]int64, 1, n+1)}
	s.Related = &shards.Related{Count: len(wide.Relations), Types: wide}
	for v := range n {
		for u := range n {
			switch {
			case v > 2:
				continue
			case u < 4 && u != v:
				s.Related.Of = append(s.Related.Of, 2)
			case u >= 4 && u%3 == v && (v != 2 || u%2 == 1):
				s.Related.Of = append(s.Related.Of, float32(u%2))
			default:
				continue
			}
			s.Indices = append(s.Indices, int32(u))
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	top, err := sample.NewTopology([]*shards.Shard{s})
	if err != nil {
		t.Fatal(err)
	}
	return g, top
}

// wideBlocks are those of a pass over it.
func wideBlocks(t *testing.T, top *sample.Topology, m *nn.Model) ([]sample.Block, []uint32) {
	t.Helper()
	roots, b := []uint32{1, 3, 0}, sample.Batch{}
	s := sample.New(top, sample.Options{Fanouts: []int{2, 0}[2-m.Hops():], Form: m.Form()})
	if err := s.Sample(t.Context(), &b, 1, 1, roots); err != nil {
		t.Fatal(err)
	}
	for i := range b.Blocks {
		b.Blocks[i].Transpose()
	}
	return b.Blocks, roots
}

// foldedSpecs are models whose rows of sources are not mapped over such blocks.
func foldedSpecs() (all []nn.Spec) {
	for i := range 8 {
		s := nn.Defaults("rgcn")
		s.Relations, s.Hidden, s.Layers, s.Bases = 4, 4, 1+i%2, i/2%2*2
		s.Dropout, s.InputDropout = 0.3*float64(i/4), 0.3*float64(i/4)
		if s.Norm = nn.NormNone; i > 4 {
			s.Norm, s.Head = nn.NormLayer, nn.HeadLinear
		}
		all = append(all, s)
	}
	return all
}

// tallest notes the most rows of a product, and how many products there are.
type tallest struct {
	tensor.Device
	rows, products int
}

func (d *tallest) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	d.rows, d.products = max(d.rows, a.Rows), d.products+1
	d.Device.MatMul(c, a, b, shape, add, e)
}

// TestRowsOfManySourcesAreNotMapped compares a pass over a block of few targets, in which no product
// has a row for each source, with one stage after another, and each gradient with the slope of the loss.
func TestRowsOfManySourcesAreNotMapped(t *testing.T) {
	g, top := wideGraph(t)
	for i, s := range foldedSpecs() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, s, g.columns)
			bs, roots := wideBlocks(t, top, m)
			w, device := weights(m, uint64(i)), &tallest{Device: ref()}
			r := newRun(t, device, m, w)
			in, labels := g.input(device, bs[0].Vertices, false), g.labelsOf(roots)
			r.loss(bs, in, labels, true)
			if sources := bs[0].Cols; sources < 200 || device.rows >= sources {
				t.Errorf("there are %d sources, and a product of %d rows", sources, device.rows)
			}
			got := r.read(r.Gradients)
			for _, p := range m.Params() {
				seen := 0.0
				for j := p.Offset; j < p.Offset+p.Rows*p.Cols; j++ {
					seen += math.Abs(got[j])
					at := func(x float64) float64 {
						before := w[j]
						defer func() { w[j] = before }()
						w[j] = x
						device.Write(r.Weights, w)
						return r.loss(bs, in, labels, false)
					}
					slope := 0.0
					for _, h := range []float64{1e-5, 1e-6, 1e-7} {
						if slope = (at(w[j]+h) - at(w[j]-h)) / (2 * h); near(got[j], slope, 1e-6, 1e-8) {
							break
						}
					}
					if !near(got[j], slope, 1e-6, 1e-8) {
						t.Fatalf("%s[%d]: gradient %v, slope %v", p.Name, j-p.Offset, got[j], slope)
					}
				}
				if seen == 0 {
					t.Errorf("all gradients of %s are 0", p.Name)
				}
			}
			device.Write(r.Weights, w)
			r.Train, r.Gradients = false, tensor.Matrix{}
			logits := slices.Clone(r.read(r.Forward(bs, in)))
			x, rest := tensor.Matrix{}, bs
			for j, stage := range m.Stages() {
				var b *sample.Block
				if stage.Hops > 0 {
					b, rest = &rest[0], rest[1:]
				}
				x, _ = r.Stage(j, b, in, x, tensor.Matrix{})
			}
			mustNear(t, "logits", logits, r.read(x), 1e-12)
		})
	}
}

// TestKnownFeaturesOfSourcesChangeNoBit has it computed with and without what is known of which
// features sources have, by one thread and three, and on a device with memory of its own. Memory is as
// forecast, and nothing is allocated. With thousands of columns bits may differ, as long sums are added up
// in parts.
func TestKnownFeaturesOfSourcesChangeNoBit(t *testing.T) {
	g, top := wideGraph(t)
	for i, s := range foldedSpecs() {
		m := newModel(t, s, g.columns)
		bs, roots := wideBlocks(t, top, m)
		if len(bs[0].Related.Columns) != s.Relations {
			t.Fatalf("%d relations have known features", len(bs[0].Related.Columns))
		}
		var want []float64
		for name, device := range map[string]tensor.Device{"one thread": cpu.New(1), "three threads": cpu.New(3), "another device": foreign.New(2)} {
			t.Cleanup(device.Close) // after its arenas
			for _, known := range []bool{true, false} {
				r := newRun(t, device, m, weights(m, uint64(i)))
				bs := slices.Clone(bs)
				if !known {
					of := *bs[0].Related
					of.Columns, of.Each = nil, nil
					bs[0].Related = &of
				}
				in := g.input(device, bs[0].Vertices, false)
				if _, is := device.(tensor.Foreign); is {
					host := in.Dense
					in.Dense = newArena(t, device).Alloc(tensor.F32, host.Rows, host.Cols)
					device.Write32(in.Dense, host.F32())
				}
				r.loss(bs, in, g.labelsOf(roots), true)
				if got := r.read(r.Gradients); want == nil {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%d: other gradients by %s, features known %v", i, name, known)
				}
			}
		}
		device := dry.New(tensor.F32)
		arena := &counter{Arena: device.Arena()}
		p := m.NewPass(device, arena)
		p.Weights, p.Gradients, p.Train = arena.Arena.Alloc(tensor.F32, 1, m.Size()), arena.Arena.Alloc(tensor.F32, 1, m.Size()), true
		in, sizes := g.input(device, bs[0].Vertices, false), []nn.Size{}
		for _, b := range bs {
			sizes = append(sizes, nn.Size{Targets: b.Rows, Sources: b.Cols, Entries: b.Entries()})
		}
		p.Backward(p.Forward(bs, in))
		most, _ := m.Forecast(nn.InputSize{Rows: bs[0].Cols}, sizes)
		if counted := counts(m, g.columns, sizes); arena.bytes != counted || counted > most {
			t.Errorf("%d: %d bytes were forecast, %d counted, and %d taken", i, most, counted, arena.bytes)
		}
		if n := testing.AllocsPerRun(5, func() { p.Backward(p.Forward(bs, in)) }); n != 0 {
			t.Errorf("%d: a step allocates %g times", i, n)
		}
	}
}

// counts returns how many bytes a pass over blocks of these sizes and no others takes.
func counts(m *nn.Model, features int, sizes []nn.Size) int {
	device := dry.New(tensor.F32)
	beside, arena := device.Arena(), device.Arena()
	p := m.NewPass(device, arena)
	p.Weights, p.Gradients, p.Train = beside.Alloc(tensor.F32, 1, m.Size()), beside.Alloc(tensor.F32, 1, m.Size()), true
	p.Backward(p.Forward(nn.Unseen(sizes), nn.Input{Dense: beside.Alloc(tensor.F32, sizes[0].Sources, features)}))
	return arena.Bytes()
}

// TestForecastHoldsForBatchesOfAboutTheSize has batches that are forecast, and others that are no larger
// by more than a tenth, on both sides of the size from which rows of sources are not mapped.
func TestForecastHoldsForBatchesOfAboutTheSize(t *testing.T) {
	const margin = 1.1 // a run has that much more than is forecast
	batch := func(targets int, each float64) []nn.Size {
		sources := int(each * float64(targets))
		return []nn.Size{{Targets: targets, Sources: sources, Entries: 2 * sources}, {Targets: targets / 10, Sources: targets, Entries: targets}}
	}
	differ := false
	for _, features := range []int{32, 128, 476} {
		for _, hidden := range []int{16, 64, 256} {
			s := nn.Defaults("rgcn")
			s.Relations, s.Hidden, s.Layers = 4, hidden, 2
			m := newModel(t, s, features)
			for _, each := range []float64{3.7, 4.1, 4.4, 5, 8, 40} {
				for _, targets := range []int{300, 3000} {
					sizes := batch(targets, each)
					bytes, _ := m.Forecast(nn.InputSize{Rows: sizes[0].Sources}, sizes)
					differ = differ || counts(m, features, sizes) < bytes
					for at := 1.0; at > 0.02; at *= 0.93 {
						for _, of := range []float64{0.91, 1, 1.09} {
							smaller := int(at * float64(targets) / max(1, of)) // with no more sources
							if takes := counts(m, features, batch(smaller, each*of)); float64(takes) > margin*float64(bytes) {
								t.Errorf("%d features, %d hidden: a batch of %d targets with %.1f sources for each takes %d bytes, and %d were forecast by one of %d", features, hidden, smaller, each*of, takes, bytes, targets)
							}
						}
					}
				}
			}
		}
	}
	if !differ {
		t.Error("no other batch takes more than one that is forecast")
	}
}
