package nn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// dense is a matrix by rows; all that follows is written from the papers' formulas
// over dense matrices of all vertices, and shares nothing with the package.
type dense [][]float64

func zeros(rows, cols int) dense {
	m := make(dense, rows)
	for i := range m {
		m[i] = make([]float64, cols)
	}
	return m
}

func (a dense) times(b dense) dense {
	c := zeros(len(a), len(b[0]))
	for i := range a {
		for k, x := range a[i] {
			for j := range b[k] {
				c[i][j] += x * b[k][j]
			}
		}
	}
	return c
}

// with is f of the elements of two matrices; b may have one row.
func (a dense) with(b dense, f func(x, y float64) float64) dense {
	c := zeros(len(a), len(a[0]))
	for i := range a {
		for j := range a[i] {
			c[i][j] = f(a[i][j], b[i%len(b)][j])
		}
	}
	return c
}

func (a dense) plus(b dense) dense {
	return a.with(b, func(x, y float64) float64 { return x + y })
}

func (a dense) each(f func(float64) float64) dense {
	return a.with(a, func(x, _ float64) float64 { return f(x) })
}

func relu(x float64) float64 { return max(x, 0) }

func elu(x float64) float64 {
	if x < 0 {
		return math.Exp(x) - 1
	}
	return x
}

func leaky(x float64) float64 {
	if x < 0 {
		return float64(float32(0.2)) * x
	}
	return x
}

// layerNorm takes gamma and beta.
func (a dense) layerNorm(gamma, beta dense) dense {
	c := zeros(len(a), len(a[0]))
	for i, row := range a {
		mean, variance := 0.0, 0.0
		for _, x := range row {
			mean += x / float64(len(row))
		}
		for _, x := range row {
			variance += (x - mean) * (x - mean) / float64(len(row))
		}
		for j, x := range row {
			c[i][j] = (x-mean)/math.Sqrt(variance+1e-5)*gamma[0][j] + beta[0][j]
		}
	}
	return c
}

// A naive is a model with its weights by name.
type naive struct {
	nn.Spec
	g *graph
	w map[string]dense

	byRelation bool // it is the layer of one relation
}

func newNaive(m *nn.Model, g *graph, w []float64) *naive {
	n := &naive{Spec: m.Spec(), g: g, w: map[string]dense{}}
	for _, p := range m.Params() {
		d := zeros(p.Rows, p.Cols)
		for i := range p.Rows * p.Cols {
			d[i/p.Cols][i%p.Cols] = w[p.Offset+i]
		}
		n.w[p.Name] = d
	}
	return n
}

// adjacency is a number for each edge, its target first; loop says what a vertex is
// to itself.
func (n *naive) adjacency(loop bool, value func(t, u int, weight float64) float64) dense {
	a := zeros(n.g.n, n.g.n)
	for t := range a {
		for i, u := range n.g.in[t] {
			a[t][u] = value(t, u, n.g.weight[t][i])
		}
		if loop {
			a[t][t] = value(t, t, 1)
		}
	}
	return a
}

func (n *naive) loops(auto bool) bool {
	return auto && n.SelfLoops != nn.LoopsOff || n.SelfLoops == nn.LoopsOn
}

func (n *naive) symmetric() dense {
	loop := n.loops(true)
	return n.adjacency(loop, func(t, u int, w float64) float64 {
		f := sample.Form{SelfLoops: loop}
		return float64(float32(w * (n.g.inverse(t, f) * n.g.inverse(u, f))))
	})
}

func (n *naive) mean(loop bool) dense {
	return averaged(n.adjacency(loop, func(int, int, float64) float64 { return 1 }))
}

// averaged divides each row by its sum, if that is not 0.
func averaged(a dense) dense {
	for t := range a {
		count := 0.0
		for _, x := range a[t] {
			count += x
		}
		for u := range a[t] {
			a[t][u] /= max(count, 1)
		}
	}
	return a
}

// conv is a layer with its bias, and nothing around it.
func (n *naive) conv(k int, x, h0 dense) dense {
	at := fmt.Sprintf("layers.%d.", k)
	w := func(name string) dense { return n.w[at+name] }
	var y dense
	if strings.HasPrefix(n.Model, "hetero:") {
		return n.hetero(k, x)
	}
	switch n.Model {
	case "gcn":
		if n.byRelation {
			y = n.mean(false).times(x.times(w("weight")))
			break
		}
		y = n.symmetric().times(x).times(w("weight"))
	case "sage", "resgcn":
		switch n.Aggregator {
		case "gcn":
			y = n.mean(true).times(x).times(w("weight"))
		case "max":
			y = n.largest(x).times(w("weight")).plus(x.times(w("root.weight")))
		default:
			y = n.mean(n.loops(false)).times(x).times(w("weight")).plus(x.times(w("root.weight")))
		}
	case "gin":
		sum := n.adjacency(n.loops(false), func(_, _ int, w float64) float64 { return float64(float32(w)) }).times(x).plus(x)
		y = sum.times(w("inner.weight")).plus(w("inner.bias")).each(relu).times(w("weight"))
	case "gcnii":
		beta := math.Log(n.Theta/float64(k+1) + 1)
		t := n.symmetric().times(x).with(h0, func(p, h float64) float64 { return (1-n.Alpha)*p + n.Alpha*h })
		return t.with(t.times(w("weight")), func(t, tw float64) float64 { return (1-beta)*t + beta*tw })
	case "gat":
		y = n.attention(k, x)
	case "rgcn":
		y = n.related(x, w("weight"), w("bases.weight"), w("bases.shares")).plus(x.times(w("root.weight")))
	case "contrast":
		y = n.mean(n.loops(false)).times(x).with(x, func(m, x float64) float64 { return m - x }).times(w("weight"))
	case "mlp":
		y = x.times(w("weight"))
	}
	if b := w("bias"); b != nil {
		y = y.plus(b)
	}
	return y
}

