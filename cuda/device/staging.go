//go:build cuda

package device

import (
	"errors"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

// Copies between the host and the GPU pass through segments.
const (
	segments     = 4
	segmentBytes = 2 << 20
)

// staging is a ring of pinned memory. A segment is reused when the stream has completed
// the copies from it.
type staging struct {
	memory  driver.Pinned
	past    [segments]driver.Event
	waits   [segments]bool // whether past was recorded
	segment int
	used    int // bytes of the segment
}

func (s *staging) open(on *driver.Thread) (err error) {
	if s.memory, err = on.AllocPinned(segments * segmentBytes); err != nil {
		return err
	}
	for i := range s.past {
		if s.past[i], err = on.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) close(on *driver.Thread) error {
	err := giveBackPinned(on, s.memory)
	for _, e := range s.past {
		err = errors.Join(err, giveBackEvent(on, e))
	}
	*s = staging{}
	return err
}

// giveBackPinned and giveBackEvent ignore what was never allocated.
func giveBackPinned(on *driver.Thread, p driver.Pinned) error {
	if p.Len() == 0 {
		return nil
	}
	return on.FreePinned(p)
}

func giveBackEvent(on *driver.Thread, e driver.Event) error {
	if e == (driver.Event{}) {
		return nil
	}
	return on.CloseEvent(e)
}

// pinned returns pinned memory, of at most a segment, for a copy that is submitted next.
// Its length is 0 after an error.
func (d *Device) pinned(bytes int) driver.Pinned {
	s := &d.staging
	if s.used+bytes > segmentBytes {
		d.check(d.on.Record(s.past[s.segment], d.stream))
		s.waits[s.segment] = true
		s.segment, s.used = (s.segment+1)%segments, 0
		if s.waits[s.segment] {
			d.check(d.on.Await(s.past[s.segment]))
		}
	}
	if d.err != nil {
		return driver.Pinned{}
	}
	from := s.segment*segmentBytes + s.used
	s.used += (bytes + 63) &^ 63
	return s.memory.Slice(from, from+bytes)
}

// send copies data to the GPU, in the stream's order. data may change when it returns.
func (d *Device) send(to address, data []byte) {
	for len(data) > 0 && d.err == nil {
		p := d.pinned(min(len(data), segmentBytes))
		n := copy(p.Bytes(), data)
		d.hand(to, p)
		to, data = to.plus(n), data[n:]
	}
}

// hand copies the memory that pinned has returned.
func (d *Device) hand(to address, p driver.Pinned) {
	if p.Len() > 0 && d.flush() {
		d.counts.Copies++
		d.check(d.on.Send(to.memory(p.Len()), p, d.stream))
	}
}

// fetch waits for the stream and returns the bytes at from. They are valid until the next
// copy. It returns nil after an error.
func (d *Device) fetch(from address, bytes int) driver.Pinned {
	p := d.pinned(bytes)
	if !d.flush() {
		return driver.Pinned{}
	}
	d.counts.Copies++
	if !d.check(d.on.Fetch(p, from.memory(p.Len()), d.stream)) || !d.finish() {
		return driver.Pinned{}
	}
	return p
}
