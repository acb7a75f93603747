//go:build cuda

package device

import (
	"errors"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

// What is copied between the host and the GPU passes through segments.
const (
	segments     = 4
	segmentBytes = 2 << 20
)

// staging is pinned memory, used round and round: a segment is used again when the
// stream is past what was copied of it.
type staging struct {
	memory  driver.Pinned
	past    [segments]driver.Event
	waits   [segments]bool // whether past was recorded
	segment int
	used    int // bytes of it
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

// giveBackPinned and giveBackEvent stand what was never taken.
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

// pinned is so many bytes, at most a segment, for a copy that is handed over next. Its
// length is 0 if there was an error.
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

// send copies to the GPU, in the stream's order; data may change when it returns.
func (d *Device) send(to address, data []byte) {
	for len(data) > 0 && d.err == nil {
		p := d.pinned(min(len(data), segmentBytes))
		n := copy(p.Bytes(), data)
		d.hand(to, p)
		to, data = to.plus(n), data[n:]
	}
}

// hand copies what pinned has returned.
func (d *Device) hand(to address, p driver.Pinned) {
	if p.Len() > 0 && d.flush() {
		d.counts.Copies++
		d.check(d.on.Send(to.memory(p.Len()), p, d.stream))
	}
}

// fetch waits for the stream, and returns what lies at from, which is good until the
// next copy; nil if there was an error.
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
