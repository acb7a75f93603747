package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// copyKernels are conversions, and copies of rows found by pointers.
func (f *Family) copyKernels() {
	for _, wider := range []bool{false, true} {
		f.rowsAt(wider)
	}
	f.narrow()
	f.addRows()
}

// fetch writes the loop that fetches lines into the second cache.
func fetch(name string, at, lines reg.GPVirtual) {
	Label(name)
	PREFETCHT1(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(lines)
	JNZ(LabelRef(name))
}

// addRows adds rows to others, both found by pointers.
func (f *Family) addRows() {
	f.begin("AddRows", "func(to, from **byte, ahead, rows, n, lines int)")
	to, from, ahead := param64("to"), param64("from"), param64("ahead")
	w := f.walkOf(param64("n"))
	eachRow(nil, nil, nil, func() {
		lines := param64("lines")
		TESTQ(lines, lines)
		JZ(LabelRef("fetched"))
		y, x := GP64(), GP64()
		MOVQ(Mem{Base: to, Index: ahead, Scale: 1}, y)
		fetch("fetchTo", y, lines)
		lines = param64("lines")
		MOVQ(Mem{Base: from, Index: ahead, Scale: 1}, x)
		fetch("fetchFrom", x, lines)
		Label("fetched")
		y, x = GP64(), GP64()
		MOVQ(Mem{Base: to}, y)
		MOVQ(Mem{Base: from}, x)
		ADDQ(Imm(8), to)
		ADDQ(Imm(8), from)
		w.each("numbers", func(t *tail) { f.store(f.add(f.load(w.of(y), t), f.load(w.of(x), t)), w.of(y), t) })
	})
}

// rowsAt copies rows from where pointers say, and fetches what later pointers say
// into the second cache: the first one waits for too few lines at once. The numbers
// are f32, or bf16 and made wider. Blocks are of sixteen numbers, the tail goes one
// by one.
func (f *Family) rowsAt(wider bool) {
	f.begin("Copy"+word(wider, "Wider"), "func(y *float32, stride int, from, ahead **byte, rows, n, lines int)")
	bytes := 4
	if wider {
		bytes = 2
	}
	y, from, ahead := param64("y"), param64("from"), param64("ahead")
	n := param64("n")
	eachRow(map[string]reg.GPVirtual{"y": y}, nil, nil, func() {
		x, to, at := GP64(), GP64(), GP64()
		lines := param64("lines")
		MOVQ(Mem{Base: ahead}, at)
		ADDQ(Imm(8), ahead)
		TESTQ(lines, lines)
		JZ(LabelRef("fetched"))
		fetch("fetch", at, lines)
		Label("fetched")

		MOVQ(Mem{Base: from}, x)
		ADDQ(Imm(8), from)
		MOVQ(y, to)
		left := GP64()
		MOVQ(n, left)
		SUBQ(Imm(16), left)
		JL(LabelRef("tail"))
		Label("block")
		f.store(f.widened(x, wider), Mem{Base: to}, nil)
		ADDQ(Imm(uint64(16*bytes)), x)
		ADDQ(Imm(64), to)
		SUBQ(Imm(16), left)
		JGE(LabelRef("block"))
		Label("tail")
		ADDQ(Imm(16), left)
		JZ(LabelRef("end"))
		Label("one")
		v := GP32()
		if wider {
			MOVWLZX(Mem{Base: x}, v)
			SHLL(U8(16), v)
		} else {
			MOVL(Mem{Base: x}, v)
		}
		MOVL(v, Mem{Base: to})
		ADDQ(Imm(uint64(bytes)), x)
		ADDQ(Imm(4), to)
		DECQ(left)
		JNZ(LabelRef("one"))
		Label("end")
		ADDQ(param64("stride"), y)
	})
}

// widened loads sixteen numbers.
func (f *Family) widened(x reg.GPVirtual, wider bool) block {
	if !wider {
		return f.load(Mem{Base: x}, nil)
	}
	z := f.block()
	for i := range z {
		VPMOVZXWD(Mem{Base: x, Disp: i * f.step() / 2}, z[i])
		VPSLLD(U8(16), z[i], z[i])
	}
	return z
}

// narrow makes bf16 of n f32, a multiple of sixteen: the nearest, and the even one
// of two. What is no number stays none.
func (f *Family) narrow() {
	f.begin("Narrow", "func(y *uint16, x *float32, n int)")
	y, x, n := param64("y"), param64("x"), param64("n")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	Label("block")
	v := f.load(Mem{Base: x}, nil)
	odd := f.and(f.word("WordOne", 1), f.shift(VPSRLD, 16, v))
	near := f.do(VPADDD, f.word("Half", 0x7fff), f.do(VPADDD, odd, v))
	// An exponent that is full, and digits: above infinity as an integer.
	size := f.and(f.word("NoSign", 0x7fffffff), v)
	z := f.shift(VPSRLD, 16, f.ifElse(f.aboveInfinity(size), f.or(f.word("Quiet", 0x400000), v), near))
	for i := range z {
		to := Mem{Base: y, Disp: i * f.step() / 2}
		if f.Wide {
			VPMOVDW(z[i], to)
			continue
		}
		low := XMM()
		VEXTRACTI128(U8(1), z[i], low)
		VPACKUSDW(low, z[i].AsX(), low)
		VMOVDQU(low, to)
	}
	ADDQ(Imm(64), x)
	ADDQ(Imm(32), y)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("block"))
	Label("end")
	end()
}

// aboveInfinity is for integers without a sign.
func (f *Family) aboveInfinity(x block) choice {
	infinity := f.load(f.word("Infinity", 0x7f800000), nil)
	if f.Wide {
		k := K()
		VPCMPGTD(infinity[0], x[0], k)
		return choice{k: k}
	}
	return choice{m: f.do(VPCMPGTD, infinity, x)}
}
