package contract

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

var shapes = []tensor.Shape{tensor.NN, tensor.TN, tensor.NT}

// product is one case of MatMul: c is m x n, the sum runs over k.
type product struct {
	m, k, n int
	shape   tensor.Shape
	add     bool
	recipe
	numbers func(n int) []float64
}

func products(b *bench) {
	for _, shape := range shapes {
		for _, add := range []bool{false, true} {
			for _, r := range recipes() {
				b.product(product{17, 33, 47, shape, add, r, b.fine})
			}
			for range 30 {
				b.product(product{b.size(), b.size(), b.size(), shape, add, b.recipe(), b.fine})
			}
			for _, k := range []int{0, 1, 383, 384, 385, 769} {
				b.product(product{b.full(), k, b.full(), shape, add, b.recipe(), b.fine})
			}
			b.product(product{33, 47, 65, shape, add, b.recipe(), func(n int) []float64 { return b.wild(n, 1e15) }})
			b.product(product{65, 31, 17, shape, add, b.recipe(), func(n int) []float64 { return b.wild(n, 1e-15) }})
		}
	}
	for _, p := range []product{
		{m: 3001, k: 100, n: 70, shape: tensor.NN}, {m: 2050, k: 33, n: 130, shape: tensor.NT},
		{m: 33, k: 20011, n: 47, shape: tensor.TN}, {m: 130, k: 2500, n: 65, shape: tensor.TN, add: true},
		{m: 5003, k: 7, n: 3, shape: tensor.NN, add: true}, {m: 1, k: 9001, n: 1, shape: tensor.NT},
		{m: 2, k: 5, n: 6007, shape: tensor.NN}, {m: 6007, k: 2, n: 1, shape: tensor.TN},
	} {
		p.recipe, p.numbers = b.recipe(), b.fine
		b.product(p)
	}
}

func (b *bench) product(p product) {
	title := fmt.Sprintf("MatMul %s of %d x %d x %d, add %v, %s", [...]string{"NN", "TN", "NT"}[p.shape], p.m, p.k, p.n, p.add, p.recipe)
	b.try(title, func() {
		ar, ac, br, bc := p.m, p.k, p.k, p.n
		switch p.shape {
		case tensor.TN:
			ar, ac = ac, ar
		case tensor.NT:
			br, bc = bc, br
		}
		x := b.in("a", b.native(), ar, ac, p.numbers(ar*ac))
		y := b.in("b", b.native(), br, bc, p.numbers(br*bc))
		c := b.result("c", p.m, p.n, p.add)
		e := b.ending(p.recipe, p.m, p.n)
		c.slack = e.slack()
		b.terms(func(s side) { s.MatMul(s.of(c), s.of(x), s.of(y), p.shape, p.add, s.epilogue(e)) })
	})
}

// result returns an output operand, one that is added to if add is set.
func (b *bench) result(name string, rows, cols int, add bool) *operand {
	if add {
		return b.inout(name, b.native(), rows, cols, b.fine(rows*cols))
	}
	return b.out(name, b.native(), rows, cols)
}
