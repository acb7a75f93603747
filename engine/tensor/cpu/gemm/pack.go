package gemm

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// b is packed in blocks of depthBlock rows; a block is its panels one after another, a
// panel its rows. The padding of a panel is not written.

type packChunks Gemm

// Do packs one block of b.
func (p *packChunks) Do(block, worker int) {
	g := (*Gemm)(p)
	first := block * depthBlock
	depth := min(depthBlock, g.depth-first)
	deep := g.kernels.deep(depth)
	packed := g.kernels.deep(first) * g.padded
	for _, s := range g.strips[:g.cuts] {
		w := g.kernels.widths[s.width].columns
		for done := 0; done < s.columns; done += w {
			n := min(w, s.columns-done)
			to := offset(g.packed.base, packed)
			switch {
			case g.shape == tensor.NN:
				g.copyAcross(to, w, at(g.b, first, s.first+done), g.b.Stride, depth, n)
			case g.kernels.pairs != nil:
				row := offset(g.aside.base, worker*g.packCopies())
				ld := spread(g.kernels.deep(depthBlock))
				g.copyAlong(row, ld, at(g.b, s.first+done, first), g.b.Stride, n, depth)
				g.transpose(to, w, row, ld, n, deep)
			default:
				g.transpose(to, w, at(g.b, s.first+done, first), g.b.Stride, n, depth)
			}
			packed += w * deep
		}
	}
}

// packCopies returns the scratch size that a worker needs to pack: a panel's.
func (g *Gemm) packCopies() int {
	return g.kernels.widths[0].columns * spread(g.kernels.deep(depthBlock))
}

// copyAlong copies rows of n elements that are adjacent in depth into the kernels'
// format.
func (g *Gemm) copyAlong(to *float32, ldTo int, from *float32, ldFrom, rows, n int) {
	if p := g.kernels.pairs; p != nil {
		p.along(to, ldTo, from, ldFrom, rows, n)
		return
	}
	copyRows(to, ldTo, from, ldFrom, rows, n)
}

// copyAcross copies rows of n elements, each one deeper than the one before, into the
// kernels' format.
func (g *Gemm) copyAcross(to *float32, ldTo int, from *float32, ldFrom, rows, n int) {
	if p := g.kernels.pairs; p != nil {
		p.across(to, ldTo, from, ldFrom, rows, n)
		return
	}
	copyRows(to, ldTo, from, ldFrom, rows, n)
}

// copyRows copies rows of n elements.
func copyRows(to *float32, ldTo int, from *float32, ldFrom, rows, n int) {
	switch n {
	case 32:
		for i := range rows {
			*(*[32]float32)(unsafe.Pointer(offset(to, i*ldTo))) = *(*[32]float32)(unsafe.Pointer(offset(from, i*ldFrom)))
		}
	case 16:
		for i := range rows {
			*(*[16]float32)(unsafe.Pointer(offset(to, i*ldTo))) = *(*[16]float32)(unsafe.Pointer(offset(from, i*ldFrom)))
		}
	default:
		for i := range rows {
			copy(unsafe.Slice(offset(to, i*ldTo), n), unsafe.Slice(offset(from, i*ldFrom), n))
		}
	}
}

// transpose writes n rows of depth elements as columns.
func (g *Gemm) transpose(to *float32, w int, from *float32, stride, n, depth int) {
	whole := depth &^ 7
	j := 0
	for ; j+8 <= n && whole > 0; j += 8 {
		g.kernels.transpose(offset(to, j), w, offset(from, j*stride), stride, whole/8)
		for i := j; i < j+8 && whole < depth; i++ {
			column(offset(to, whole*w+i), w, offset(from, i*stride+whole), depth-whole)
		}
	}
	for ; j < n; j++ {
		column(offset(to, j), w, offset(from, j*stride), depth)
	}
}

// column writes n elements of a row as a column.
func column(to *float32, w int, from *float32, n int) {
	for k, v := range unsafe.Slice(from, n) {
		*offset(to, k*w) = v
	}
}

// copyWorth is the number of columns of b below which a copy of a costs more than it
// saves.
const copyWorth = 64

// spread returns a stride for rows of n elements that distributes them over the cache's
// sets: an odd number of lines.
func spread(n int) int { return (n+15)&^15 | 16 }

// aliased reports whether the rows share a few sets of the cache and evict each other, so
// that copying them pays off.
func aliased(m tensor.Matrix) bool { return m.Stride%1024 == 0 }
