//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// Stream is a queue of work that the device does in order. Work of different streams is
// ordered only by events.
type Stream struct{ s cu.Stream }

// NewStream makes a stream that does not wait for others.
func (t *Thread) NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return Stream{s}, t.fail("cuStreamCreate", err)
}

// CloseStream closes the stream. Its pending work is still done.
func (t *Thread) CloseStream(s Stream) error { return t.fail("cuStreamDestroy", s.s.Destroy()) }

// Finish waits until the stream has done all its work. It returns faults of kernels,
// which any later call may return as well.
func (t *Thread) Finish(s Stream) error { return t.fail("cuStreamSynchronize", s.s.Synchronize()) }

// Event is a point in the work of a stream.
type Event struct{ e cu.Event }

// NewEvent makes an event. If times is true, it records its time.
func (t *Thread) NewEvent(times bool) (Event, error) {
	flags := cu.DisableTiming
	if times {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	return Event{e}, t.fail("cuEventCreate", err)
}

// CloseEvent frees the event.
func (t *Thread) CloseEvent(e Event) error { return t.fail("cuEventDestroy", cu.DestroyEvent(&e.e)) }

// Record places e after the present work of s.
func (t *Thread) Record(e Event, s Stream) error { return t.fail("cuEventRecord", e.e.Record(s.s)) }

// After makes s wait for the last recording of e.
func (t *Thread) After(s Stream, e Event) error { return t.fail("cuStreamWaitEvent", s.s.Wait(e.e, 0)) }

// Await waits for e.
func (t *Thread) Await(e Event) error { return t.fail("cuEventSynchronize", e.e.Synchronize()) }

// Happened reports whether e has been reached, without waiting.
func (t *Thread) Happened(e Event) (bool, error) {
	// Not by cu, whose error for "not yet" allocates.
	code := C.cuEventQuery(*(*C.CUevent)(unsafe.Pointer(&e.e)))
	if code == C.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	err := t.note(returned("cuEventQuery", code))
	return err == nil, err
}

// Between returns the time from one event to another. Both must have been reached and
// record times.
func (t *Thread) Between(from, to Event) (time.Duration, error) {
	ms, err := from.e.Elapsed(to.e)
	return time.Duration(ms * float64(time.Millisecond)), t.fail("cuEventElapsedTime", err)
}
