package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// guard surrounds operands. Every type can represent it.
const guard = -24576

// An operand is the same matrix on all sides, surrounded by guards that must not be
// modified.
type operand struct {
	name        string
	whole, view [sides]tensor.Matrix
	frame       frame
	before      []float64 // the elements of view before the case, as the device holds them
	output      bool      // may change; otherwise it is compared with before
	opaque      bool      // the content is the device's own business
	exact       bool      // no tolerance
	summed      bool      // magnitudes holds the magnitudes of its terms
	slack       float64   // added to the magnitudes
	factor      float64   // multiplies the magnitudes; 0 is 1
	scale       []float64 // by element: magnitudes, added
}

// A frame is the position of a matrix in its surroundings.
type frame struct{ above, below, left, right int }

// The first has no gaps.
var frames = []frame{
	{0, 1, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 1}, {1, 1, 1, 0}, {1, 1, 3, 5}, {1, 1, 16, 16}, {0, 1, 0, 7},
}

// in returns an operand that is only read.
func (b *bench) in(name string, t tensor.Type, rows, cols int, x []float64) *operand {
	return b.place(name, t, rows, cols, frames[b.below(len(frames))], x)
}

// inout returns an operand that is read and written.
func (b *bench) inout(name string, t tensor.Type, rows, cols int, x []float64) *operand {
	o := b.in(name, t, rows, cols, x)
	o.output = true
	return o
}

// out returns an operand that is only written. It holds NaN or garbage at first.
func (b *bench) out(name string, t tensor.Type, rows, cols int) *operand {
	x := make([]float64, rows*cols)
	for i := range x {
		x[i] = math.NaN()
		if t == tensor.I32 {
			x[i] = -77
		}
	}
	return b.inout(name, t, rows, cols, x)
}

// packed is inout without gaps between rows.
func (b *bench) packed(name string, rows, cols int, x []float64) *operand {
	o := b.place(name, b.native(), rows, cols, frames[b.below(2)], x)
	o.output = true
	return o
}

// native returns the type that the device computes with.
func (b *bench) native() tensor.Type { return b.devices[judged].Type() }

func (b *bench) place(name string, t tensor.Type, rows, cols int, f frame, x []float64) *operand {
	o := &operand{name: name, frame: f}
	width := f.left + cols + f.right
	whole := make([]float64, (f.above+rows+f.below)*width)
	for i := range whole {
		whole[i] = guard
	}
	for i := range rows {
		copy(whole[(f.above+i)*width+f.left:], x[i*cols:][:cols])
	}
	for s, d := range b.devices {
		as := t
		if t == b.native() {
			as = d.Type()
		}
		o.whole[s] = b.arenas[s].Alloc(as, f.above+rows+f.below, width)
		o.view[s] = o.whole[s].View(f.above, rows, f.left, cols)
		d.Write(o.whole[s], whole)
	}
	o.before = make([]float64, rows*cols)
	b.devices[judged].Read(o.before, o.view[judged])
	b.positive(o)
	b.operands = append(b.operands, o)
	return o
}

// positive replaces an operand by its magnitudes on the magnitudes' side.
func (b *bench) positive(o *operand) {
	m := o.view[magnitudes]
	x := make([]float64, len(o.before))
	for i := range x {
		x[i] = o.before[i]
		if m.Type != tensor.I32 {
			x[i] = math.Abs(x[i])
		}
	}
	b.devices[magnitudes].Write(m, x)
}

// keepSigns makes the magnitudes' side use the signed values.
func (b *bench) keepSigns(os ...*operand) {
	for _, o := range os {
		b.devices[magnitudes].Write(o.view[magnitudes], o.before)
	}
}

// compare reports the faults of an operand after a case.
func (b *bench) compare(o *operand) {
	b.Helper()
	m := o.view[judged]
	whole := make([]float64, o.whole[judged].Rows*o.whole[judged].Cols)
	b.devices[judged].Read(whole, o.whole[judged])
	want, terms := o.before, make([]float64, len(o.before))
	if o.output && !o.opaque {
		want = make([]float64, len(o.before))
		b.devices[right].Read(want, o.view[right])
		if o.summed {
			b.devices[magnitudes].Read(terms, o.view[magnitudes])
		}
	}
	width := o.whole[judged].Cols
	for at, got := range whole {
		i, j := at/width-o.frame.above, at%width-o.frame.left
		if i < 0 || i >= m.Rows || j < 0 || j >= m.Cols {
			if got != guard {
				b.fault("%s, which is %s, was written outside of, at [%d,%d]: %g", o.name, describe(m), i, j, got)
				return
			}
			continue
		}
		e := i*m.Cols + j
		switch {
		case o.opaque:
		case !o.output || o.exact:
			if got != want[e] && !(math.IsNaN(got) && math.IsNaN(want[e])) {
				b.fault("%s[%d,%d], which is %s, is %g and has to be exactly %g", o.name, i, j, describe(m), got, want[e])
				return
			}
		case !b.agree(got, want[e], o.termsAt(e, terms[e])):
			b.fault("%s[%d,%d], which is %s, is %g, want %g (terms of %g)", o.name, i, j, describe(m), got, want[e], o.termsAt(e, terms[e]))
			return
		}
	}
}

func (o *operand) termsAt(e int, terms float64) float64 {
	if o.scale != nil {
		terms += o.scale[e]
	}
	terms += o.slack
	if o.factor != 0 {
		terms *= o.factor
	}
	return terms
}

func describe(m tensor.Matrix) string {
	return fmt.Sprintf("%d x %d of %s with a stride of %d", m.Rows, m.Cols, m.Type, m.Stride)
}
