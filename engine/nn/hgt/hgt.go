// Package hgt has the convolution of the Heterogeneous Graph Transformer (Hu et al., WWW 2020, arXiv
// 2003.01332): each vertex attends over its in-edges of all relations at once, with weights by type
// of vertex and by relation. Importing it makes the kind of model known to package nn.
//
// It follows HGTConv of PyTorch Geometric, and so pyHGT without relative temporal encoding: keys,
// queries and values are linear maps by type, keys and values then go through a matrix of each head
// by relation, scores count by a number of each head and relation, and what a vertex gathers goes
// through GELU, a linear map by its type, and a gate by its type that keeps a part of the vertex' own
// row. Relations are those between two types: two relations of one name have weights of their own,
// as in PyG. Differences: GELU is x * sigmoid(1.702 x), as its authors approximate it; a vertex
// without in-edges keeps its row, since blocks carry no types; dropout is that of rows behind the
// layer, as in other models, and LayerNorm has one weight for all types.
//
// Its weights are keys.weight, queries.weight, values.weight and output.weight, with biases, and skip,
// of all types one below another, and relations.attention, relations.message and relations.prior of
// all relations, head by head.
//
// It is written in the operations that devices have. A softmax over two scores, one of which is 0,
// is a sigmoid of the other: so GELU and the gate are attention over two rows. Price: some rows of
// each edge in memory, as in package edgewise.
package hgt

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

func init() { nn.Register("hgt", nn.Typed(newLayer)) }

// steep is by how much GELU's sigmoid is steeper than others.
const steep = 1.702

// layer is the convolution. Rows that come in are as wide as those that go out, as the gate adds
// them.
type layer struct {
	columns, heads, width int // width is that of a head
	relations, types      int
	begin, end            []uint8   // the types at which relations begin and end; nil: all at one
	spread                []float64 // heads x columns: 1/sqrt(width) in the columns of each head
}

func newLayer(s nn.Spec, p nn.Place) nn.Conv {
	l := &layer{columns: p.Out, heads: s.Heads, width: p.Out / s.Heads, relations: max(1, s.Relations), types: 1}
	l.begin, _ = sample.ParseEnds(s.Starts, l.relations) // the model has checked both
	l.end, _ = sample.ParseEnds(s.Ends, l.relations)
	for _, of := range slices.Concat(l.begin, l.end) {
		l.types = max(l.types, int(of)+1)
	}
	l.spread = make([]float64, l.heads*l.columns)
	for i := range l.columns {
		l.spread[i/l.width*l.columns+i] = 1 / math.Sqrt(float64(l.width))
	}
	return l
}

// The places of its weights. Those of types, of relations and of heads stand one below another.
const (
	keys = iota
	keysBias
	queries
	queriesBias
	values
	valuesBias
	attention // of each relation and head
	message   // of each relation and head
	prior     // how much each head of a relation counts
	output
	outputBias
	skip
)

func (l *layer) Weights() []nn.Weight {
	n := l.columns
	all := make([]nn.Weight, 0, skip+1)
	linear := func(name string) {
		all = append(all, nn.Weight{Name: name + ".weight", Rows: l.types * n, Cols: n, Initial: nn.Fan(n)},
			nn.Weight{Name: name + ".bias", Rows: l.types, Cols: n, Initial: nn.Fan(n)})
	}
	linear("keys")
	linear("queries")
	linear("values")
	each := nn.Glorot(l.width, l.width)
	all = append(all, nn.Weight{Name: "relations.attention", Rows: l.relations * n, Cols: l.width, Initial: each},
		nn.Weight{Name: "relations.message", Rows: l.relations * n, Cols: l.width, Initial: each},
		nn.Weight{Name: "relations.prior", Rows: l.relations, Cols: l.heads, Initial: nn.Ones})
	linear("output")
	return append(all, nn.Weight{Name: "skip", Rows: l.types, Cols: 1, Initial: nn.Ones})
}

func (l *layer) Words(use func(string) string) string {
	types := "all relations begin at type 0"
	if l.begin != nil {
		types = fmt.Sprintf("relation i begins at the ith of the types %v", l.begin)
	}
	return fmt.Sprintf("Weights of types, of relations and of heads stand one below another. %d heads have %d columns each, side by side; %s. ", l.heads, l.width, types) +
		"For an edge of relation r from u to v, and each head: k = its columns of x(u) * " + use("keys.weight") + " + " + use("keys.bias") + ", by the type at which r begins, times its matrix of r in " + use("relations.attention") +
		". q = its columns of x(v) * " + use("queries.weight") + " + " + use("queries.bias") + ", by the type at which r ends" +
		". m = its columns of x(u) * " + use("values.weight") + " + " + use("values.bias") + ", by the type at which r begins, times its matrix of r in " + use("relations.message") +
		fmt.Sprintf(". score = k . q * %s[r, head] / sqrt(%d)", use("relations.prior"), l.width) +
		". a of v = the sum of share * m over its in-edges of all relations, share = softmax of their scores. g = a * sigmoid(1.702 * a) (GELU). z = g * " + use("output.weight") + " + " + use("output.bias") +
		", s = sigmoid(" + use("skip") + "), both by the type at which relations to v end. y = s * z + (1 - s) * x, or x where v has no in-edges at all."
}

