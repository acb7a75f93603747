package gemm

import "github.com/hopmesh/hopmesh/engine/tensor"

const (
	depthBlock = 384     // depth of products added up in one pass
	rowsLeast  = 14      // minimum per chunk
	rowsMost   = 2048    // maximum per chunk
	chunkWork  = 2 << 20 // multiplications per chunk, some tens of microseconds
)

// byRows computes a times b, with b transposed or not, in chunks of rows of c. b is
// packed. Chunks and blocks do not affect the bits.
func (g *Gemm) byRows() {
	g.padded = padded(g.kernels.widths, g.columns)
	g.packed.grow(g.padded * g.kernels.deep(g.depth))
	if g.kernels.pairs != nil && g.shape == tensor.NT {
		g.aside.grow(g.pool.Size() * g.packCopies())
	}
	g.do((g.depth+depthBlock-1)/depthBlock, (*packChunks)(g))

	g.chunk = g.kernels.whole(min(max(chunkWork/(g.columns*g.depth), rowsLeast), rowsMost))
	g.copied = aliased(g.a) && g.columns >= copyWorth || g.kernels.pairs != nil
	if g.copied {
		g.aside.grow(g.pool.Size() * g.rowCopies())
	}
	g.do((g.rows+g.chunk-1)/g.chunk, (*rowChunks)(g))
}

// rowCopies returns the scratch size that a worker needs for copies.
func (g *Gemm) rowCopies() int { return g.chunk * spread(g.kernels.deep(depthBlock)) }

type rowChunks Gemm

// Do computes one chunk of rows.
func (r *rowChunks) Do(chunk, worker int) {
	g := (*Gemm)(r)
	first := chunk * g.chunk
	n := min(g.chunk, g.rows-first)
	for k := 0; k < g.depth; k += depthBlock {
		depth := min(depthBlock, g.depth-k)
		s := span{
			rows: n, depth: g.kernels.deep(depth),
			a: at(g.a, first, k), lda: g.a.Stride, c: at(g.c, first, 0), ldc: g.c.Stride,
			b: offset(g.packed.base, g.kernels.deep(k)*g.padded), add: g.add || k > 0,
		}
		if g.copied {
			to, ld := offset(g.aside.base, worker*g.rowCopies()), spread(g.kernels.deep(depthBlock))
			g.copyAlong(to, ld, s.a, s.lda, n, depth)
			s.a, s.lda = to, ld
		}
		g.multiply(&s)
	}
	g.finishRows(first, n)
}
