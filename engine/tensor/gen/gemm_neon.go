//go:build ignore

// Writes the kernels of dense products for NEON.
//
// A block of up to 6 rows and 16 columns has its sums in V0 to V23. A row of b is
// read a pair of vectors at a time, and numbers of a are multiplied out of lanes: by
// rows four of each row at once, by columns those of all rows. The last panel has
// code of its own for each count of vectors, whose last may be of 1 to 3 numbers.
package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/neon"
)

//gen:out ../cpu/gemm/neon

const params = "a *float32, lda int, b *float32, ldb int, nextB int, c *float32, ldc int, k int, blocks int, panels int, last int, add bool"

// What lies where: parameters first, in their order.
const (
	a, lda, b, ldb, nextB, c, ldc, k, blocks, panels, last, add = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11

	rowB    = 12
	left    = 13 // of the depth
	panelC  = 14
	scratch = 15
	panelB  = 16
	more    = 17 // panels
	rowA    = 19 // and one for each row, by rows
	few     = 25 // numbers of the last vector
	rowC    = 26
	fromA   = 24 // vectors
)

// kernel is the code of one sweep.
type kernel struct {
	*neon.File
	rows      int
	byColumns bool
}

func main() {
	f := neon.New()
	for _, rows := range []int{6, 4, 2, 1} {
		kernel{f, rows, false}.sweep()
		kernel{f, rows, true}.sweep()
	}
	f.Text("neonAdd", "to *float32, from *float32, n int")
	addUp(f)
	f.Text("neonTranspose", "to *float32, w int, from *float32, stride int, blocks int")
	transpose(f)
	f.Write()
}

func (f kernel) sweep() {
	name := "Rows"
	if f.byColumns {
		name = "Columns"
	}
	f.Text(fmt.Sprintf("neon%s%dx16", name, f.rows), params)
	for _, stride := range []int{lda, ldb, nextB, ldc} {
		f.Op("LSL $2, R%d, R%d", stride, stride)
	}
	f.Label("block")
	f.Op("MOVD R%d, R%d", b, panelB)
	f.Op("MOVD R%d, R%d", c, panelC)
	f.Op("MOVD R%d, R%d", panels, more)
	f.Label("panel")
	f.Op("CMP $1, R%d", more)
	f.Op("BNE whole")
	f.Op("CMP $16, R%d", last)
	f.Op("BNE ragged")
	f.Label("whole")
	f.tile("whole", 4, false)
	f.Label("next")
	f.Op("ADD R%d, R%d", nextB, panelB)
	f.Op("ADD $64, R%d", panelC)
	f.Op("SUBS $1, R%d", more)
	f.Op("BNE panel")
	for range f.rows {
		if !f.byColumns {
			f.Op("ADD R%d, R%d", lda, a)
		}
		f.Op("ADD R%d, R%d", ldc, c)
	}
	if f.byColumns {
		f.Op("ADD $%d, R%d", 4*f.rows, a)
	}
	f.Op("SUBS $1, R%d", blocks)
	f.Op("BNE block")
	f.Op("RET")

	f.Label("ragged")
	f.Op("AND $3, R%d, R%d", last, few)
	for n := 1; n <= 15; n++ {
		if n%4 == 0 || n%4 == 1 {
			f.Op("CMP $%d, R%d", n|3*(n&1), last)
			f.Op("BLE ragged%d", n)
		}
	}
	for n := 1; n <= 15; n++ {
		if n%4 == 0 || n%4 == 1 {
			label := fmt.Sprintf("ragged%d", n)
			f.Label(label)
			f.tile(label, (n+3)/4, n%4 == 1)
			f.Op("B next")
		}
	}
}

// sum is the register of a vector of sums.
func sum(row, vector int) int { return row*4 + vector }

// tile is a block times a panel of so many vectors. The last may have few numbers.
func (f kernel) tile(label string, vectors int, ragged bool) {
	f.Op("CBZ R%d, %sZero", add, label)
	f.eachOfC(label+"Load", vectors, ragged, f.LoadFew)
	f.Op("B %sBegin", label)
	f.Label(label + "Zero")
	for i := range f.rows {
		for j := range vectors {
			f.Zero(sum(i, j))
		}
	}
	f.Label(label + "Begin")
	f.Op("MOVD R%d, R%d", panelB, rowB)
	f.depth(label, vectors, ragged)
	f.eachOfC(label+"Store", vectors, ragged, f.StoreFew)
}

// depth adds up the products.
func (f kernel) depth(label string, vectors int, ragged bool) {
	f.Op("MOVD R%d, R%d", a, rowA)
	if f.byColumns {
		f.Op("MOVD R%d, R%d", k, left)
		f.Label(label + "Deeper")
		whole := f.rows &^ 3
		if whole > 0 {
			f.LoadFew(fromA, 4, 0, rowA, scratch)
		}
		if f.rows > whole {
			f.LoadFew(fromA+whole/4, f.rows-whole, 4*whole, rowA, scratch)
		}
		f.Op("ADD R%d, R%d", lda, rowA)
		f.step(label, vectors, ragged, func(row int) (int, int) { return fromA + row/4, row % 4 })
		f.Op("SUBS $1, R%d", left)
		f.Op("BNE %sDeeper", label)
		return
	}
	for i := 1; i < f.rows; i++ {
		f.Op("ADD R%d, R%d, R%d", lda, rowA+i-1, rowA+i)
	}
	f.Op("SUBS $4, R%d, R%d", k, left)
	f.Op("BLT %sFew", label)
	f.Label(label + "Four")
	for i := range f.rows {
		f.Op("FMOVQ.P 16(R%d), F%d", rowA+i, fromA+i)
	}
	for lane := range 4 {
		f.step(fmt.Sprintf("%sLane%d", label, lane), vectors, ragged, func(row int) (int, int) { return fromA + row, lane })
	}
	f.Op("SUBS $4, R%d", left)
	f.Op("BGE %sFour", label)
	f.Label(label + "Few")
	f.Op("ADDS $4, R%d", left)
	f.Op("BEQ %sDone", label)
	f.Label(label + "One")
	for i := range f.rows {
		f.Op("FMOVS.P 4(R%d), F%d", rowA+i, fromA+i)
	}
	f.step(label+"Alone", vectors, ragged, func(row int) (int, int) { return fromA + row, 0 })
	f.Op("SUBS $1, R%d", left)
	f.Op("BNE %sOne", label)
	f.Label(label + "Done")
}