// none stands for no matrix.
var none tensor.Matrix

// of returns the type of a relation's end.
func of(ends []uint8, relation int) int {
	if ends == nil {
		return 0
	}
	return int(ends[relation])
}

// ranges calls do with each group that has rows, and with these.
func ranges(firsts []int, do func(group, first, rows int)) {
	for i := range len(firsts) - 1 {
		if n := firsts[i+1] - firsts[i]; n > 0 {
			do(i, firsts[i], n)
		}
	}
}

// ofType returns the weight of a type, among those of all.
func (l *layer) ofType(w tensor.Matrix, kind int) tensor.Matrix {
	rows := w.Rows / l.types
	return w.RowRange(kind*rows, rows)
}

// linear computes rows of y by the weights of a type.
func (l *layer) linear(c *nn.Call, y, x tensor.Matrix, weight, kind int) {
	bias := l.ofType(c.Weight(weight+1), kind)
	c.Device.MatMul(y, x, l.ofType(c.Weight(weight), kind), tensor.NN, false, c.Epilogue(tensor.Epilogue{Bias: bias}))
}

// linearBack adds to the gradients of linear's weights.
func (l *layer) linearBack(c *nn.Call, dy, x tensor.Matrix, weight, kind int) {
	c.Device.MatMul(l.ofType(c.Gradient(weight), kind), x, dy, tensor.TN, true, nil)
	c.Device.ColumnSums(l.ofType(c.Gradient(weight+1), kind), dy)
}

// ofHead returns the columns of a head.
func (l *layer) ofHead(m tensor.Matrix, head int) tensor.Matrix {
	return m.View(0, m.Rows, head*l.width, l.width)
}

// ofRelation returns the matrix of a head and a relation.
func (l *layer) ofRelation(w tensor.Matrix, relation, head int) tensor.Matrix {
	return w.RowRange(relation*l.columns+head*l.width, l.width)
}

// both returns the two parts of a weight with its bias as a last row.
func both(w tensor.Matrix) (weight, bias tensor.Matrix) {
	return w.RowRange(0, w.Rows-1), w.RowRange(w.Rows-1, 1)
}

// combine sets to to the map of a relation: that of the type at which it begins, and then that of the
// relation itself. Edges have few sources in common, so that rows are multiplied once and not twice.
func (l *layer) combine(c *nn.Call, to tensor.Matrix, weight, by, relation int) {
	kind := of(l.begin, relation)
	w, b := both(to)
	for h := range l.heads {
		r := l.ofRelation(c.Weight(by), relation, h)
		c.Device.MatMul(l.ofHead(w, h), l.ofHead(l.ofType(c.Weight(weight), kind), h), r, tensor.NN, false, nil)
		c.Device.MatMul(l.ofHead(b, h), l.ofHead(l.ofType(c.Weight(weight+1), kind), h), r, tensor.NN, false, nil)
	}
}

// combineBack adds to the gradients of both maps, given that of the map of a relation.
func (l *layer) combineBack(c *nn.Call, dto tensor.Matrix, weight, by, relation int) {
	kind := of(l.begin, relation)
	dw, db := both(dto)
	for h := range l.heads {
		r, dr := l.ofRelation(c.Weight(by), relation, h), l.ofRelation(c.Gradient(by), relation, h)
		for i, d := range [...]tensor.Matrix{dw, db} {
			own, down := l.ofType(c.Weight(weight+i), kind), l.ofType(c.Gradient(weight+i), kind)
			c.Device.MatMul(l.ofHead(down, h), l.ofHead(d, h), r, tensor.NT, true, nil)
			c.Device.MatMul(dr, l.ofHead(own, h), l.ofHead(d, h), tensor.TN, true, nil)
		}
	}
}

// atOnce is how many elements are multiplied at once: devices count rows in 32 bits.
const atOnce = 1 << 30

// times computes y = a*b element by element. y may be a or b.
func times(c *nn.Call, y, a, b tensor.Matrix) {
	all := a.Rows * a.Cols
	y, a, b = y.Reshape(all, 1), a.Reshape(all, 1), b.Reshape(all, 1)
	for first := 0; first < all; first += atOnce {
		n := min(atOnce, all-first)
		c.Device.ScaleRows(y.RowRange(first, n), a.RowRange(first, n), b.RowRange(first, n))
	}
}
