//go:build cuda

// Package device implements tensor.Foreign on an NVIDIA GPU: the operations of
// engine/tensor by the kernels of cuda/kernels, over cuda/driver.
//
// An operation checks shapes, copies its host data and records kernels on a tape
// (driver.Tape). The tape is submitted to the one stream when something is read, sent or
// freed, or the tape is full. Anything else that goes to the stream must be preceded by
// flush. Only operations that return numbers wait. Operations call the driver on the
// thread that they are called on. The first error of the driver is kept (Err), and from
// then on operations do nothing.
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
// While its kernels run, an operation may use temporary memory from room, host lists
// through lent, and CSRs through entries and columns. They belong to the operation: the
// next one may overwrite them, since the stream keeps the order.
package device