func (n *naive) largest(x dense) dense {
	a := n.adjacency(n.loops(false), func(int, int, float64) float64 { return 1 })
	y := zeros(len(x), len(x[0]))
	for t := range y {
		for j := range y[t] {
			found := false
			for u := range a[t] {
				if a[t][u] != 0 && (!found || x[u][j] > y[t][j]) {
					y[t][j], found = x[u][j], true
				}
			}
		}
	}
	return y
}

func (n *naive) attention(k int, x dense) dense {
	at := fmt.Sprintf("layers.%d.", k)
	w := func(name string) dense { return n.w[at+name] }
	answers := n.Head == nn.HeadNone && k == n.Layers-1
	heads := n.Heads
	if answers {
		heads = n.OutHeads
	}
	var from, to, a dense
	if n.Version == 2 {
		from, to, a = x.times(w("source.weight")), x.times(w("target.weight")), w("attention")
		if b := w("source.bias"); b != nil {
			from, to = from.plus(b), to.plus(w("target.bias"))
		}
	} else {
		from = x.times(w("weight"))
	}
	width := len(from[0]) / heads
	adjacent := n.adjacency(n.loops(true), func(int, int, float64) float64 { return 1 })
	y := zeros(n.g.n, len(from[0]))
	for t := range y {
		for h := range heads {
			score := func(u int) (s float64) {
				for j := h * width; j < (h+1)*width; j++ {
					if n.Version == 2 {
						s += a[0][j] * leaky(from[u][j]+to[t][j])
					} else {
						s += w("attention.source")[0][j]*from[u][j] + w("attention.target")[0][j]*from[t][j]
					}
				}
				if n.Version == 2 {
					return s
				}
				return leaky(s)
			}
			sum := 0.0
			for u := range adjacent[t] {
				sum += adjacent[t][u] * math.Exp(score(u))
			}
			for u := range adjacent[t] {
				for j := h * width; j < (h+1)*width && adjacent[t][u] != 0; j++ {
					y[t][j] += math.Exp(score(u)) / sum * from[u][j]
				}
			}
		}
	}
	if !answers {
		return y
	}
	averaged := zeros(n.g.n, width)
	for t := range y {
		for j, v := range y[t] {
			averaged[t][j%width] += v / float64(heads)
		}
	}
	return averaged
}

// logits are those of all vertices.
// related is the sum over relations of the neighbours' means times the weight of the relation.
func (n *naive) related(x, stacked, bases, shares dense) dense {
	in := len(x[0])
	var y dense
	for r := range n.Relations {
		var w dense
		if bases == nil {
			w = stacked[r*in:][:in]
		} else {
			w = zeros(in, len(bases[0]))
			for b := range shares[r] {
				w = w.with(bases[b*in:][:in], func(x, y float64) float64 { return x + shares[r][b]*y })
			}
		}
		means := averaged(n.adjacency(false, func(t, u int, _ float64) float64 {
			if relationOf(t, u, n.Relations) == r {
				return 1
			}
			return 0
		}))
		if part := means.times(x).times(w); y == nil {
			y = part
		} else {
			y = y.plus(part)
		}
	}
	return y
}

// hetero is the sum or mean, over the relations that end at the type of a vertex, of a layer of each.
func (n *naive) hetero(k int, x dense) dense {
	at := fmt.Sprintf("layers.%d.", k)
	reached, sum := zeros(len(x), 1), dense(nil)
	total := zeros(len(x), 1) // of what shares are by attention
	for r := range n.Relations {
		one := &naive{Spec: n.Spec, w: map[string]dense{}, byRelation: true}
		one.Model, one.SelfLoops = strings.TrimPrefix(n.Model, "hetero:"), nn.LoopsOff
		g := *n.g
		one.g, g.in, g.weight = &g, make([][]int, g.n), make([][]float64, g.n)
		for t, in := range n.g.in {
			for _, u := range in {
				if relationOf(t, u, n.Relations) == r {
					g.in[t], g.weight[t] = append(g.in[t], u), append(g.weight[t], 1)
				}
			}
		}
		for name, w := range n.w {
			if own, of := strings.CutPrefix(name, at+"relations."); of {
				rows := len(w) / n.Relations
				one.w[at+own] = w[r*rows:][:rows]
			}
		}
		y := one.conv(k, x, nil)
		if sum == nil {
			sum = zeros(len(x), len(y[0]))
		}
		for t, row := range y {
			if n.Ends != "" && (len(n.g.in[t]) == 0 || r%2 != t%2) { // all specs end so
				continue
			}
			share := 1.0
			if n.Across == nn.AcrossAttend {
				score := 0.0
				for j, v := range row {
					score += v * n.w[at+"across.attention"][0][j]
				}
				share = math.Exp(leaky(score))
			}
			reached[t][0]++
			total[t][0] += share
			for j, v := range row {
				sum[t][j] += share * v
			}
		}
	}
	if n.Across == nn.AcrossAttend {
		for t, row := range sum {
			for j := range row {
				row[j] /= max(total[t][0], math.SmallestNonzeroFloat64)
			}
		}
	}
	if n.Across == nn.AcrossMean {
		for t, row := range sum {
			for j := range row {
				row[j] /= max(reached[t][0], 1)
			}
		}
	}
	return sum
}

