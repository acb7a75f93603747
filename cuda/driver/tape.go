//go:build cuda

package driver

import (
	"errors"
	"slices"
	"unsafe"
)

const (
	mostLinks  = 128 // of a tape
	fewLinks   = 4   // of a chain: fewer are launched one by one
	mostChains = 32
	mostRecent = 64 // sequences of kernels that are remembered after they were seen once
	parameters = 24 // of a typical kernel
)

// Tape records launches that are to be submitted to a stream in order. A sequence of
// kernels that is seen again becomes a chain, which is submitted at once: each training
// step launches the same kernels, with other counts, addresses, keys and rates. One
// goroutine uses it.
type Tape struct {
	// Single launches all kernels one by one. A Tape also does so after the driver has
	// refused a chain.
	Single bool

	links     []Link
	arguments []Argument // of links

	chains []*kept
	recent [mostRecent]uint64
	seen   int
	turn   uint64
	counts Counts
}

// kept is a chain with its kernels.
type kept struct {
	*Chain
	kernels []*Kernel
	sum     uint64
	turn    uint64 // of its last launch
}

// Counts counts what a tape has submitted to its stream.
type Counts struct {
	Kernels int // launched in any way
	Alone   int // of those, launched one by one
	Chains  int // submitted, with the other kernels
}

// NewTape makes an empty Tape.
func NewTape() *Tape {
	return &Tape{links: make([]Link, 0, mostLinks), arguments: make([]Argument, 0, mostLinks*parameters)}
}

// Counts returns the counts since the tape was made.
func (p *Tape) Counts() Counts { return p.counts }

// Empty reports whether there is nothing to submit.
func (p *Tape) Empty() bool { return len(p.links) == 0 }

// Full reports whether the tape must be submitted before more is recorded.
func (p *Tape) Full() bool { return len(p.links) == mostLinks }

// Record adds a launch to the tape. It allocates nothing.
func (p *Tape) Record(k *Kernel, s Shape, arguments ...Argument) {
	from := len(p.arguments)
	p.arguments = append(p.arguments, arguments...)
	p.links = append(p.links, Link{k, s, p.arguments[from:len(p.arguments):len(p.arguments)]})
}

// Forget empties the tape.
func (p *Tape) Forget() { p.links, p.arguments = p.links[:0], p.arguments[:0] }

// Play submits the tape to s and empties it. It allocates nothing for a sequence of
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
	case err != nil: // no memory for chains, or no support by the driver
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

// set updates a chain to the launches on the tape.
func (t *Thread) set(p *Tape, c *kept) error {
	for i := range p.links {
		if err := t.SetLink(c.Chain, i, &p.links[i]); err != nil {
			return err
		}
	}
	return nil
}

// chain returns the chain for the kernels on the tape, or nil. It makes one only when the
// sequence is seen again, since most sequences may occur only once.
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

// keep makes a chain of the tape. If there are too many chains, it drops the least
// recently used.
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

// sum returns a hash of the kernels on the tape, which is never 0.
func (p *Tape) sum() uint64 {
	h := uint64(len(p.links))
	for i := range p.links {
		h = (h ^ uint64(uintptr(unsafe.Pointer(p.links[i].Kernel)))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h | 1
}

// CloseTape frees the tape's chains.
func (t *Thread) CloseTape(p *Tape) error {
	var err error
	for _, c := range p.chains {
		err = errors.Join(err, t.CloseChain(c.Chain))
	}
	p.chains = nil
	return err
}
