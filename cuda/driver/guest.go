//go:build cuda

package driver

import (
	"runtime"

	"gorgonia.org/cu"
)

// Guest returns a Thread for calls from any goroutine, between Enter and Leave. That
// costs a fraction of one launch, whereas Do costs two thread switches. Only one
// goroutine at a time may use a guest and what it made; Do and other guests may run
// concurrently. Nobody may be between Enter and Leave when the device is closed, or enter
// afterwards.
func (d *Device) Guest() *Thread {
	return &Thread{ordinal: cu.Device(d.info.Ordinal), context: d.context}
}

// Enter makes the device's context current on the calling goroutine's thread, and locks
// the goroutine to it until Leave.
func (t *Thread) Enter() error {
	runtime.LockOSThread()
	return t.fail("cuCtxSetCurrent", cu.SetCurrentContext(t.context))
}

// Leave must follow every Enter, even one that failed. The context stays current on the
// thread, which is harmless, since every user of the driver enters first.
func (t *Thread) Leave() { runtime.UnlockOSThread() }
