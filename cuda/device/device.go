//go:build cuda

package device

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Options are what a device may do differently.
type Options struct {
	// F32 computes products with floats as they are. Else tensor cores round their
	// operands to tf32, 10 bits of fraction, and add up floats: several times as fast.
	F32 bool
}

// Device is one GPU. What an operation needs beside its operands is kept here between
// operations, so that they allocate nothing.
type Device struct {
	gpu     *driver.Device
	on      *driver.Thread // a guest: all calls but those of Open and Close
	stream  driver.Stream
	lane    bool // of another, which has the GPU
	modules []module
	kernels map[string]*driver.Kernel
	name    string
	options Options
	bf16    bool

	err    error  // the first: nothing is done any more
	last   string // the kernel that was handed over last
	closed bool

	arguments []driver.Argument
	scratch   scratch
	tape      *driver.Tape
	loans     loans
	answers   answers
	counts    Counts
	blas      *driver.Blas // nil: products are by our kernels
	staging   staging
	mirrors   mirrors
	lists     lists
	residents []*resident
}

var _ tensor.Foreign = (*Device)(nil)

// Open makes a GPU ready, and its kernels, which may take seconds the first time.
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
	d.on.Leave()
	if err != nil {
		_ = d.gpu.Close() // what it says follows from the same
		return nil, fmt.Errorf("open GPU %d: %w", ordinal, err)
	}
	return d, nil
}

// equip takes what a lane has for itself. Where it fails nothing of that stays taken.
func (d *Device) equip() (err error) {
	if d.stream, err = d.on.NewStream(); err != nil {
		return err
	}
	err = errors.Join(d.staging.open(d.on), d.loans.open(d.on))
	if err == nil {
		d.answers.there, err = d.on.Alloc(answerBytes)
	}
	if err != nil {
		_ = d.giveBack() // what it says follows from the same
	}
	return err
}

// giveBack is the end of what equip has taken, however much that was.
func (d *Device) giveBack() error {
	err := errors.Join(d.on.CloseTape(d.tape), d.staging.close(d.on), d.loans.close(d.on))
	if d.answers.there.Len() > 0 {
		err = errors.Join(err, d.on.Free(d.answers.there))
	}
	return errors.Join(err, d.on.CloseStream(d.stream))
}

// Name is as tensor.Device says.
func (d *Device) Name() string { return d.name }

// Type is F32.
func (d *Device) Type() tensor.Type { return tensor.F32 }

// SetBF16 says whether the operands of products are rounded to BF16 from now on.
func (d *Device) SetBF16(on bool) { d.bf16 = on }

// Free is the GPU's memory in bytes: what is free, and all. Copies of CSRs count as
// free, as they give way.
func (d *Device) Free() (free, total uint64) {
	if !d.begin() {
		return 0, 0
	}
	defer d.end()
	f, t, err := d.on.Memory()
	d.check(err)
	return uint64(f) + uint64(d.mirrors.bytes), uint64(t)
}

// Err is as tensor.Foreign says.
func (d *Device) Err() error {
	if d.begin() {
		defer d.end()
		d.finish()
	}
	return d.err
}

// Close waits for what is under way and gives back all that the device holds itself.
// Arenas, lanes, marks and residents are closed before.
func (d *Device) Close() {
	if d.freeing() {
		d.scratch.close(d)
		d.mirrors.turn++ // no operation uses any
		d.mirrors.drop(d)
		d.check(errors.Join(d.closeBlas(), d.giveBack()))
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
		// The device's own thread hears of it, too, so that it leaves nothing behind of
		// a context that is broken.
		_ = d.gpu.Do(func(t *driver.Thread) error { return t.Synchronize() })
	}
	_ = d.gpu.Close()
}

// begin is what every operation begins with. It says whether there is anything to do;
// then end follows.
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

// freeing is begin of what gives memory back, which goes on after errors that have not
// lost the GPU: others may be using it. The stream is finished; end follows.
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

// check keeps the first error, and says whether there is none so far.
func (d *Device) check(err error) bool {
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("%s: %w", d.name, err)
	}
	return d.err == nil
}

// finish waits until the GPU has done all that it was given.
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
