package contract

import (
	"hash/fnv"
	"math"
	"runtime/debug"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A reporter is the part of *testing.T that the suite uses.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// The sides that a case is computed on.
const (
	judged     = iota // the device under test
	right             // the device it is compared with
	magnitudes        // the reference, on the magnitudes of all operands
	sides
)

const (
	mostFaults = 3       // reported per check
	arenaBytes = 1 << 20 // initial size
)

// A bench runs the cases of one check. A case creates its operands, computes on both
// sides, and is compared when it ends.
type bench struct {
	reporter
	devices   [sides]tensor.Device
	arenas    [sides]tensor.Arena
	tolerance float64 // 0: the bits must be the same
	draws     keyed.Sequence
	title     string // of the case
	operands  []*operand
	faults    int
}

func newBench(r reporter, name string, d, judge tensor.Device, tolerance float64) *bench {
	seed := fnv.New64a()
	seed.Write([]byte(name))
	b := &bench{
		reporter: r, tolerance: tolerance, draws: keyed.Key(seed.Sum64()).Draws(),
		devices: [sides]tensor.Device{d, judge, reference.New()},
	}
	for i, d := range b.devices {
		a, err := d.NewArena(arenaBytes)
		if err != nil {
			panic(err)
		}
		b.arenas[i] = a
	}
	return b
}

func (b *bench) close() {
	for _, a := range b.arenas {
		a.Close()
	}
}

// try runs one case.
func (b *bench) try(title string, f func()) {
	b.Helper()
	if b.faults >= mostFaults {
		return
	}
	b.title, b.operands = title, nil
	for _, a := range b.arenas {
		a.Reset()
	}
	if !b.survives(f) {
		return
	}
	for _, o := range b.operands {
		b.compare(o)
	}
}

func (b *bench) survives(f func()) (ok bool) {
	b.Helper()
	defer func() {
		if p := recover(); p != nil {
			b.fault("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f()
	return true
}

func (b *bench) fault(format string, args ...any) {
	b.Helper()
	b.faults++
	if b.faults <= mostFaults {
		b.Errorf("%s: "+format, append([]any{b.title}, args...)...)
	}
}

// A side is one device and its copies of the operands.
type side struct {
	tensor.Device
	at int
}

// both computes on the device and on the one it is compared with.
func (b *bench) both(op func(s side)) {
	op(side{b.devices[judged], judged})
	op(side{b.devices[right], right})
}

// terms also computes on magnitudes, which yields the magnitude of each element's terms.
// It is for operations that are linear in the operands that change sign.
func (b *bench) terms(op func(s side)) {
	b.both(op)
	op(side{b.devices[magnitudes], magnitudes})
	for _, o := range b.operands {
		o.summed = true
	}
}

// of returns this side's matrix, an empty one for nil.
func (s side) of(o *operand) tensor.Matrix {
	if o == nil {
		return tensor.Matrix{}
	}
	return o.view[s.at]
}

// number returns x, or its magnitude on the magnitudes' side.
func (s side) number(x float64) float64 {
	if s.at == magnitudes {
		return math.Abs(x)
	}
	return x
}

// agree reports whether two numbers agree, where terms is the magnitude of the terms that
// they are sums of.
func (b *bench) agree(got, want, terms float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return true
	}
	if math.IsInf(got, 0) || math.IsInf(want, 0) {
		return false
	}
	// Beside rounding there is underflow, which has no relative bound.
	return math.Abs(got-want) <= b.tolerance*(terms+math.Abs(want)+1e-31)
}

// scalar compares numbers outside of matrices.
func (b *bench) scalar(what string, got, want, terms float64) {
	b.Helper()
	if !b.agree(got, want, terms) {
		b.fault("%s is %g, want %g", what, got, want)
	}
}
