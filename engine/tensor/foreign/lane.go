package foreign

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Lane implements tensor.Foreign.
func (d *Device) Lane() (tensor.Foreign, error) {
	l := &Device{cpu: cpu.New(1), last: math.MaxInt, memory: d.memory, copies: map[uint64]*kept{}}
	if d.made != nil {
		d.made(l)
	}
	return l, nil
}

// OnLane makes each new lane be passed to f.
func (d *Device) OnLane(f func(lane *Device)) { d.made = f }

// HostArena implements tensor.Foreign.
func (d *Device) HostArena(bytes int) (tensor.Arena, error) { return d.cpu.NewArena(bytes) }

// A copying is a pending copy of Bring. It is done as late as possible, so that code
// which does not wait for it, or modifies its source early, sees wrong numbers.
type copying struct{ to, from tensor.Matrix }

// arrive runs the pending copies, and returns the emptied slice.
func arrive(late []copying) []copying {
	for _, c := range late {
		bytes := func(m tensor.Matrix) []float32 {
			return tensor.Over(tensor.F32, 1, m.Rows*m.Cols*m.Type.Bytes()/4, 0, m.Base()).F32()
		}
		copy(bytes(near(c.to)), bytes(c.from))
	}
	return late[:0]
}

// Bring implements tensor.Foreign.
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

// NewMark implements tensor.Foreign.
func (d *Device) NewMark() (tensor.Mark, error) { return &mark{}, nil }

// Mark implements tensor.Foreign.
func (d *Device) Mark(m tensor.Mark) {
	k := m.(*mark)
	k.err, k.late, d.late = d.err, append(k.late[:0], d.late...), d.late[:0]
}

// After implements tensor.Foreign.
func (d *Device) After(m tensor.Mark) {
	k := m.(*mark)
	if d.err == nil {
		d.err = k.err
	}
	k.late = arrive(k.late)
}

// Close implements tensor.Mark.
func (*mark) Close() {}
