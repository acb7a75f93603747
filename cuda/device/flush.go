//go:build cuda

package device

import "github.com/hopmesh/hopmesh/cuda/driver"

// Counts counts what a Device has submitted to its GPU.
type Counts struct {
	driver.Counts
	Products int // by cuBLAS, not counted as kernels
	Copies   int
	Waits    int // times it waited for the GPU
}

// Counts returns the counts since the device was opened.
func (d *Device) Counts() Counts {
	d.counts.Counts = d.tape.Counts()
	return d.counts
}

// flush submits the tape to the GPU. It must come before anything that uses the stream in
// another way or frees memory. It reports whether there is no error so far.
func (d *Device) flush() bool {
	if d.err != nil {
		d.tape.Forget()
		return false
	}
	if d.tape.Empty() {
		return true
	}
	d.sendLoans()
	return d.check(d.on.Play(d.tape, d.stream))
}
