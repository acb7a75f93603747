//go:build ignore

// Writes the kernels that sum rows of sources for NEON. They do what package spans
// says of those for other CPUs, but know no heads: each is a call of its own.
//
// A row is up to 16 vectors of sums, V0 to V15. Where its columns are no multiple
// of four, the last vector begins before the one before it ends: what both have is
// summed twice, alike. Rows of 1 to 3 columns have code of their own.
package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/neon"
)

//gen:out ../cpu/edges/neon

const params = "y *float32, yStride int, x %s, xStride int, indptr *int64, indices *int32, values *float32, valueStride int, " +
	"scale *float32, scaleStride int, rows int, cols int, ahead int, last *int32, wide int, flags int"

// What lies where: parameters first, in their order.
const (
	y, yStride, x, xStride, indptr, index, value, valueStride = 0, 1, 2, 3, 4, 5, 6, 7
	scale, scaleStride, rows, cols, ahead, end, wide, flags   = 8, 9, 10, 11, 12, 13, 14, 15

	count   = 16 // entries
	source  = 17
	tailX   = 19 // where the last vector of a source begins, in bytes
	tailY   = 20 // and of a row
	scratch = 21
	fetched = 22
	next    = 23 // row of indptr

	most   = 16 // vectors
	fromX  = 16 // vectors that are read
	packed = 29 // the vector that is widened
	weight = 31
)

// Flags of a call.
const (
	onward = 0 // the bit that says that sums start from what y holds
	add    = 1 // and that what y held is added at the end
)

type kernel struct {
	*neon.File
	half, weighted bool
}

func main() {
	f := neon.New()
	for _, k := range []kernel{{f, false, false}, {f, false, true}, {f, true, false}, {f, true, true}} {
		k.kernel()
	}
	f.Write()
}

func (f kernel) kernel() {
	name, element, size := "sum", "*float32", 4
	if f.weighted {
		name = "weigh"
	}
	if f.half {
		name, element, size = name+"Half", "*uint16", 2
	}
	f.Text(name+"NEON", fmt.Sprintf(params, element))
	f.Op("SUB $4, R%d, R%d", cols, tailX)
	f.Op("LSL $2, R%d, R%d", tailX, tailY)
	f.Op("LSL $%d, R%d, R%d", size/2, tailX, tailX)
	for n := 1; n <= 3; n++ {
		f.Op("CMP $%d, R%d", n, cols)
		f.Op("BEQ few%d", n)
	}
	for n := 1; n <= most; n++ {
		f.Op("CMP $%d, R%d", 4*n, cols)
		f.Op("BLE vectors%d", n)
	}
	f.Op("RET")
	for n := 1; n <= 3; n++ {
		f.body(fmt.Sprintf("few%d", n), 1, n)
	}
	for n := 1; n <= most; n++ {
		f.body(fmt.Sprintf("vectors%d", n), n, 4)
	}
}

// body is the kernel for rows of n vectors, which are one of less than 4 numbers if
// width is less.
func (f kernel) body(label string, n, width int) {
	f.Label(label)
	f.Op("MOVD.P 8(R%d), R%d", indptr, count)
	f.Op("MOVD (R%d), R%d", indptr, next)
	f.Op("SUB R%d, R%d", count, next)
	f.Op("MOVD R%d, R%d", next, count)
	f.Op("TBNZ $%d, R%d, %sOnward", onward, flags, label)
	for i := range n {
		f.Zero(i)
	}
	f.Op("B %sBegin", label)
	f.Label(label + "Onward")
	f.eachOfY(n, width, func(i, width, offset, base int) { f.LoadFew(i, width, offset, base, scratch) })
	f.Label(label + "Begin")
	f.Op("CBZ R%d, %sEnd", count, label)
	f.Op("CBZ R%d, %sNear", ahead, label)

	f.Label(label + "Far")
	f.Op("ADD R%d<<2, R%d, R%d", ahead, index, fetched)
	f.Op("CMP R%d, R%d", end, fetched)
	f.Op("CSEL HI, R%d, R%d, R%d", end, fetched, fetched)
	f.Op("MOVW (R%d), R%d", fetched, fetched)
	f.Op("MADD R%d, R%d, R%d, R%d", xStride, x, fetched, fetched)
	f.Op("ADD R%d, R%d, R%d", wide, fetched, scratch)
	f.Label(label + "Line")
	f.Op("PRFM (R%d), PLDL2KEEP", fetched)
	f.Op("ADD $64, R%d", fetched)
	f.Op("CMP R%d, R%d", scratch, fetched)
	f.Op("BLO %sLine", label)
	f.Op("SUB $1, R%d", scratch)
	f.Op("PRFM (R%d), PLDL2KEEP", scratch)
	f.entry(n, width)
	f.Op("BNE %sFar", label)
	f.Op("B %sEnd", label)
	f.Label(label + "Near")
	f.entry(n, width)
	f.Op("BNE %sNear", label)

	f.Label(label + "End")
	f.Op("CBZ R%d, %sScaled", scale, label)
	f.Op("FMOVS (R%d), F%d", scale, weight)
	f.Op("ADD R%d, R%d", scaleStride, scale)
	for i := range n {
		f.Scale(i, weight)
	}
	f.Label(label + "Scaled")
	f.Op("TBZ $%d, R%d, %sStore", add, flags, label)
	f.eachOfY(n, width, func(i, width, offset, base int) {
		f.LoadFew(fromX, width, offset, base, scratch)
		f.Add(i, fromX)
	})
	f.Label(label + "Store")
	f.eachOfY(n, width, func(i, width, offset, base int) { f.StoreFew(i, width, offset, base, scratch) })
	f.Op("ADD R%d, R%d", yStride, y)
	f.Op("SUBS $1, R%d", rows)
	f.Op("BNE %s", label)
	f.Op("RET")
}

