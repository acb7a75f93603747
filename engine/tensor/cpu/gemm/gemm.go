package gemm

import (
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// small is up to how many multiplications a product stays on the calling goroutine.
const small = 1 << 19

// Gemm is tensor.Products on a pool of workers.
type Gemm struct {
	pool    *workers.Pool
	kernels *kernels
	finish  func(y tensor.Matrix, first, n int, e *tensor.Epilogue)

	product
	packed   scratch // b
	aside    scratch // for each worker, what it copies
	partials scratch // the sums of the parts of a long reduction, but the first
}

// New allocates what products need beside their operands.
func New(pool *workers.Pool) *Gemm {
	return &Gemm{pool: pool, kernels: forFamily(family.Current()), finish: rows.Finish}
}

// SetBF16 says whether a and b are rounded to BF16 before they are multiplied,
// which takes half the time. Sums stay F32. Where the CPU can't, nothing changes.
func (g *Gemm) SetBF16(on bool) {
	g.kernels = forFamily(family.Current())
	if on && family.BF16() {
		g.kernels = forBF16()
	}
}

// A product is what is being computed: c, rows x columns, adds up depth products
// for each element.
type product struct {
	c, a, b              tensor.Matrix
	rows, columns, depth int
	shape                tensor.Shape
	add                  bool
	epilogue             *tensor.Epilogue // nil: nothing
	strips               [maxStrips]strip
	cuts                 int  // how many strips there are
	padded               int  // columns of b with those that panels have too many, if it is packed
	copied               bool // rows of a are copied before they are used
	copiedB              bool // those of b
	parts, part          int  // of a long reduction, and how long they are
	stripes              int  // of rows of c in each part
	chunk                int  // rows of c that are computed at once
}

// MatMul is as tensor.Products says.
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
	g.product = product{} // hold nobody's memory
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

// nothing is the product where there is nothing to add up.
func (g *Gemm) nothing() {
	if !g.add {
		for i := range g.rows {
			clear(unsafe.Slice(at(g.c, i, 0), g.columns))
		}
	}
	g.finishRows(0, g.rows)
}

// do does the chunks of t, on this goroutine where they are not worth waking
// others.
func (g *Gemm) do(chunks int, t workers.Task) {
	if g.work() > small {
		g.pool.Run(chunks, t)
		return
	}
	for chunk := range chunks {
		t.Do(chunk, 0)
	}
}

// work is how many multiplications the product takes.
func (p *product) work() int { return p.rows * p.columns * p.depth }

// finishRows applies the epilogue to rows that are complete.
func (g *Gemm) finishRows(first, n int) {
	if g.epilogue != nil {
		g.finish(g.c, first, n, g.epilogue)
	}
}

// at is the address of an element.
func at(m tensor.Matrix, row, column int) *float32 {
	return offset((*float32)(m.Base()), row*m.Stride+column)
}
