//go:build cuda

package driver

import (
	"errors"
	"slices"
	"unsafe"
)

const (
	mostLinks  = 128 // of a tape
	fewLinks   = 4   // of a chain: fewer are launched by themselves
	mostChains = 32
	mostRecent = 64 // rows of kernels that are remembered, having been seen once
	parameters = 24 // of a kernel, mostly
)

// A Tape is launches that a stream has yet to be given, in their order. A row of kernels
// that is seen again becomes a chain, which the device is given at once: in each step of
// a training the same kernels follow each other, with other counts, addresses, keys and
// rates. One goroutine uses it.
type Tape struct {
	// Single has all kernels launched one by one. So they are, too, once the driver has
	// refused a chain, which it can do without.
	Single bool

	links     []Link
	arguments []Argument // of links

	chains []*kept
	recent [mostRecent]uint64
	seen   int
	turn   uint64
	counts Counts
}

// kept is a chain with the kernels that it has.
type kept struct {
	*Chain
	kernels []*Kernel
	sum     uint64
	turn    uint64 // in which it was launched last
}

// Counts are of what a tape has given to its stream.
type Counts struct {
	Kernels int // of which
	Alone   int // were launched by themselves, and the others in
	Chains  int // launches of several
}

// NewTape makes one.
func NewTape() *Tape {
	return &Tape{links: make([]Link, 0, mostLinks), arguments: make([]Argument, 0, mostLinks*parameters)}
}

// Counts is what was given since the tape was made.
func (p *Tape) Counts() Counts { return p.counts }

// Empty says whether there is nothing to give; Full, that it has to be given before more
// is recorded.
func (p *Tape) Empty() bool { return len(p.links) == 0 }

// Full is as Empty says.
func (p *Tape) Full() bool { return len(p.links) == mostLinks }

// Record puts a launch on the tape. It allocates nothing.
func (p *Tape) Record(k *Kernel, s Shape, arguments ...Argument) {
	from := len(p.arguments)
	p.arguments = append(p.arguments, arguments...)
	p.links = append(p.links, Link{k, s, p.arguments[from:len(p.arguments):len(p.arguments)]})
}

// Forget takes all off the tape.
func (p *Tape) Forget() { p.links, p.arguments = p.links[:0], p.arguments[:0] }

// Play gives s what is on the tape, and takes it off. It allocates nothing for a row of
// kernels that it has seen twice.
func (t *Thread) Play(p *Tape, s Stream) error {
	defer p.Forget()
	if p.Empty() {
		return nil
	}
	p.counts.Kernels += len(p.links)
	c, err := t.chain(p)
	if err == nil && c != nil {
		if err = t.set(p, c); err == nil {
			p.counts.Chains++
			return t.LaunchChain(c.Chain, s)
		}
	}
	switch {
	case errors.Is(err, ErrLost) || errors.Is(err, ErrArgument):
		return err
	case err != nil: // no memory for chains, or a driver that makes none
		p.Single = true
	}
	for i := range p.links {
		l := &p.links[i]
		l.Shape.Stream = s
		if err := t.Launch(l.Kernel, l.Shape, l.Arguments...); err != nil {
			return err
		}
		p.counts.Alone++
	}
	return nil
}

// set has a chain be what is on the tape.
func (t *Thread) set(p *Tape, c *kept) error {
	for i := range p.links {
		if err := t.SetLink(c.Chain, i, &p.links[i]); err != nil {
			return err
		}
	}
	return nil
}

// chain is the one for what is on the tape, nil if there is none yet: kernels that
// followed each other once may never do so again.
func (t *Thread) chain(p *Tape) (*kept, error) {
	if len(p.links) < fewLinks || p.Single {
		return nil, nil
	}
	p.turn++
	sum := p.sum()
	for _, c := range p.chains {
		if c.sum == sum && slices.EqualFunc(c.kernels, p.links, func(k *Kernel, l Link) bool { return k == l.Kernel }) {
			c.turn = p.turn
			return c, nil
		}
	}
	if !slices.Contains(p.recent[:], sum) {
		p.recent[p.seen%mostRecent] = sum
		p.seen++
		return nil, nil
	}
	return t.keep(p, sum)
}

// keep makes a chain of what is on the tape. The one that was not used for longest goes
// if there are too many.
func (t *Thread) keep(p *Tape, sum uint64) (*kept, error) {
	if len(p.chains) == mostChains {
		oldest := slices.MinFunc(p.chains, func(a, b *kept) int { return int(a.turn) - int(b.turn) })
		p.chains = slices.DeleteFunc(p.chains, func(c *kept) bool { return c == oldest })
		if err := t.CloseChain(oldest.Chain); err != nil {
			return nil, err
		}
	}
	made, err := t.NewChain(p.links)
	if err != nil {
		return nil, err
	}
	c := &kept{Chain: made, sum: sum, turn: p.turn}
	for i := range p.links {
		c.kernels = append(c.kernels, p.links[i].Kernel)
	}
	p.chains = append(p.chains, c)
	return c, nil
}

// sum is a number of the kernels on the tape, and never 0.
func (p *Tape) sum() uint64 {
	h := uint64(len(p.links))
	for i := range p.links {
		h = (h ^ uint64(uintptr(unsafe.Pointer(p.links[i].Kernel)))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h | 1
}

// CloseTape gives its chains back.
func (t *Thread) CloseTape(p *Tape) error {
	var err error
	for _, c := range p.chains {
		err = errors.Join(err, t.CloseChain(c.Chain))
	}
	p.chains = nil
	return err
}
