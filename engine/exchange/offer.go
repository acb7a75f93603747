package exchange

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// An offer is bytes that other nodes may take.
type offer struct {
	tag  Tag
	head []byte   // whole in each answer, whichever columns are requested
	rows [][]byte // none after withdrawing
	own  []uint64 // memory of its own, if the user gives none

	readers   int  // answers that are being written
	asked     bool // by somebody, since it is there
	withdrawn bool
	quiet     chan struct{} // closed when nobody reads the withdrawn rows; nil if nobody waits for it
}

// A lane is the offers under tags of one lane.
type lane struct {
	last, before uint64 // the two latest steps with an offer, which are kept
	offers       map[Tag]*offer
	waiting      []*waiter
	listening    []*waiter // for a question
	idle         []*offer  // for reuse
	reading      int       // answers that are being written, also of offers that are forgotten
}

// A retirement is memory that is given back when no answer of some lanes reads it.
type retirement struct {
	lanes []uint8
	free  func()
}

// A waiter is an answer that waits for an offer, or a Heard that waits for a question.
type waiter struct {
	tag   Tag
	ready chan struct{} // of one: receives once the tag is there, or will never be
}

// step orders tags by when they are used.
func (t Tag) step() uint64 { return uint64(t.Epoch)<<32 | uint64(t.Step) }

// lane returns a lane by its number. There are 256 at most, whoever asks.
func (x *Exchange) lane(number uint8) *lane {
	l := x.lanes[number]
	if l == nil {
		l = &lane{offers: map[Tag]*offer{}}
		x.lanes[number] = l
	}
	return l
}

// blank returns an offer of a lane that is not visible yet, with memory of its own for
// so many bytes. The caller holds the lock.
func (x *Exchange) blank(number uint8, bytes int) *offer {
	l := x.lane(number)
	var o *offer
	if n := len(l.idle); n > 0 {
		o, l.idle = l.idle[n-1], l.idle[:n-1]
	} else {
		o = &offer{}
	}
	o.own = grow(o.own, bytes)
	if bytes > 0 {
		o.rows = append(o.rows, bytesOf(o.own)[:bytes])
	}
	return o
}

// publish makes an offer visible, and drops those of steps long past. The caller holds
// the lock.
func (x *Exchange) publish(t Tag, o *offer) {
	t.part() // reports an index that is too large here, and not on another node
	l := x.lane(t.Lane)
	if t.step() > l.last {
		l.before, l.last = l.last, t.step()
		for old, past := range l.offers {
			if old.step() < l.before {
				l.forget(past)
			}
		}
	}
	o.tag = t
	l.offers[t] = o
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		over := w.tag == t || w.tag.step() < l.before
		if over {
			w.ready <- struct{}{}
		}
		return over
	})
}

// forget removes an offer from the lane. One that is being read is not reused: its
// readers may still look at it.
func (l *lane) forget(o *offer) {
	delete(l.offers, o.tag)
	if o.readers > 0 {
		return
	}
	clear(o.rows)
	*o = offer{head: o.head[:0], rows: o.rows[:0], own: o.own}
	l.idle = append(l.idle, o)
}

// withdraw takes back the rows of an offer. It returns nil or a channel that is closed
// when nobody reads them any more.
func (x *Exchange) withdraw(t Tag) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.lane(t.Lane).offers[t]
	if o == nil {
		return nil
	}
	o.withdrawn = true
	if o.readers == 0 {
		clear(o.rows)
		o.rows = o.rows[:0]
		return nil
	}
	if o.quiet == nil {
		o.quiet = make(chan struct{})
	}
	return o.quiet
}

// await waits for the offer under a tag, and returns it for reading.
func (x *Exchange) await(ctx context.Context, t Tag) (*offer, error) {
	for {
		o, w, err := x.look(t)
		if w == nil {
			return o, err
		}
		select {
		case <-w.ready:
			x.rest(w)
		case <-ctx.Done():
			x.rest(w)
			return nil, fmt.Errorf("wait for the offer of %s: %w", t, context.Cause(ctx))
		}
	}
}

// look returns an offer for reading if it is there, else a waiter for it.
func (x *Exchange) look(t Tag) (*offer, *waiter, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lane(t.Lane)
	if o := l.offers[t]; o != nil {
		o.readers++
		l.reading++
		o.asked = true
		l.listening = slices.DeleteFunc(l.listening, func(w *waiter) bool { return w.hears(t) })
		return o, nil, nil
	}
	if t.step() < l.before {
		return nil, nil, fmt.Errorf("%w: what was offered for %s is forgotten: the node is at epoch %d, step %d",
			peer.ErrRefused, t, l.last>>32, uint32(l.last))
	}
	w := x.waiter(t)
	l.waiting = append(l.waiting, w)
	return nil, w, nil
}

// waiter returns one for a tag. The caller holds the lock.
func (x *Exchange) waiter(t Tag) (w *waiter) {
	if n := len(x.idle); n > 0 {
		w, x.idle = x.idle[n-1], x.idle[:n-1]
	} else {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.tag = t
	return w
}

// hears tells a waiter, if it waits for this tag.
func (w *waiter) hears(t Tag) bool {
	if w.tag != t {
		return false
	}
	w.ready <- struct{}{}
	return true
}

// listen returns a waiter for a question for an offer; nil: it has come, or the offer is
// forgotten.
func (x *Exchange) listen(t Tag) *waiter {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lane(t.Lane)
	if o := l.offers[t]; o == nil || o.asked {
		return nil
	}
	w := x.waiter(t)
	l.listening = append(l.listening, w)
	return w
}

// rest recycles a waiter, whether or not it has received.
func (x *Exchange) rest(w *waiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lane(w.tag.Lane)
	for _, list := range []*[]*waiter{&l.waiting, &l.listening} {
		if i := slices.Index(*list, w); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
	select {
	case <-w.ready:
	default:
	}
	x.idle = append(x.idle, w)
}

// leave ends reading an offer.
func (x *Exchange) leave(o *offer) {
	for _, free := range x.left(o) {
		free()
	}
}

// left ends reading an offer, and returns what frees memory that nobody reads any more.
func (x *Exchange) left(o *offer) (free []func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o.readers--
	x.lane(o.tag.Lane).reading--
	x.retiring = slices.DeleteFunc(x.retiring, func(r retirement) bool {
		over := !x.isRead(r.lanes)
		if over {
			free = append(free, r.free)
		}
		return over
	})
	o.settle()
	return free
}

// isRead reports whether answers of these lanes are being written. The caller holds the
// lock.
func (x *Exchange) isRead(lanes []uint8) bool {
	return slices.ContainsFunc(lanes, func(number uint8) bool { return x.lane(number).reading > 0 })
}

// retire withdraws all offers of some lanes. It reports whether nobody reads them: if
// somebody does, free is called later.
func (x *Exchange) retire(lanes []uint8, free func()) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, number := range lanes {
		for _, o := range x.lane(number).offers {
			o.withdrawn = true
			o.settle()
		}
	}
	if x.isRead(lanes) {
		x.retiring = append(x.retiring, retirement{lanes, free})
		return false
	}
	return true
}

// settle drops the rows of an offer that is withdrawn, if nobody reads them. The caller
// holds the lock.
func (o *offer) settle() {
	if o.readers > 0 || !o.withdrawn {
		return
	}
	clear(o.rows)
	o.rows = o.rows[:0]
	if o.quiet != nil {
		close(o.quiet)
		o.quiet = nil
	}
}
