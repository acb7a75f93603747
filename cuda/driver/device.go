//go:build cuda

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gorgonia.org/cu"
)

// Device is one GPU. It has a goroutine that is locked to its own thread, which holds the
// device's context.
type Device struct {
	info    Info
	context cu.CUContext // the primary one, set before Open returns

	turn   sync.Mutex // one Do at a time
	closed bool       // guarded by turn
	ask    chan func(*Thread) error
	answer chan answer
	ended  chan struct{} // closed when the goroutine has ended
}

type answer struct {
	err      error
	panicked any
}

// Thread is the device's own thread: its methods call the driver. It is passed to
// functions that run there and must not be used outside of them.
type Thread struct {
	ordinal cu.Device
	context cu.CUContext
	lost    error // the first error that made the context unusable
}

// fault is what lost a device of this process. From then on the driver refuses every
// context to the process, also after the lost one was reset.
var fault struct {
	sync.Mutex
	err error
}

// lostBefore returns the error of Open after a device was lost, and nil before.
func lostBefore() error {
	fault.Lock()
	defer fault.Unlock()
	if fault.err == nil {
		return nil
	}
	return fmt.Errorf("a GPU failed before, and this program has to be started anew to use one again: %w", fault.err)
}

// Open opens the device. It uses the primary context, which NVIDIA's libraries in the
// same process share.
func Open(ordinal int) (*Device, error) {
	if err := open(); err != nil {
		return nil, err
	}
	if err := lostBefore(); err != nil {
		return nil, fmt.Errorf("open GPU %d: %w", ordinal, err)
	}
	i, err := info(ordinal)
	if err != nil {
		return nil, fmt.Errorf("open GPU %d: %w", ordinal, err)
	}
	d := &Device{info: i, ask: make(chan func(*Thread) error), answer: make(chan answer), ended: make(chan struct{})}
	ready := make(chan error, 1)
	go d.run(ready)
	if err := <-ready; err != nil {
		<-d.ended
		return nil, fmt.Errorf("open GPU %d: %w", ordinal, err)
	}
	return d, nil
}

// Info returns the device's description.
func (d *Device) Info() Info { return d.info }

// Do runs f on the device's thread and returns its error. A panic in f is raised in the
// caller. Calls are serialised. f must not call Do, nor end its goroutine, as methods
// such as testing.T.FailNow do.
//
// Once the device is lost, Do does not run f and returns the error that lost it.
func (d *Device) Do(f func(*Thread) error) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.closed {
		return ErrClosed
	}
	select {
	case d.ask <- f:
	case <-d.ended:
		return ErrClosed
	}
	select {
	case a := <-d.answer:
		if a.panicked != nil {
			panic(a.panicked)
		}
		return a.err
	case <-d.ended:
		return fmt.Errorf("%w: a function ended the goroutine of its thread", ErrClosed)
	}
}

// Close waits for the device's work and closes it. Memory, streams and kernels that were
// not freed are freed with the context, unless others in this process use it.
func (d *Device) Close() error {
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	close(d.ask)
	var err error
	select {
	case a := <-d.answer:
		err = a.err
	case <-d.ended:
	}
	<-d.ended
	return err
}

// run is the device's goroutine. It never unlocks its thread, so that the thread ends
// with it, and no context stays behind on the thread.
func (d *Device) run(ready chan<- error) {
	defer close(d.ended)
	runtime.LockOSThread()
	t := &Thread{ordinal: cu.Device(d.info.Ordinal)}
	if err := t.begin(); err != nil {
		ready <- err
		return
	}
	d.context = t.context
	ready <- nil
	for f := range d.ask {
		d.answer <- t.call(f)
	}
	d.answer <- answer{err: t.end()}
}

func (t *Thread) call(f func(*Thread) error) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a.panicked = p
		}
	}()
	if t.lost == nil {
		a.err = f(t)
		if a.err == nil {
			return a
		}
	}
	if t.lost != nil && !errors.Is(a.err, ErrLost) {
		a.err = errors.Join(a.err, t.lost)
	}
	return a
}

func (t *Thread) begin() error {
	context, err := t.ordinal.RetainPrimaryCtx()
	if err != nil {
		return failed("cuDevicePrimaryCtxRetain", err)
	}
	t.context = context
	if err := cu.SetCurrentContext(context); err != nil {
		return errors.Join(failed("cuCtxSetCurrent", err), t.release())
	}
	return nil
}

// end returns no error if the device is lost, since Do has returned that error.
func (t *Thread) end() error {
	if t.lost == nil {
		if err := t.Synchronize(); err != nil {
			return errors.Join(err, t.release())
		}
		return t.release()
	}
	// A context that faulted is torn down for all who share it, so that other processes
	// get the memory. This one gets no other.
	fault.Lock()
	fault.err = t.lost
	fault.Unlock()
	var err error
	if reset := t.ordinal.ResetPrimaryCtx(); reset != nil {
		err = failed("cuDevicePrimaryCtxReset", reset)
	}
	// Resetting the context does not drop the references to it.
	return errors.Join(unlessLost(err), unlessLost(t.release()))
}

func unlessLost(err error) error {
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

func (t *Thread) release() error {
	if err := t.ordinal.ReleasePrimaryCtx(); err != nil {
		return failed("cuDevicePrimaryCtxRelease", err)
	}
	return nil
}

// fail returns the error of a call on this thread. If the error means that the device is
// lost, it records that. err may be nil.
func (t *Thread) fail(call string, err error) error {
	if err == nil {
		return nil
	}
	return t.note(failed(call, err))
}

func (t *Thread) note(err error) error {
	if t.lost == nil && errors.Is(err, ErrLost) {
		t.lost = err
	}
	return err
}

// Synchronize waits until the device has done all work it was given.
func (t *Thread) Synchronize() error { return t.fail("cuCtxSynchronize", cu.Synchronize()) }

// Memory returns the free and the total bytes of the device's memory.
func (t *Thread) Memory() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, t.fail("cuMemGetInfo", err)
}
