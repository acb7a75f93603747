package gemm

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// A sweep multiplies blocks of rows with panels of columns: for each block and each
// panel, it adds up k products for each element of c, in ascending order and with fused
// multiply-add if the family has it. The sum starts from c with add, otherwise from 0.
//
// Strides are in elements. Element (i, k) of a is a[i*lda+k], or a[k*lda+i] if the sweep
// takes a by columns. Row k of a panel starts at b[k*ldb], and the next panel nextB after
// it. The last panel has only its first last columns; the memory of the others is not
// touched, neither in b nor in c.
type sweep func(a *float32, lda int, b *float32, ldb, nextB int, c *float32, ldc, k, blocks, panels, last int, add bool)

// A kernel holds the sweeps for blocks of so many rows.
type kernel struct {
	rows      int
	byRows    sweep
	byColumns sweep
}

// A width holds the kernels for panels of so many columns, from the highest blocks to
// those of one row.
type width struct {
	columns int
	kernels []kernel
}

// kernels are the kernels of a family.
type kernels struct {
	widths []width // the widest first
	// transpose writes 8 rows as 8 columns of rows of w, in blocks of 8 x 8.
	transpose func(to *float32, w int, from *float32, stride, blocks int)
	// add adds n numbers to others.
	add func(to, from *float32, n int)
	// pairs prepares a and b for kernels that multiply BF16; nil for others.
	pairs *pairs
}

// pairs round to BF16 and store two numbers adjacent in depth in the place of one.
type pairs struct {
	// along rounds rows of n numbers; it may write zeros up to the next 16.
	along func(to *float32, ldTo int, from *float32, ldFrom, rows, n int)
	// across rounds rows of n numbers and stores two rows as one row of pairs; a single
	// last row is paired with zeros.
	across func(to *float32, ldTo int, from *float32, ldFrom, rows, n int)
}

// forFamily returns the kernels of a family.
func forFamily(f family.Family) *kernels {
	if k := assembled(f); k != nil {
		return k
	}
	return &generic
}

// deep returns the number of elements that products of this depth take.
func (k *kernels) deep(depth int) int {
	if k.pairs != nil {
		return (depth + 1) / 2
	}
	return depth
}

// whole rounds n rows up to whole blocks.
func (k *kernels) whole(n int) int {
	each := k.widths[0].kernels[0].rows
	return (n + each - 1) / each * each
}

// A strip is the columns of b and c that are swept with one width.
type strip struct {
	first, columns int
	width          int // index of the width
}

// maxStrips is the maximum number of strips that cut returns.
const maxStrips = 3

// cut divides n columns into strips: as many of the widest panels as fit, and for the
// rest the narrowest panels that hold it, or a wider and a narrower one.
func cut(w []width, n int, to []strip) []strip {
	first := 0
	for i := range w {
		whole := n - n%w[i].columns
		rest := n - whole
		// The rest goes into one more panel of this width unless narrower ones leave
		// fewer columns unused.
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

// padded returns the number of columns of the panels that hold n columns.
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
