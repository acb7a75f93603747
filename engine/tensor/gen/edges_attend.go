//go:build ignore

// Writes the kernels of attention and maxima. There is one set, for AVX2: the
// order of a sum across lanes is then the same on all CPUs.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

//gen:out ../cpu/edges/attend

func main() {
	lanes := GLOBL("attendLanes", RODATA|NOPTR)
	for i := range 16 {
		var v U32
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, v)
	}
	products(lanes, "products", false)
	products(lanes, "leakyProducts", true)
	leakyBack(lanes)
	maxima(lanes)
	Generate()
}

// mask is that of as many lanes as n says, 0 to 7.
func mask(lanes Mem, n, scratch reg.GPPhysical, to reg.Register) {
	NEGQ(n)
	LEAQ(lanes, scratch)
	VMOVDQU(Mem{Base: scratch, Index: n, Scale: 4, Disp: 32}, to)
	NEGQ(n)
}

func param(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// products multiplies the row of each entry's source with a, head by head. In the
// leaky kind, first to is added, and what is negative then is multiplied with slope.
//
// Columns go to sixteen sums in turn. Those are added up as halves, quarters, and
// neighbours.
func products(lanes Mem, name string, leaky bool) {
	extra := ""
	if leaky {
		extra = ", add *float32, slope float32"
	}
	TEXT(name, NOSPLIT, "func(to *float32, toStride int, a *float32, x *float32, xStride int, indices *int32, n int, heads int, width int"+extra+", ahead int, last *int32)")
	Pragma("noescape")
	to, x, index, n, stride := reg.RDI, reg.RBX, reg.RSI, reg.RCX, reg.R8
	row, a, head, steps, tail, width16, add, scratch, end := reg.RDX, reg.RAX, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15
	for _, p := range []struct {
		name string
		to   reg.GPPhysical
	}{{"to", to}, {"x", x}, {"xStride", stride}, {"indices", index}, {"n", n}, {"width", width16}, {"last", end}} {
		Load(Param(p.name), p.to)
	}
	MOVQ(width16, tail)
	ANDQ(Imm(7), tail)
	mask(lanes, tail, scratch, reg.Y15)
	SHLQ(Imm(2), tail) // bytes
	SHRQ(Imm(4), width16)
	if leaky {
		VBROADCASTSS(param("slope"), reg.Y14)
	}
	element := func(disp int, sum reg.Register, masked bool) {
		load := func(base reg.Register, v reg.Register) {
			m := Mem{Base: base, Disp: disp}
			if masked {
				VMASKMOVPS(m, reg.Y15, v)
			} else {
				VMOVUPS(m, v)
			}
		}
		load(row, reg.Y4)
		if leaky {
			load(add, reg.Y5)
			VADDPS(reg.Y5, reg.Y4, reg.Y4)
			VMULPS(reg.Y14, reg.Y4, reg.Y5)
			VBLENDVPS(reg.Y4, reg.Y5, reg.Y4, reg.Y4)
		}
		if masked {
			load(a, reg.Y5)
			VFMADD231PS(reg.Y5, reg.Y4, sum)
		} else {
			VFMADD231PS(Mem{Base: a, Disp: disp}, reg.Y4, sum)
		}
	}
	advance := func(by Op) {
		ADDQ(by, row)
		ADDQ(by, a)
		if leaky {
			ADDQ(by, add)
		}
	}

	Label("entry")
	MOVQ(param("ahead"), scratch)
	TESTQ(scratch, scratch)
	JZ(LabelRef("near"))
	ADDQ(index, scratch)
	CMPQ(scratch, end)
	CMOVQHI(end, scratch)
	MOVLQSX(Mem{Base: scratch}, scratch)
	IMULQ(stride, scratch)
	ADDQ(x, scratch)
	MOVQ(param("heads"), head)
	IMULQ(param("width"), head)
	LEAQ(Mem{Base: scratch, Index: head, Scale: 4}, head)
	Label("line")
	PREFETCHT1(Mem{Base: scratch})
	ADDQ(Imm(64), scratch)
	CMPQ(scratch, head)
	JB(LabelRef("line"))
	Label("near")
	MOVLQSX(Mem{Base: index}, row)
	ADDQ(Imm(4), index)
	IMULQ(stride, row)
	ADDQ(x, row)
	MOVQ(param("a"), a)
	if leaky {
		MOVQ(param("add"), add)
	}
	MOVQ(to, scratch)
	MOVQ(param("heads"), head)

	Label("head")
	VXORPS(reg.Y0, reg.Y0, reg.Y0)
	VXORPS(reg.Y1, reg.Y1, reg.Y1)
	MOVQ(width16, steps)
	TESTQ(steps, steps)
	JZ(LabelRef("eight"))
	Label("sixteen")
	element(0, reg.Y0, false)
	element(32, reg.Y1, false)
	advance(Imm(64))
	DECQ(steps)
	JNZ(LabelRef("sixteen"))
	Label("eight")
	BTQ(Imm(3), param("width"))
	JNC(LabelRef("fewer"))
	element(0, reg.Y0, false)
	advance(Imm(32))
	Label("fewer")
	TESTQ(tail, tail)
	JZ(LabelRef("fold"))
	element(0, reg.Y1, true)
	advance(tail)
	Label("fold")
	VADDPS(reg.Y1, reg.Y0, reg.Y0)
	VEXTRACTF128(Imm(1), reg.Y0, reg.X1)
	VADDPS(reg.X1, reg.X0, reg.X0)
	VPERMILPD(Imm(1), reg.X0, reg.X1)
	VADDPS(reg.X1, reg.X0, reg.X0)
	VMOVSHDUP(reg.X0, reg.X1)
	VADDSS(reg.X1, reg.X0, reg.X0)
	VMOVSS(reg.X0, Mem{Base: scratch})
	ADDQ(Imm(4), scratch)
	DECQ(head)
	JNZ(LabelRef("head"))
	ADDQ(param("toStride"), to)
	DECQ(n)
	JNZ(LabelRef("entry"))
	VZEROUPPER()
	RET()
}

// maxima goes on with the largest of each column of one row, and with which source
// it is of: eight columns after eight, of all entries.
func maxima(lanes Mem) {
	TEXT("maxima", NOSPLIT, "func(y *float32, which *int32, cols int, x *float32, xStride int, indices *int32, n int, begin int)")
	Pragma("noescape")
	y, which, cols, x, stride := reg.RDI, reg.RDX, reg.RBX, reg.RSI, reg.R8
	index, n, row, scratch := reg.R9, reg.RCX, reg.R10, reg.R11
	for _, p := range []struct {
		name string
		to   reg.GPPhysical
	}{{"y", y}, {"which", which}, {"cols", cols}, {"x", x}, {"xStride", stride}} {
		Load(Param(p.name), p.to)
	}
	for _, wide := range []int{4, 1} {
		best := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3}[:wide]
		of := []reg.Register{reg.Y4, reg.Y5, reg.Y6, reg.Y7}[:wide]
		name := map[int]string{4: "four", 1: "one"}[wide]
		masked := wide == 1
		load := func(m Mem, v reg.Register) {
			if masked {
				VMASKMOVPS(m, reg.Y15, v)
			} else {
				VMOVUPS(m, v)
			}
		}
		Label(name)
		if masked {
			TESTQ(cols, cols)
			JLE(LabelRef("done"))
			MOVQ(cols, n)
			CMPQ(n, Imm(8))
			JLE(LabelRef("part"))
			MOVQ(I32(8), n)
			Label("part")
			mask(lanes, n, scratch, reg.Y15)
		} else {
			CMPQ(cols, Imm(32))
			JL(LabelRef("one"))
		}
		MOVQ(param("indices"), index)
		MOVQ(param("n"), n)
		CMPQ(param("begin"), Imm(0))
		JNE(LabelRef(name + "Begin"))
		for i := range wide {
			load(Mem{Base: y, Disp: 32 * i}, best[i])
			load(Mem{Base: which, Disp: 32 * i}, of[i])
		}
		JMP(LabelRef(name + "Entry"))
		source := func() {
			MOVLQSX(Mem{Base: index}, row)
			VPBROADCASTD(Mem{Base: index}, reg.Y8)
			ADDQ(Imm(4), index)
			IMULQ(stride, row)
			ADDQ(x, row)
		}
		Label(name + "Begin")
		source()
		for i := range wide {
			load(Mem{Base: row, Disp: 32 * i}, best[i])
			VMOVAPS(reg.Y8, of[i])
		}
		DECQ(n)
		JZ(LabelRef(name + "End"))
		Label(name + "Entry")
		source()
		for i := range wide {
			load(Mem{Base: row, Disp: 32 * i}, reg.Y9)
			VCMPPS(Imm(30), best[i], reg.Y9, reg.Y10) // larger, and neither is no number
			VBLENDVPS(reg.Y10, reg.Y9, best[i], best[i])
			VBLENDVPS(reg.Y10, reg.Y8, of[i], of[i])
		}
		DECQ(n)
		JNZ(LabelRef(name + "Entry"))
		Label(name + "End")
		for i := range wide {
			if masked {
				VMASKMOVPS(best[i], reg.Y15, Mem{Base: y, Disp: 32 * i})
				VMASKMOVPS(of[i], reg.Y15, Mem{Base: which, Disp: 32 * i})
			} else {
				VMOVUPS(best[i], Mem{Base: y, Disp: 32 * i})
				VMOVUPS(of[i], Mem{Base: which, Disp: 32 * i})
			}
		}
		ADDQ(I32(32*wide), y)
		ADDQ(I32(32*wide), which)
		ADDQ(I32(32*wide), x)
		SUBQ(I32(8*wide), cols)
		JMP(LabelRef(name))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// leakyBack is the way back of leakyProducts for one head: some columns after
// others, of all entries.
func leakyBack(lanes Mem) {
	TEXT("leakyBack", NOSPLIT, "func(dadd *float32, da *float32, a *float32, x *float32, xStride int, indices *int32, n int, width int, add *float32, grads *float32, gradStride int, slope float32)")
	Pragma("noescape")
	dadd, da, a, x, stride, add, cols := reg.RDI, reg.RDX, reg.RAX, reg.RSI, reg.R8, reg.R12, reg.RBX
	index, n, row, scratch, grad, gradStride := reg.R9, reg.RCX, reg.R10, reg.R11, reg.R13, reg.R14
	for _, p := range []struct {
		name string
		to   reg.GPPhysical
	}{{"dadd", dadd}, {"da", da}, {"a", a}, {"x", x}, {"xStride", stride}, {"add", add}, {"width", cols}, {"gradStride", gradStride}} {
		Load(Param(p.name), p.to)
	}
	slope, one, d, z, step := reg.Y14, reg.Y13, reg.Y12, reg.Y11, reg.Y10
	VBROADCASTSS(param("slope"), slope)
	MOVL(U32(0x3f800000), scratch.As32())
	MOVQ(scratch, reg.X13)
	VBROADCASTSS(reg.X13, one)
	for _, wide := range []int{4, 1} {
		steps := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3}[:wide]
		products := []reg.Register{reg.Y4, reg.Y5, reg.Y6, reg.Y7}[:wide]
		name := map[int]string{4: "four", 1: "one"}[wide]
		masked := wide == 1
		load := func(m Mem, v reg.Register) {
			if masked {
				VMASKMOVPS(m, reg.Y15, v)
			} else {
				VMOVUPS(m, v)
			}
		}
		store := func(v reg.Register, m Mem) {
			if masked {
				VMASKMOVPS(v, reg.Y15, m)
			} else {
				VMOVUPS(v, m)
			}
		}
		Label(name)
		if masked {
			TESTQ(cols, cols)
			JLE(LabelRef("done"))
			MOVQ(cols, n)
			CMPQ(n, Imm(8))
			JLE(LabelRef("part"))
			MOVQ(I32(8), n)
			Label("part")
			mask(lanes, n, scratch, reg.Y15)
		} else {
			CMPQ(cols, Imm(32))
			JL(LabelRef("one"))
		}
		Load(Param("indices"), index)
		Load(Param("n"), n)
		Load(Param("grads"), grad)
		for i := range wide {
			VXORPS(steps[i], steps[i], steps[i])
			VXORPS(products[i], products[i], products[i])
		}
		Label(name + "Entry")
		MOVLQSX(Mem{Base: index}, row)
		ADDQ(Imm(4), index)
		IMULQ(stride, row)
		ADDQ(x, row)
		VBROADCASTSS(Mem{Base: grad}, d)
		ADDQ(gradStride, grad)
		for i := range wide {
			load(Mem{Base: row, Disp: 32 * i}, z)
			if masked {
				load(Mem{Base: add}, step)
				VADDPS(step, z, z)
			} else {
				VADDPS(Mem{Base: add, Disp: 32 * i}, z, z)
			}
			VBLENDVPS(z, slope, one, step)
			VMULPS(d, step, step)
			VADDPS(step, steps[i], steps[i])
			VFMADD231PS(z, step, products[i])
		}
		DECQ(n)
		JNZ(LabelRef(name + "Entry"))
		for i := range wide {
			load(Mem{Base: da, Disp: 32 * i}, z)
			VADDPS(products[i], z, z)
			store(z, Mem{Base: da, Disp: 32 * i})
			load(Mem{Base: dadd, Disp: 32 * i}, z)
			load(Mem{Base: a, Disp: 32 * i}, step)
			VFMADD231PS(steps[i], step, z)
			store(z, Mem{Base: dadd, Disp: 32 * i})
		}
		for _, p := range []reg.GPPhysical{dadd, da, a, x, add} {
			ADDQ(I32(32*wide), p)
		}
		SUBQ(I32(8*wide), cols)
		JMP(LabelRef(name))
	}
	Label("done")
	VZEROUPPER()
	RET()
}