// step adds the products of one row of b. The vectors of it are read in pairs.
func (f kernel) step(label string, vectors int, ragged bool, from func(row int) (vector, lane int)) {
	for j := 0; j < vectors; j += 2 {
		first := 30
		if f.rows <= 4 {
			first = 28 + j
		}
		pair := min(2, vectors-j)
		switch {
		case ragged && j+pair == vectors:
			if pair == 2 {
				f.LoadFew(first, 4, 16*j, rowB, scratch)
			}
			f.fewOf(label, func(n int) { f.LoadFew(first+pair-1, n, 16*(vectors-1), rowB, scratch) })
		case pair == 2:
			f.Op("FLDPQ %d(R%d), (F%d, F%d)", 16*j, rowB, first, first+1)
		default:
			f.LoadFew(first, 4, 16*j, rowB, scratch)
		}
		for v := range pair {
			for i := range f.rows {
				vector, lane := from(i)
				f.Multiply(sum(i, j+v), first+v, vector, lane)
			}
		}
	}
	f.Op("ADD R%d, R%d", ldb, rowB)
}

// fewOf does one thing for the count of numbers that the last vector has.
func (f kernel) fewOf(label string, do func(n int)) {
	f.Op("CMP $2, R%d", few)
	f.Op("BLT %sHas1", label)
	f.Op("BEQ %sHas2", label)
	for n := 3; n > 0; n-- {
		if n < 3 {
			f.Label(fmt.Sprintf("%sHas%d", label, n))
		}
		do(n)
		if n > 1 {
			f.Op("B %sHas", label)
		}
	}
	f.Label(label + "Has")
}

// eachOfC loads or stores the sums.
func (f kernel) eachOfC(label string, vectors int, ragged bool, do func(v, n, offset, base, scratch int)) {
	whole := vectors
	if ragged {
		whole--
	}
	f.Op("MOVD R%d, R%d", panelC, rowC)
	for i := range f.rows {
		for j := range whole {
			do(sum(i, j), 4, 16*j, rowC, scratch)
		}
		if ragged {
			f.fewOf(fmt.Sprintf("%s%d", label, i), func(n int) { do(sum(i, whole), n, 16*whole, rowC, scratch) })
		}
		if i+1 < f.rows {
			f.Op("ADD R%d, R%d", ldc, rowC)
		}
	}
}

// addUp adds n numbers to others.
func addUp(f *neon.File) {
	const to, from, n = 0, 1, 2
	f.Op("SUBS $8, R%d", n)
	f.Op("BLT few")
	f.Label("eight")
	f.Op("FLDPQ.P 32(R%d), (F0, F1)", from)
	f.Op("FLDPQ (R%d), (F2, F3)", to)
	f.Add(2, 0)
	f.Add(3, 1)
	f.Op("FSTPQ.P (F2, F3), 32(R%d)", to)
	f.Op("SUBS $8, R%d", n)
	f.Op("BGE eight")
	f.Label("few")
	f.Op("ADDS $8, R%d", n)
	f.Op("BEQ done")
	f.Label("one")
	f.Op("FMOVS.P 4(R%d), F0", from)
	f.Op("FMOVS (R%d), F1", to)
	f.Op("FADDS F0, F1, F1")
	f.Op("FMOVS.P F1, 4(R%d)", to)
	f.Op("SUBS $1, R%d", n)
	f.Op("BNE one")
	f.Label("done")
	f.Op("RET")
}

// transpose writes 8 rows as 8 columns of rows of w, in blocks of 8 x 8. The halves
// of row i are in V[2i] and V[2i+1].
func transpose(f *neon.File) {
	const to, w, from, stride, blocks, row = 0, 1, 2, 3, 4, 5
	f.Op("LSL $2, R%d, R%d", w, w)
	f.Op("LSL $2, R%d, R%d", stride, stride)
	f.Label("block")
	f.Op("MOVD R%d, R%d", from, row)
	for i := range 8 {
		f.Op("FLDPQ (R%d), (F%d, F%d)", row, 2*i, 2*i+1)
		f.Op("ADD R%d, R%d", stride, row)
	}
	for half := range 2 {
		for four := range 2 {
			pairs, columns := 16+4*four, 24+4*four
			for i := range 4 {
				first := 8*four + 4*(i/2) + half
				f.Op("VTRN%d V%d.S4, V%d.S4, V%d.S4", 1+i%2, first+2, first, pairs+i)
			}
			for i := range 4 {
				f.Op("VTRN%d V%d.D2, V%d.D2, V%d.D2", 1+i/2, pairs+2+i%2, pairs+i%2, columns+i)
			}
		}
		for i := range 4 {
			f.Op("FSTPQ (F%d, F%d), (R%d)", 24+i, 28+i, to)
			f.Op("ADD R%d, R%d", w, to)
		}
	}
	f.Op("ADD $32, R%d", from)
	f.Op("SUBS $1, R%d", blocks)
	f.Op("BNE block")
	f.Op("RET")
}
