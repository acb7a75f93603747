//go:build cuda

package device

import (
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Lane implements tensor.Foreign. A lane is a Device on the same GPU that shares memory
// and loaded modules, but has its own stream and its own temporary memory.
func (d *Device) Lane() (tensor.Foreign, error) {
	l := &Device{
		gpu: d.gpu, on: d.gpu.Guest(), lane: true, options: d.options, name: d.name,
		modules: d.modules, kernels: map[string]*driver.Kernel{}, tape: driver.NewTape(),
	}
	l.mirrors.most = d.mirrors.most
	err := l.on.Enter()
	defer l.on.Leave()
	if err == nil {
		err = l.find()
	}
	if err == nil {
		err = l.equip()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: a lane: %w", d.name, err)
	}
	return l, nil
}

// Bring implements tensor.Foreign.
func (d *Device) Bring(to, from tensor.Matrix) {
	mustBe("what is brought", from, to.Type, to.Rows, to.Cols)
	must((to.Rows < 2 || to.Stride == to.Cols) && (from.Rows < 2 || from.Stride == from.Cols), "what is brought lies without gaps")
	bytes := to.Rows * to.Cols * to.Type.Bytes()
	if bytes == 0 || !d.begin() {
		return
	}
	defer d.end()
	if d.flush() {
		d.counts.Copies++
		d.check(d.on.Send(addressOf(to).memory(bytes), driver.HostAt(from.Base(), bytes), d.stream))
	}
}

// mark is an event, and the error of its lane when it was recorded.
type mark struct {
	device *Device
	event  driver.Event
	marked bool
	err    error
}

// NewMark implements tensor.Foreign.
func (d *Device) NewMark() (tensor.Mark, error) {
	if !d.begin() {
		return nil, d.err
	}
	defer d.end()
	e, err := d.on.NewEvent(false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return &mark{device: d, event: e}, nil
}

// Mark implements tensor.Foreign.
func (d *Device) Mark(m tensor.Mark) {
	k := m.(*mark)
	if d.begin() {
		if d.flush() {
			k.marked = d.check(d.on.Record(k.event, d.stream))
		}
		d.end()
	}
	k.err = d.err
}

// After implements tensor.Foreign. Blocks sampled for the lane wait, too.
func (d *Device) After(m tensor.Mark) {
	k := m.(*mark)
	if d.err == nil {
		d.err = k.err
	}
	if !k.marked || !d.begin() {
		return
	}
	defer d.end()
	if !d.flush() {
		return
	}
	d.check(d.on.After(d.stream, k.event))
	for _, r := range d.residents {
		d.check(d.on.After(r.sampler.Stream(), k.event))
	}
}

// Close implements tensor.Mark.
func (k *mark) Close() {
	d := k.device
	if d.freeing() {
		d.check(d.on.CloseEvent(k.event))
		d.end()
	}
}
