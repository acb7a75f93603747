//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// A Stream is work for the device that is done in its order, and in no order with
// other streams but that of events.
type Stream struct{ s cu.Stream }

// NewStream makes a stream, which waits for no other.
func (t *Thread) NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return Stream{s}, t.fail("cuStreamCreate", err)
}

// CloseStream gives the stream back; what it has to do is done still.
func (t *Thread) CloseStream(s Stream) error { return t.fail("cuStreamDestroy", s.s.Destroy()) }

// Finish waits until the stream has done all that it was given. Faults of kernels
// are told here, or by any call after.
func (t *Thread) Finish(s Stream) error { return t.fail("cuStreamSynchronize", s.s.Synchronize()) }

// An Event is a point in the work of a stream.
type Event struct{ e cu.Event }

// NewEvent makes an event. Only one that was made for times has a time.
func (t *Thread) NewEvent(times bool) (Event, error) {
	flags := cu.DisableTiming
	if times {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	return Event{e}, t.fail("cuEventCreate", err)
}

// CloseEvent gives the event back.
func (t *Thread) CloseEvent(e Event) error { return t.fail("cuEventDestroy", cu.DestroyEvent(&e.e)) }

// Record puts e behind all that s has to do now.
func (t *Thread) Record(e Event, s Stream) error { return t.fail("cuEventRecord", e.e.Record(s.s)) }

// After lets s go on only after e as it was recorded last.
func (t *Thread) After(s Stream, e Event) error { return t.fail("cuStreamWaitEvent", s.s.Wait(e.e, 0)) }

// Await waits for e.
func (t *Thread) Await(e Event) error { return t.fail("cuEventSynchronize", e.e.Synchronize()) }

// Happened says whether e has been reached; it does not wait.
func (t *Thread) Happened(e Event) (bool, error) {
	// Not by cu, whose error for "not yet" is an allocation.
	code := C.cuEventQuery(*(*C.CUevent)(unsafe.Pointer(&e.e)))
	if code == C.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	err := t.note(returned("cuEventQuery", code))
	return err == nil, err
}

// Between is the time from one event to another, both reached and made for times.
func (t *Thread) Between(from, to Event) (time.Duration, error) {
	ms, err := from.e.Elapsed(to.e)
	return time.Duration(ms * float64(time.Millisecond)), t.fail("cuEventElapsedTime", err)
}
