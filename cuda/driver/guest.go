//go:build cuda

package driver

import (
	"runtime"

	"gorgonia.org/cu"
)

// Guest is a Thread for calls from whatever thread a goroutine happens to be on,
// between Enter and Leave: that costs a fraction of one launch, where Do costs two
// changes of threads. One goroutine at a time uses it, and what it made; Do and other
// guests may go on beside it. Nobody is between Enter and Leave when the device is
// closed, or enters after.
func (d *Device) Guest() *Thread {
	return &Thread{ordinal: cu.Device(d.info.Ordinal), context: d.context}
}

// Enter brings the device's context to the calling goroutine's thread, which it keeps
// until Leave.
func (t *Thread) Enter() error {
	runtime.LockOSThread()
	return t.fail("cuCtxSetCurrent", cu.SetCurrentContext(t.context))
}

// Leave follows every Enter, even one that failed. The context stays on the thread,
// where it harms nobody: whoever calls the driver enters first.
func (t *Thread) Leave() { runtime.UnlockOSThread() }
