//go:build cuda

package device

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Options configures a device.
type Options struct {
	// F32 computes products in full float32. Otherwise tensor cores round the operands to
	// tf32, with 10 bits of fraction, and add up floats, which is several times as fast.
	F32 bool
}

// Device is one GPU. It keeps the temporary memory of operations from one to the next, so
// that they allocate nothing.
type Device struct {
	gpu     *driver.Device
	on      *driver.Thread // a guest thread for all calls but those of Open and Close
	stream  driver.Stream
	lane    bool // a lane of another Device, which owns the GPU
	modules []module
	kernels map[string]*driver.Kernel
	name    string
	options Options
	bf16    bool

	err    error  // the first error: nothing is done any more
	last   string // the kernel launched last
	closed bool

	arguments []driver.Argument
	scratch   scratch
	tape      *driver.Tape
	loans     loans
	answers   answers
	counts    Counts
	blas      *driver.Blas // nil: products use our kernels
	staging   staging
	mirrors   mirrors
	lists     lists
	residents []*resident
}

var _ tensor.Foreign = (*Device)(nil)

// Open opens a GPU and loads its kernels, which may take seconds the first time.
func Open(ordinal int, o Options) (*Device, error) {
	gpu, err := driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	info := gpu.Info()
	d := &Device{
		gpu: gpu, on: gpu.Guest(), options: o, kernels: map[string]*driver.Kernel{}, tape: driver.NewTape(),
		name: fmt.Sprintf("cuda:%d (%s, %d GiB)", ordinal, info.Name, info.Memory>>30),
	}
	d.mirrors.most = int(info.Memory / 4)
	err = d.on.Enter()
	if err == nil {
		err = d.load()
	}
	if err == nil {
		err = d.equip()
	}
	if err == nil {
		d.openBlas()
	}
	if err != nil {
		_ = d.unload() // its error would follow from the same cause
	}
	d.on.Leave()
	if err != nil {
		_ = d.gpu.Close() // its error would follow from the same cause
		return nil, fmt.Errorf("open GPU %d: %w", ordinal, err)
	}
	return d, nil
}

// equip allocates what each lane has for itself. If it fails, it frees all of that.
func (d *Device) equip() (err error) {
	if d.stream, err = d.on.NewStream(); err != nil {
		return err
	}
	err = errors.Join(d.staging.open(d.on), d.loans.open(d.on))
	if err == nil {
		d.answers.there, err = d.on.Alloc(answerBytes)
	}
	if err != nil {
		_ = d.giveBack() // its error would follow from the same cause
	}
	return err
}

// giveBack frees what equip has allocated, even if that was only a part.
func (d *Device) giveBack() error {
	err := errors.Join(d.on.CloseTape(d.tape), d.staging.close(d.on), d.loans.close(d.on))
	if d.answers.there.Len() > 0 {
		err = errors.Join(err, d.on.Free(d.answers.there))
	}
	return errors.Join(err, d.on.CloseStream(d.stream))
}

// Name implements tensor.Device.
func (d *Device) Name() string { return d.name }

// Type is F32.
func (d *Device) Type() tensor.Type { return tensor.F32 }

// SetBF16 sets whether the operands of products are rounded to BF16.
func (d *Device) SetBF16(on bool) { d.bf16 = on }

// Free returns the free and the total bytes of the GPU's memory. Copies of CSRs count as
// free, since they are evicted on demand.
func (d *Device) Free() (free, total uint64) {
	if !d.begin() {
		return 0, 0
	}
	defer d.end()
	f, t, err := d.on.Memory()
	d.check(err)
	return uint64(f) + uint64(d.mirrors.bytes), uint64(t)
}

// Err implements tensor.Foreign.
func (d *Device) Err() error {
	if d.begin() {
		defer d.end()
		d.finish()
	}
	return d.err
}

// Close waits for work in progress and frees all that the device itself holds. Arenas,
// lanes, marks and residents must be closed before.
func (d *Device) Close() {
	if d.freeing() {
		d.scratch.close(d)
		d.mirrors.turn++ // no operation uses any mirror
		d.mirrors.drop(d)
		d.check(errors.Join(d.closeBlas(), d.giveBack()))
		if !d.lane {
			d.check(d.unload())
		}
		d.end()
	}
	d.closed = true
	if !d.lane {
		d.closeGPU()
	}
	if d.err == nil {
		d.err = driver.ErrClosed
	}
}

func (d *Device) closeGPU() {
	if d.err != nil {
		// Synchronize on the device's own thread, too, so that a broken context is
		// noticed there and nothing of it stays behind.
		_ = d.gpu.Do(func(t *driver.Thread) error { return t.Synchronize() })
	}
	_ = d.gpu.Close()
}

// begin starts every operation. It reports whether the device can work; only then the
// operation must call end.
func (d *Device) begin() bool {
	if d.err != nil {
		return false
	}
	if !d.check(d.on.Enter()) {
		d.on.Leave()
		return false
	}
	d.mirrors.turn++
	d.scratch.reset(d)
	return true
}

func (d *Device) end() { d.on.Leave() }

// freeing is begin for operations that free memory. They work even after errors that have
// not lost the GPU, since others may be using it. It also finishes the stream.
// If it reports true, end must follow.
func (d *Device) freeing() bool {
	if d.closed || errors.Is(d.err, driver.ErrLost) {
		return false
	}
	err := d.on.Enter()
	if err == nil && !d.finish() {
		err = d.on.Finish(d.stream)
	}
	if d.check(err); err != nil {
		d.on.Leave()
		return false
	}
	return true
}

// check records the first error, and reports whether there is none so far.
func (d *Device) check(err error) bool {
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("%s: %w", d.name, err)
	}
	return d.err == nil
}

// finish waits until the GPU has done all work it was given.
func (d *Device) finish() bool {
	if !d.flush() {
		return false
	}
	d.counts.Waits++
	if err := d.on.Finish(d.stream); err != nil {
		return d.check(fmt.Errorf("%w (the kernel that it was given last is %s)", err, d.last))
	}
	return true
}
