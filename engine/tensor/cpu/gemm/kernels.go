package gemm

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// A sweep multiplies blocks of rows with panels of columns: for each block, and
// for each panel, it adds up k products for each element of c, in ascending order
// and fused where the family can. The sum starts from c with add, and else from 0.
//
// Strides are in elements. Element (i, k) of a stands at a[i*lda+k], or at
// a[k*lda+i] if the sweep takes a by columns. Row k of a panel starts at b[k*ldb],
// and the next panel nextB after it. The last panel has only its first columns, as
// many as last says; the memory of the others is not touched, neither in b nor in
// c.
type sweep func(a *float32, lda int, b *float32, ldb, nextB int, c *float32, ldc, k, blocks, panels, last int, add bool)

// A kernel is the sweeps for blocks of so many rows.
type kernel struct {
	rows      int
	byRows    sweep
	byColumns sweep
}

// A width is the kernels for panels of so many columns, from the highest blocks to
// those of one row.
type width struct {
	columns int
	kernels []kernel
}

// kernels are what a family computes with.
type kernels struct {
	widths []width // from the widest
	// transpose writes 8 rows as 8 columns of rows of w, in blocks of 8 x 8.
	transpose func(to *float32, w int, from *float32, stride, blocks int)
	// add adds n numbers to others.
	add func(to, from *float32, n int)
	// pairs is what makes a and b for kernels that multiply BF16, nil for others.
	pairs *pairs
}

// pairs round to BF16 and put two numbers that follow one another in depth into
// the place of one.
type pairs struct {
	// along rounds rows of n numbers; it may write zeros up to the next 16.
	along func(to *float32, ldTo int, from *float32, ldFrom, rows, n int)
	// across rounds rows of n numbers, two rows into one of pairs; the last is
	// paired with zeros if it is alone.
	across func(to *float32, ldTo int, from *float32, ldFrom, rows, n int)
}

// forFamily are the kernels of a family.
func forFamily(f family.Family) *kernels {
	if k := assembled(f); k != nil {
		return k
	}
	return &generic
}

// deep is how many places products of this depth take.
func (k *kernels) deep(depth int) int {
	if k.pairs != nil {
		return (depth + 1) / 2
	}
	return depth
}

// whole is n rows or more, so that they are whole blocks.
func (k *kernels) whole(n int) int {
	each := k.widths[0].kernels[0].rows
	return (n + each - 1) / each * each
}

// A strip is columns of b and c that are swept with one width.
type strip struct {
	first, columns int
	width          int // which of the widths
}

// maxStrips is how many strips cut may need.
const maxStrips = 3

// cut divides n columns into strips: as many of the widest panels as fit, and for
// the rest the narrowest panels that hold it, or a wider and a narrower one.
func cut(w []width, n int, to []strip) []strip {
	first := 0
	for i := range w {
		whole := n - n%w[i].columns
		rest := n - whole
		// What is left goes into one more panel of this width unless narrower
		// ones leave fewer columns unused.
		if rest > 0 && padded(w[i+1:], rest) >= w[i].columns {
			whole = n
		}
		if whole > 0 {
			to = append(to, strip{first, whole, i})
			first += whole
			n -= whole
		}
	}
	return to
}

// padded is how many columns the panels have that hold n columns.
func padded(w []width, n int) int {
	if len(w) == 0 {
		return math.MaxInt
	}
	each := w[0].columns
	rest := n % each
	if rest == 0 {
		return n
	}
	return n - rest + min(each, padded(w[1:], rest))
}
