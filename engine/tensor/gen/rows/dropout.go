package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The numbers of package keyed.
const (
	childStep   = 0x9e3779b97f4a7c15
	childFirst  = 0xbf58476d1ce4e5b9
	childSecond = 0x94d049bb133111eb
	columnStep  = 0x9e3779b9
)

// dropping is the state of keyed dropout.
type dropping struct {
	f                *Family
	threshold, scale block
	low, high        block // of the row's key; low goes on with the column
}

// dropping loads the arguments threshold and scale.
func (f *Family) dropping() *dropping {
	d := &dropping{f: f, threshold: f.broadcast("threshold"), scale: f.broadcast("scale")}
	d.low, d.high = f.block(), make(block, f.parts())
	shared := f.vector()
	for i := range d.high {
		d.high[i] = shared
	}
	return d
}

// child replaces x by Key.With(x) of the argument key.
func child(x reg.GPVirtual) {
	by, key := GP64(), GP64()
	INCQ(x)
	MOVQ(U64(childStep), by)
	IMULQ(by, x)
	Load(Param("key"), key)
	ADDQ(key, x)
	for _, step := range []struct {
		shift uint8
		by    uint64
	}{{30, childFirst}, {27, childSecond}, {31, 0}} {
		MOVQ(x, by)
		SHRQ(U8(step.shift), by)
		XORQ(by, x)
		if step.by != 0 {
			MOVQ(U64(step.by), by)
			IMULQ(by, x)
		}
	}
}

// begin takes the key of a row, whose columns count from 0.
func (d *dropping) begin(key reg.GPVirtual) {
	f := d.f
	x, low := XMM(), f.vector()
	VMOVD(key.As32(), x)
	VPBROADCASTD(x, low)
	SHRQ(U8(32), key)
	VMOVD(key.As32(), x)
	VPBROADCASTD(x, d.high[0])
	first := f.words("FirstColumns", func(i int) uint32 { return uint32(i) * columnStep & 0xffffffff })
	for i := range d.low {
		VPADDD(first.Offset(i*f.step()), low, d.low[i])
	}
}

// next drops from the block x and goes on to the next columns.
func (d *dropping) next(x block) block {
	f := d.f
	z := d.drop(x, d.low)
	by := f.word("NextColumns", 16*columnStep&0xffffffff)
	for i := range d.low {
		VPADDD(by.Offset(i*f.step()), d.low[i], d.low[i])
	}
	return z
}

// drop drops from x by the low words of the key with the columns in them.
func (d *dropping) drop(x, low block) block {
	f := d.f
	h := f.xor(low, d.high)
	h = f.do(VPMULLD, f.word("HashFirst", 0x85ebca6b), f.xor(h, f.shift(VPSRLD, 16, h)))
	h = f.do(VPMULLD, f.word("HashSecond", 0xc2b2ae35), f.xor(h, f.shift(VPSRLD, 13, h)))
	h = f.xor(h, f.shift(VPSRLD, 16, h))
	return f.ifElseZero(f.notBelow(h, d.threshold), f.mul(x, d.scale))
}

// dropKernel is tensor.Rows' DropValues of the entries of one row.
func (f *Family) dropKernel() {
	f.begin("DropEntries", "func(to, from *float32, columns *int32, n int, key uint64, threshold uint32, scale float32)")
	to, from, columns, key := param64("to"), param64("from"), param64("columns"), param64("key")
	w := f.walkOf(param64("n"))
	d := f.dropping()
	d.begin(key)
	// Columns come from memory, not by counting.
	low := f.vector()
	key = param64("key")
	x := XMM()
	VMOVD(key.As32(), x)
	VPBROADCASTD(x, low)
	spread := make(block, f.parts())
	for i := range spread {
		spread[i] = low
	}
	w.each("entries", func(t *tail) {
		c := f.do(VPMULLD, f.word("ColumnStep", columnStep), f.load(w.of(columns), t))
		f.store(d.drop(f.load(w.of(from), t), f.do(VPADDD, spread, c)), w.of(to), t)
	})
	end()
}
