package gemm

import (
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// small is the number of multiplications up to which a product stays on the calling
// goroutine.
const small = 1 << 19

// Gemm implements tensor.Products on a pool of workers.
type Gemm struct {
	pool    *workers.Pool
	kernels *kernels
	finish  func(y tensor.Matrix, first, n int, e *tensor.Epilogue)

	product
	packed   scratch // packed b
	aside    scratch // copies, per worker
	partials scratch // the sums of all parts of a long reduction but the first
}

// New allocates the scratch memory of products.
func New(pool *workers.Pool) *Gemm {
	return &Gemm{pool: pool, kernels: forFamily(family.Current()), finish: rows.Finish}
}

// SetBF16 sets whether a and b are rounded to BF16 before they are multiplied, which
// halves the time. Sums stay F32. It has no effect if the CPU does not support it.
func (g *Gemm) SetBF16(on bool) {
	g.kernels = forFamily(family.Current())
	if on && family.BF16() {
		g.kernels = forBF16()
	}
}

// A product is the current operation: each element of c, rows x columns, adds up depth
// products.
type product struct {
	c, a, b              tensor.Matrix
	rows, columns, depth int
	shape                tensor.Shape
	add                  bool
	epilogue             *tensor.Epilogue // nil: nothing
	strips               [maxStrips]strip
	cuts                 int  // number of strips
	padded               int  // columns of b, with the padding of panels, if it is packed
	copied               bool // rows of a are copied before use
	copiedB              bool // rows of b are copied before use
	parts, part          int  // number and length of the parts of a long reduction
	stripes              int  // of rows of c per part
	chunk                int  // rows of c computed at a time
}

// MatMul implements tensor.Products.
func (g *Gemm) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	g.product = describe(c, a, b, shape)
	g.add = add
	if e != nil && (!e.Bias.None() || e.Activation != tensor.Linear || e.Dropout.P != 0) {
		g.epilogue = e
	}
	switch {
	case g.rows == 0 || g.columns == 0:
	case g.depth == 0:
		g.nothing()
	default:
		g.cuts = len(cut(g.kernels.widths, g.columns, g.strips[:0]))
		if shape == tensor.TN {
			g.byParts()
		} else {
			g.byRows()
		}
	}
	g.product = product{} // keep no references to matrices
}

func describe(c, a, b tensor.Matrix, shape tensor.Shape) product {
	p := product{c: c, a: a, b: b, shape: shape, rows: a.Rows, depth: a.Cols, columns: b.Cols}
	depth := b.Rows
	switch shape {
	case tensor.TN:
		p.rows, p.depth = a.Cols, a.Rows
	case tensor.NT:
		p.columns, depth = b.Rows, b.Cols
	}
	if depth != p.depth || c.Rows != p.rows || c.Cols != p.columns {
		panic(fmt.Sprintf("gemm: %d x %d and %d x %d make no %d x %d", a.Rows, a.Cols, b.Rows, b.Cols, c.Rows, c.Cols))
	}
	if a.Type != tensor.F32 || b.Type != tensor.F32 || c.Type != tensor.F32 {
		panic(fmt.Sprintf("gemm: %v and %v make no %v", a.Type, b.Type, c.Type))
	}
	return p
}

// nothing is the product of an empty reduction.
func (g *Gemm) nothing() {
	if !g.add {
		for i := range g.rows {
			clear(unsafe.Slice(at(g.c, i, 0), g.columns))
		}
	}
	g.finishRows(0, g.rows)
}

// do runs the chunks of t, on this goroutine if they are too small for sharing.
func (g *Gemm) do(chunks int, t workers.Task) {
	if g.work() > small {
		g.pool.Run(chunks, t)
		return
	}
	for chunk := range chunks {
		t.Do(chunk, 0)
	}
}

// work returns the number of multiplications of the product.
func (p *product) work() int { return p.rows * p.columns * p.depth }

// finishRows applies the epilogue to complete rows.
func (g *Gemm) finishRows(first, n int) {
	if g.epilogue != nil {
		g.finish(g.c, first, n, g.epilogue)
	}
}

// at returns the address of an element.
func at(m tensor.Matrix, row, column int) *float32 {
	return offset((*float32)(m.Base()), row*m.Stride+column)
}