func (n *naive) logits() dense {
	x := zeros(n.g.n, n.g.columns)
	for i, v := range n.g.x {
		x[i/n.g.columns][i%n.g.columns] = v
	}
	var h0 dense
	if e := n.w["encoder.weight"]; e != nil {
		x = x.times(e).plus(n.w["encoder.bias"])
		if n.Model == "gcnii" {
			x = x.each(relu)
		}
		h0 = x
	}
	var collected []dense
	for k := range n.Layers {
		at := fmt.Sprintf("layers.%d.", k)
		if n.Model == "resgcn" {
			if k == 0 {
				x = n.conv(k, x, nil)
			} else {
				x = x.plus(n.conv(k, x.layerNorm(n.w[at+"norm.weight"], n.w[at+"norm.bias"]).each(relu), nil))
			}
			continue
		}
		y := n.conv(k, x, h0)
		if n.Head == nn.HeadNone && k == n.Layers-1 {
			return y
		}
		if n.Residual {
			y = y.plus(x.times(n.w[at+"residual.weight"]).plus(n.w[at+"residual.bias"]))
		}
		if n.Norm == nn.NormLayer {
			y = y.layerNorm(n.w[at+"norm.weight"], n.w[at+"norm.bias"])
		}
		f := relu
		if strings.HasSuffix(n.Model, "gat") && n.Head == nn.HeadNone {
			f = elu
		}
		x = y.each(f)
		collected = append(collected, x)
	}
	if n.Model == "resgcn" {
		x = x.layerNorm(n.w["head.norm.weight"], n.w["head.norm.bias"]).each(relu)
	}
	switch n.Jump {
	case nn.JumpMax:
		for _, c := range collected {
			x = x.with(c, math.Max)
		}
	case nn.JumpCat:
		all := make(dense, n.g.n)
		for _, c := range collected {
			for v := range all {
				all[v] = append(all[v], c[v]...)
			}
		}
		x = all
	}
	return x.times(n.w["head.weight"]).plus(n.w["head.bias"])
}

// rowsOf is what a pass over these vertices should return.
func (a dense) rowsOf(vertices []uint32) []float64 {
	var flat []float64
	for _, v := range vertices {
		flat = append(flat, a[v]...)
	}
	return flat
}

// TestAgainstFormulas compares a pass, and the stages one by one in parts of all
// vertices, with the formulas.
func TestAgainstFormulas(t *testing.T) {
	for i, s := range specs() {
		if s.Model != "resgcn" && i%3 == 0 {
			s.Layers++
		}
		if !(s.Model == "sage" && s.Aggregator == "gcn") && !s.Related() {
			s.SelfLoops = []string{nn.LoopsAuto, nn.LoopsOn, nn.LoopsOff}[i%3]
		}
		name, _ := json.Marshal(s)
		columns := []int{3, 9}[i/2%2]
		g := newGraph(uint64(i), 11, columns)
		m := newModel(t, s, columns)
		w := weights(m, uint64(i))
		want := newNaive(m, g, w).logits()
		r := newRun(t, ref(), m, w)
		r.Train = false
		for _, sparse := range []bool{false, true} {
			roots := []uint32{10, 3, 4, 9}
			bs := g.blocks(m, roots, 0)
			got := r.read(r.Forward(bs, g.input(r.device, first(bs, roots), sparse)))
			mustNear(t, fmt.Sprintf("%s, sparse %v", name, sparse), got, want.rowsOf(roots), 1e-9)

			bs, roots = g.wholes(m), g.all()
			if m.Hops() > 1 {
				roots = []uint32{4, 5, 6, 7}
				bs[m.Hops()-1] = g.block(roots, 0, m.Form(), true)
			}
			got = r.read(r.Forward(bs, g.input(r.device, g.all(), sparse)))
			mustNear(t, fmt.Sprintf("%s, sparse %v, of a part", name, sparse), got, want.rowsOf(roots), 1e-9)

			got = r.stages(g, sparse)
			mustNear(t, fmt.Sprintf("%s, sparse %v, by stages", name, sparse), got, want.rowsOf(g.all()), 1e-9)
		}
	}
}
