//go:build cuda

package device

import "github.com/hopmesh/hopmesh/cuda/driver"

// Counts are of what a Device has handed to its GPU.
type Counts struct {
	driver.Counts
	Products int // by cuBLAS, and none of the kernels
	Copies   int
	Waits    int // for the GPU
}

// Counts is what has been handed over since the device was opened.
func (d *Device) Counts() Counts {
	d.counts.Counts = d.tape.Counts()
	return d.counts
}

// flush gives the GPU what operations have put on the tape. Whatever goes to the stream by
// another way, or takes memory away, comes after it. It says whether there is no error
// so far.
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
