//go:build cuda

// Package device is an NVIDIA GPU as a tensor.Foreign: the operations of engine/tensor
// by the kernels of cuda/kernels, over cuda/driver.
//
// An operation checks shapes, copies what it is given of the host's memory and puts
// kernels on a tape (driver.Tape), which one stream gets when something is read, sent or
// given back, or the tape is full: flush comes before whatever else goes to the stream.
// It waits for nothing, and calls the driver on the thread that it is called on. Only
// what returns numbers waits. The first error of the driver is
// kept (Err), and from then on operations do nothing.
//
// An operation is written like this:
//
//	func (d *Device) ScaleRows(y, x, scale tensor.Matrix) {
//		// panic if shapes are wrong
//		if !d.begin() {
//			return
//		}
//		defer d.end()
//		d.launch("scale_rows", byRows(y.Rows, y.Cols), at(y), stride(y), ...)
//	}
//
// Memory that it needs while its kernels run comes from room, lists of the host's from
// lent, CSRs from entries and columns; all of it belongs to the operation, and the next
// may overwrite it, as one stream does everything in its order.
package device