// eachOfY does something for each vector of a row, the last one last: it may hold
// some numbers of the one before.
func (f kernel) eachOfY(n, width int, do func(i, width, offset, base int)) {
	for i := range n - 1 {
		do(i, 4, 16*i, y)
	}
	if width == 4 {
		f.Op("ADD R%d, R%d, R%d", tailY, y, source)
		do(n-1, 4, 0, source)
	} else {
		do(0, width, 0, y)
	}
}

// entry adds one entry's source to the sums, and counts it.
func (f kernel) entry(n, width int) {
	f.Op("MOVW.P 4(R%d), R%d", index, source)
	f.Op("MADD R%d, R%d, R%d, R%d", xStride, x, source, source)
	if f.weighted {
		f.Op("FMOVS (R%d), F%d", value, weight)
		f.Op("ADD R%d, R%d", valueStride, value)
	}
	switch {
	case f.half:
		f.halves(n, width)
	case width < 4:
		f.LoadFew(fromX, width, 0, source, scratch)
		f.sum(0, fromX)
	default:
		i := 0
		for ; i+2 <= n-1; i += 2 {
			v := fromX + i%14
			f.Op("FLDPQ %d(R%d), (F%d, F%d)", 16*i, source, v, v+1)
			f.sum(i, v)
			f.sum(i+1, v+1)
		}
		for ; i < n; i++ {
			if i == n-1 {
				f.Op("ADD R%d, R%d", tailX, source)
				f.Op("FMOVQ (R%d), F%d", source, fromX+i%14)
			} else {
				f.Op("FMOVQ %d(R%d), F%d", 16*i, source, fromX+i%14)
			}
			f.sum(i, fromX+i%14)
		}
	}
	f.Op("SUBS $1, R%d", count)
}

// halves is entry for sources of BF16.
func (f kernel) halves(n, width int) {
	if width < 4 {
		f.Zero(packed)
		for i := range width {
			f.Op("VLD1.P 2(R%d), V%d.H[%d]", source, packed, i)
		}
		f.Widen(fromX, packed, false)
		f.sum(0, fromX)
		return
	}
	i := 0
	for ; i+2 <= n-1; i += 2 {
		v := fromX + i%12
		f.Op("FMOVQ %d(R%d), F%d", 8*i, source, packed)
		f.Widen(v, packed, false)
		f.Widen(v+1, packed, true)
		f.sum(i, v)
		f.sum(i+1, v+1)
	}
	for ; i < n; i++ {
		if i == n-1 {
			f.Op("ADD R%d, R%d", tailX, source)
			f.Op("FMOVD (R%d), F%d", source, packed)
		} else {
			f.Op("FMOVD %d(R%d), F%d", 8*i, source, packed)
		}
		f.Widen(fromX+i%12, packed, false)
		f.sum(i, fromX+i%12)
	}
}

// sum adds what was read to a vector of sums.
func (f kernel) sum(i, v int) {
	if f.weighted {
		f.Multiply(i, v, weight, 0)
	} else {
		f.Add(i, v)
	}
}
