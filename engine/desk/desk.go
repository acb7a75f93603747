package desk

import (
	"context"
	"errors"
	"sync"
)

// ErrLeft is the error of a run whose program left while it computed.
var ErrLeft = errors.New("the program that computes the steps of the job has left this node")

// errTaken refuses a second program.
var errTaken = errors.New("another program is attached to the job on this node: end that one first")

// A Desk belongs to one job on one node. Its methods may be called from any goroutine.
type Desk struct {
	mu       sync.Mutex
	changed  chan struct{} // closed when what follows changes
	program  *Program      // attached; nil: none is
	visit    *Visit        // of the run; nil: none is under way
	end      *Ending       // of the job; nil: it goes on
	memories uint64        // made so far
	waits    bool          // a run waits for a program to come
}

// An Ending is how a job ended.
type Ending struct {
	Done bool
	Why  string // else
}

// New returns a desk.
func New() *Desk { return &Desk{changed: make(chan struct{})} }

// alter changes the desk, and has everybody look again.
func (d *Desk) alter(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
}

// End answers all questions from now on by how the job ended; nil: it goes on after all.
func (d *Desk) End(e *Ending) {
	d.mu.Lock()
	same := e == d.end || e != nil && d.end != nil && *e == *d.end
	d.mu.Unlock()
	if !same {
		d.alter(func() { d.end = e })
	}
}

// Waits reports whether a run waits for a program to come.
func (d *Desk) Waits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waits
}

// Attach attaches a program. One at a time can be.
func (d *Desk) Attach() (*Program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program != nil {
		return nil, errTaken
	}
	d.program = &Program{desk: d, gone: make(chan struct{})}
	return d.program, nil
}

// Close makes the program leave.
func (d *Desk) Close() {
	d.mu.Lock()
	p := d.program
	d.mu.Unlock()
	if p != nil {
		p.Leave()
	}
}

// A Program is one that is attached. One goroutine at a time asks.
type Program struct {
	desk  *Desk
	gone  chan struct{}
	leave sync.Once
	visit *Visit // that it has said hello to
}

// Leave ends the program's part. It may be called at any time, and again.
func (p *Program) Leave() {
	p.leave.Do(func() {
		close(p.gone)
		p.desk.alter(func() { p.desk.program = nil })
	})
}

// Gone is closed when the program has left.
func (p *Program) Gone() <-chan struct{} { return p.gone }

// Ask returns the answer to a question, once there is one. It returns an error only if the
// program has left meanwhile.
func (p *Program) Ask(q Question) (Answer, error) {
	for {
		d := p.desk
		d.mu.Lock()
		v, end, changed := d.visit, d.end, d.changed
		d.mu.Unlock()
		switch {
		case end != nil:
			return ending(*end), nil
		case q.Type != Hello && p.visit == nil:
			return Failed(errors.New("the first question of a program must be hello")), nil
		case q.Type != Hello && p.visit != v && !(v == nil && p.visit.finished):
			return Again(p.visit.why), nil
		case v == nil:
			// A run is yet to begin, or the job's end is yet to be known.
			select {
			case <-changed:
				continue
			case <-p.gone:
				return Answer{}, ErrLeft
			}
		}
		a := &Asking{Question: q, from: p, answer: make(chan Answer, 1)}
		select {
		case v.asked <- a:
		case <-v.over:
			continue
		case <-p.gone:
			return Answer{}, ErrLeft
		}
		p.visit = v
		select {
		case answer := <-a.answer:
			return answer, nil
		case <-v.over:
			select {
			case answer := <-a.answer:
				return answer, nil
			default: // look what comes instead
			}
		case <-p.gone:
			return Answer{}, ErrLeft
		}
	}
}

// An Asking is a question that waits for its answer.
type Asking struct {
	Question
	from   *Program
	answer chan Answer // of one
}

// Answer answers the question. It must be called once at most, and never waits.
func (a *Asking) Answer(answer Answer) { a.answer <- answer }

// A Visit is a run at the desk. Its methods are called from the run's goroutine.
type Visit struct {
	desk  *Desk
	who   *Program // that has said hello; nil: none has
	held  *Asking  // hello of a program that came after another
	asked chan *Asking
	over  chan struct{}

	// Set before over is closed:
	finished bool
	why      string
}

// Open begins a visit. There is one at a time.
func (d *Desk) Open() *Visit {
	v := &Visit{desk: d, asked: make(chan *Asking), over: make(chan struct{})}
	d.alter(func() { d.visit, d.end = v, nil })
	return v
}

// Next returns the next question. The first of a program is hello, and no other is. If the
// program leaves, the error is ErrLeft, and so it is if it says hello once more.
func (v *Visit) Next(ctx context.Context) (*Asking, error) {
	if a := v.held; v.who == nil && a != nil {
		v.who, v.held = a.from, nil
		return a, nil
	}
	var gone <-chan struct{}
	if v.who != nil {
		gone = v.who.gone
	} else {
		v.desk.await(true)
		defer v.desk.await(false)
	}
	for {
		select {
		case a := <-v.asked:
			switch {
			case v.who == nil && a.Type == Hello:
				v.who = a.from
				return a, nil
			case a.Type == Hello:
				v.held = a // what the one before has computed is lost
				return nil, ErrLeft
			case v.who != a.from:
				return nil, ErrLeft
			}
			return a, nil
		case <-gone:
			return nil, ErrLeft
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Forget makes the visit wait for another program. None of what the last one did matters.
func (v *Visit) Forget() { v.who = nil }

// Close ends the visit. finished means that all is done: questions then wait for the job's
// end. Else they are answered by again, with a reason.
func (v *Visit) Close(finished bool, why string) {
	v.finished, v.why = finished, why
	v.desk.alter(func() {
		close(v.over)
		if v.desk.visit == v {
			v.desk.visit = nil
		}
	})
}

func (d *Desk) await(waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits = waits
}
