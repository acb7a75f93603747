//go:build cuda

package device

import (
	"errors"
	"time"
)

// Time returns how long the GPU takes for the operations, measured between two events. It
// includes the time in which the operations themselves wait.
func (d *Device) Time(operations func()) (took time.Duration, err error) {
	if !d.begin() {
		return 0, d.err
	}
	defer d.end()
	from, err := d.on.NewEvent(true)
	to, err2 := d.on.NewEvent(true)
	if d.check(errors.Join(err, err2)) && d.finish() && d.check(d.on.Record(from, d.stream)) {
		operations()
		if d.flush() && d.check(d.on.Record(to, d.stream)) && d.check(d.on.Await(to)) {
			took, err = d.on.Between(from, to)
			d.check(err)
		}
	}
	d.check(errors.Join(d.on.CloseEvent(from), d.on.CloseEvent(to)))
	return took, d.err
}
