package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A walk goes along the blocks of some rows of the same length.
type walk struct {
	f         *Family
	at, whole reg.GPVirtual // bytes: where, and where whole blocks end
	left      reg.GPVirtual // what is beyond
	masks     *tail
}

// walkOf prepares for rows of n numbers. It makes the masks once.
func (f *Family) walkOf(n reg.GPVirtual) *walk {
	w := &walk{f: f, at: GP64(), whole: GP64(), left: GP64()}
	MOVQ(n, w.left)
	ANDQ(Imm(15), w.left)
	MOVQ(n, w.whole)
	SUBQ(w.left, w.whole)
	SHLQ(Imm(2), w.whole)
	t := f.tailOf(w.left)
	w.masks = &t
	return w
}

// each writes the loop over a row, body being given nil or the masks of the tail.
// Names of labels begin with name.
func (w *walk) each(name string, body func(t *tail)) {
	XORQ(w.at, w.at)
	CMPQ(w.at, w.whole)
	JGE(LabelRef(name + "Tail"))
	Label(name + "Whole")
	body(nil)
	ADDQ(Imm(64), w.at)
	CMPQ(w.at, w.whole)
	JLT(LabelRef(name + "Whole"))
	Label(name + "Tail")
	TESTQ(w.left, w.left)
	JZ(LabelRef(name + "End"))
	body(w.masks)
	Label(name + "End")
}

// of is the block of a row at which the walk is.
func (w *walk) of(row reg.GPVirtual) Mem { return Mem{Base: row, Index: w.at, Scale: 1} }

func param64(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// broadcast is a block of an argument that is a number.
func (f *Family) broadcast(name string) block {
	x, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return f.same(x.Addr)
}

// begin starts a kernel.
func (f *Family) begin(name, signature string) {
	TEXT(f.Prefix+name, NOSPLIT, signature)
	Pragma("noescape")
}

func end() {
	VZEROUPPER()
	RET()
}
