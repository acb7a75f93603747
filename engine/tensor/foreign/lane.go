package foreign

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Lane is as tensor.Foreign says.
func (d *Device) Lane() (tensor.Foreign, error) {
	l := &Device{cpu: cpu.New(1), last: math.MaxInt, memory: d.memory, copies: map[uint64]*kept{}}
	if d.made != nil {
		d.made(l)
	}
	return l, nil
}

// OnLane has f see each lane that is made from now on.
func (d *Device) OnLane(f func(lane *Device)) { d.made = f }

// HostArena is as tensor.Foreign says.
func (d *Device) HostArena(bytes int) (tensor.Arena, error) { return d.cpu.NewArena(bytes) }

// A copying is what was brought. It is done as late as may be, so that who does not wait
// for it, or changes what is copied before, sees other numbers.
type copying struct{ to, from tensor.Matrix }

// arrive does what was brought, and returns room for more.
func arrive(late []copying) []copying {
	for _, c := range late {
		bytes := func(m tensor.Matrix) []float32 {
			return tensor.Over(tensor.F32, 1, m.Rows*m.Cols*m.Type.Bytes()/4, 0, m.Base()).F32()
		}
		copy(bytes(near(c.to)), bytes(c.from))
	}
	return late[:0]
}

// Bring is as tensor.Foreign says.
func (d *Device) Bring(to, from tensor.Matrix) {
	if to.Rows != from.Rows || to.Cols != from.Cols || to.Type != from.Type || to.Rows > 1 && (to.Stride != to.Cols || from.Stride != from.Cols) {
		panic(fmt.Sprintf("foreign: %d x %d of %s are brought to %d x %d of %s", from.Rows, from.Cols, from.Type, to.Rows, to.Cols, to.Type))
	}
	d.done++
	d.late = append(d.late, copying{to, from})
}

type mark struct {
	late []copying
	err  error
}

// NewMark is as tensor.Foreign says.
func (d *Device) NewMark() (tensor.Mark, error) { return &mark{}, nil }

// Mark is as tensor.Foreign says.
func (d *Device) Mark(m tensor.Mark) {
	k := m.(*mark)
	k.err, k.late, d.late = d.err, append(k.late[:0], d.late...), d.late[:0]
}

// After is as tensor.Foreign says.
func (d *Device) After(m tensor.Mark) {
	k := m.(*mark)
	if d.err == nil {
		d.err = k.err
	}
	k.late = arrive(k.late)
}

// Close is as tensor.Mark says.
func (*mark) Close() {}
