package edgewise_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/nn/nntest"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// TestFormulas compares logits with the published formulas, written down edge by edge.
func TestFormulas(t *testing.T) {
	for name, s := range models() {
		if s.Head == nn.HeadLinear {
			continue
		}
		world := newWorld(6)
		m, w := nntest.NewModel(t, s)
		var all []uint32
		for v := range vertices {
			all = append(all, uint32(v))
		}
		b := world.Batch(t, m, 0, all)
		r := nntest.NewRun(t, reference.New(), m, w)
		r.Train = false
		got := r.Read(r.Forward(b.Blocks, world.Input(r.Device, b.Blocks[0].Vertices)))
		x := make([][]float64, vertices)
		for v := range x {
			x[v] = world.X[v*nntest.Columns:][:nntest.Columns]
		}
		n := &naive{Graph: world, spec: s, w: w, params: m.Params()}
		for k := range s.Layers {
			x = n.layer(k, x)
		}
		for i, y := range got {
			if want := x[i/nntest.Classes][i%nntest.Classes]; !nntest.Near(y, want, 1e-6, 1e-6) {
				t.Fatalf("%s: logit %d is %v and not %v", name, i, y, want)
			}
		}
	}
}

type naive struct {
	*nntest.Graph
	spec   nn.Spec
	w      []float64
	params []nn.Param
	at     string
}

// weight returns an element of a weight.
func (n *naive) weight(name string, row, col int) float64 {
	for _, p := range n.params {
		if p.Name == n.at+name {
			return n.w[p.Offset+row*p.Cols+col]
		}
	}
	panic("there is no weight " + n.at + name)
}

func (n *naive) cols(name string) int {
	for _, p := range n.params {
		if p.Name == n.at+name {
			return p.Cols
		}
	}
	return 0
}

// times is a row times a weight, whose rows begin at first.
func (n *naive) times(row []float64, name string, first int) []float64 {
	y := make([]float64, n.cols(name))
	for c := range y {
		for r, x := range row {
			y[c] += x * n.weight(name, first+r, c)
		}
	}
	return y
}

func (n *naive) plus(a []float64, b []float64, bias string) []float64 {
	y := make([]float64, len(a))
	for c := range y {
		y[c] = a[c]
		if b != nil {
			y[c] += b[c]
		}
		if bias != "" {
			y[c] += n.weight(bias, 0, c)
		}
	}
	return y
}

func relu(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = max(x[i], 0)
	}
	return y
}

// An edge that leads to a vertex.
type edge struct {
	source   int
	weight   float64
	features []float64
}

// into returns the in-edges of a vertex, with an added self-loop.
func (n *naive) into(v int, loops bool) (edges []edge) {
	s, own := n.Shard, false
	mean := make([]float64, wide)
	for e := s.Indptr[v]; e < s.Indptr[v+1]; e++ {
		one := edge{source: int(s.Indices[e]), weight: float64(s.Weights[e])}
		for c, x := range s.EdgeRows.F32[e*wide:][:wide] {
			one.features = append(one.features, float64(x))
			mean[c] += float64(x)
		}
		own = own || one.source == v
		edges = append(edges, one)
	}
	if loops && !own {
		for c := range mean {
			mean[c] = float64(float32(mean[c] / max(1, float64(len(edges)))))
		}
		edges = append(edges, edge{source: v, weight: 1, features: mean})
	}
	return edges
}

func (n *naive) layer(k int, x [][]float64) [][]float64 {
	n.at = fmt.Sprintf("layers.%d.", k)
	y := make([][]float64, vertices)
	last := k == n.spec.Layers-1
	for v := range y {
		loops := n.spec.SelfLoops == nn.LoopsOn || n.spec.Model == "gat" && n.spec.SelfLoops != nn.LoopsOff
		edges := n.into(v, loops)
		switch n.spec.Model {
		case "gin":
			y[v] = n.gine(x, v, edges)
		case "mpnn":
			y[v] = n.mpnn(x, v, edges)
		default:
			y[v] = n.gat(x, v, edges, last)
		}
		switch {
		case last:
		case n.spec.Model == "gat":
			for i, z := range y[v] {
				if z < 0 {
					y[v][i] = math.Exp(z) - 1
				}
			}
		default:
			y[v] = relu(y[v])
		}
	}
	return y
}

// gine is what Hu et al. write, with the edges' features brought to the rows' width by a linear map.
func (n *naive) gine(x [][]float64, v int, edges []edge) []float64 {
	sum := append([]float64(nil), x[v]...)
	for _, e := range edges {
		for c, m := range relu(n.plus(x[e.source], n.times(e.features, "edges.weight", 0), "edges.bias")) {
			sum[c] += e.weight * m
		}
	}
	return n.plus(n.times(relu(n.plus(n.times(sum, "inner.weight", 0), nil, "inner.bias")), "weight", 0), nil, "bias")
}

func (n *naive) mpnn(x [][]float64, v int, edges []edge) []float64 {
	in := len(x[v])
	all := make([]float64, n.cols("message.weight"))
	for _, e := range edges {
		m := n.times(x[e.source], "message.weight", 0)
		if n.spec.EdgeFeatures > 0 {
			m = n.plus(m, n.times(e.features, "message.weight", in), "")
		}
		for c, m := range relu(n.plus(m, nil, "message.bias")) {
			if n.spec.Aggregator == "sum" {
				all[c] += e.weight * m
			} else {
				all[c] += m / float64(len(edges))
			}
		}
	}
	return n.plus(n.times(x[v], "weight", 0), n.times(all, "weight", in), "bias")
}

// gat is GATConv of PyTorch Geometric with edge_dim.
func (n *naive) gat(x [][]float64, v int, edges []edge, last bool) []float64 {
	heads := n.spec.Heads
	if last {
		heads = n.spec.OutHeads
	}
	width := n.cols("weight") / heads
	dot := func(row []float64, of string, h int) (sum float64) {
		for c := h * width; c < (h+1)*width; c++ {
			sum += row[c] * n.weight("attention."+of, 0, c)
		}
		return sum
	}
	own := n.times(x[v], "weight", 0)
	y := make([]float64, heads*width)
	for h := range heads {
		var exps []float64
		total := 0.0
		for _, e := range edges {
			s := dot(n.times(x[e.source], "weight", 0), "source", h) + dot(own, "target", h) + dot(n.times(e.features, "edges.weight", 0), "edge", h)
			if s < 0 {
				s *= nn.Slope
			}
			exps = append(exps, math.Exp(s))
			total += math.Exp(s)
		}
		for i, e := range edges {
			z := n.times(x[e.source], "weight", 0)
			for c := h * width; c < (h+1)*width; c++ {
				y[c] += exps[i] / total * z[c]
			}
		}
	}
	if last {
		mean := make([]float64, width)
		for c, z := range y {
			mean[c%width] += z / float64(heads)
		}
		y = mean
	}
	return n.plus(y, nil, "bias")
}
