//go:build cuda

package device

import (
	"bytes"
	"errors"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

const (
	loanBytes = 2 << 20 // of an image: the most that a tape may borrow
	images    = 4
	alike     = 1 << 10 // the least for which a comparison with earlier loans is worthwhile
)

// loans holds the host lists that kernels on the tape read. They are gathered in pinned
// memory and sent to the GPU in one copy before the tape is submitted. Each tape has the
// next image, so that an operation during which the tape was submitted keeps its lists.
type loans struct {
	here  driver.Pinned // images of loanBytes
	there driver.Memory
	past  [images]driver.Event // after the copy of an image
	waits [images]bool
	image int
	used  int // bytes of the image
	lists []loan
}

// loan is the place of a list in the image.
type loan struct{ from, to int }

func (l *loans) open(on *driver.Thread) (err error) {
	l.lists = make([]loan, 0, loanBytes/alignment)
	if l.here, err = on.AllocPinned(images * loanBytes); err != nil {
		return err
	}
	if l.there, err = on.Alloc(images * loanBytes); err != nil {
		return err
	}
	for i := range l.past {
		if l.past[i], err = on.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

func (l *loans) close(on *driver.Thread) error {
	err := giveBackPinned(on, l.here)
	if l.there.Len() > 0 {
		err = errors.Join(err, on.Free(l.there))
	}
	for _, e := range l.past {
		err = errors.Join(err, giveBackEvent(on, e))
	}
	*l = loans{}
	return err
}

// lend returns the address that data, which is at most an image, will have in the GPU's
// memory when the tape runs. data may change when lend returns.
func (d *Device) lend(data []byte) address {
	l := &d.loans
	if l.used+len(data) > loanBytes {
		d.flush()
		d.sendLoans() // of an operation that has launched nothing yet
	}
	image := l.here.Bytes()[l.image*loanBytes:][:loanBytes]
	base := address(l.there.Address()).plus(l.image * loanBytes)
	if len(data) >= alike {
		for _, old := range l.lists {
			if bytes.Equal(image[old.from:old.to], data) {
				return base.plus(old.from)
			}
		}
	}
	if l.used == 0 && l.waits[l.image] { // wait for the copy of the image's last use
		d.check(d.on.Await(l.past[l.image]))
		l.waits[l.image] = false
	}
	from := l.used
	copy(image[from:], data)
	l.used = from + aligned(len(data))
	l.lists = append(l.lists, loan{from, from + len(data)})
	return base.plus(from)
}

// sendLoans copies the image to the GPU and switches to the next.
func (d *Device) sendLoans() {
	l := &d.loans
	if l.used == 0 {
		return
	}
	from := l.image * loanBytes
	to := from + min(l.used, loanBytes)
	d.check(d.on.Send(l.there.Slice(from, to), l.here.Slice(from, to), d.stream))
	d.check(d.on.Record(l.past[l.image], d.stream))
	d.counts.Copies++
	l.waits[l.image] = true
	l.image, l.used, l.lists = (l.image+1)%images, 0, l.lists[:0]
}
