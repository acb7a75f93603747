//go:build cuda

package device

import (
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

const (
	mostLinks  = 128 // of a tape
	fewLinks   = 4   // of a chain: fewer are launched by themselves
	mostChains = 32
	mostRecent = 64 // rows of kernels that are remembered, having been seen once
	parameters = 24 // of a kernel, mostly
)

// A tape is what operations have handed over and the GPU has yet to be given. A row of
// kernels that is seen again becomes a chain, which the GPU is given at once: in each
// step the same kernels follow each other, with other counts, addresses, keys and rates.
// What is on the tape is done in its order, before all that comes after flush.
type tape struct {
	links     []driver.Link
	arguments []driver.Argument // of links

	chains []*chain
	recent [mostRecent]uint64
	seen   int
	turn   uint64
	single bool // all kernels are launched one by one
	counts Counts
}

// A chain is one that is kept, for the kernels that it has.
type chain struct {
	*driver.Chain
	kernels []*driver.Kernel
	sum     uint64
	turn    uint64 // in which it was launched last
}

// Counts are of what a Device has handed to its GPU.
type Counts struct {
	Kernels int // that have run, of which
	Alone   int // were launched by themselves, and the others in
	Chains  int // launches of several
	Copies  int
	Waits   int // for the GPU
}

// Counts is what has been handed over since the device was opened.
func (d *Device) Counts() Counts { return d.tape.counts }

func (t *tape) open() {
	t.links = make([]driver.Link, 0, mostLinks)
	t.arguments = make([]driver.Argument, 0, mostLinks*parameters)
}

// record puts a launch on the tape.
func (d *Device) record(k *driver.Kernel, g grid, block int, arguments []driver.Argument) {
	t := &d.tape
	from := len(t.arguments)
	t.arguments = append(t.arguments, arguments...)
	shape := driver.Shape{Grid: g, Block: [3]int{block, 1, 1}, Stream: d.stream}
	t.links = append(t.links, driver.Link{Kernel: k, Shape: shape, Arguments: t.arguments[from:len(t.arguments):len(t.arguments)]})
	if len(t.links) == mostLinks {
		d.flush()
	}
}

// flush gives the GPU what is on the tape. Whatever goes to the stream by another way,
// or takes memory away, comes after it. It says whether there is no error so far.
func (d *Device) flush() bool {
	t := &d.tape
	if len(t.links) > 0 && d.err == nil {
		d.sendLoans()
		t.counts.Kernels += len(t.links)
		if c := t.chain(d); c != nil {
			d.launchChain(c)
		} else {
			d.launchAlone()
		}
	}
	t.links, t.arguments = t.links[:0], t.arguments[:0]
	return d.err == nil
}

func (d *Device) launchAlone() {
	for i := range d.tape.links {
		l := &d.tape.links[i]
		if !d.check(d.on.Launch(l.Kernel, l.Shape, l.Arguments...)) {
			return
		}
		d.tape.counts.Alone++
	}
}

func (d *Device) launchChain(c *chain) {
	for i := range d.tape.links {
		if !d.check(d.on.SetLink(c.Chain, i, &d.tape.links[i])) {
			return
		}
	}
	d.check(d.on.LaunchChain(c.Chain, d.stream))
	d.tape.counts.Chains++
}

// chain is the one for what is on the tape, nil if there is none yet: kernels that
// followed each other once may never do so again.
func (t *tape) chain(d *Device) *chain {
	if len(t.links) < fewLinks || t.single {
		return nil
	}
	t.turn++
	sum := t.sum()
	for _, c := range t.chains {
		if c.sum == sum && slices.EqualFunc(c.kernels, t.links, func(k *driver.Kernel, l driver.Link) bool { return k == l.Kernel }) {
			c.turn = t.turn
			return c
		}
	}
	if !slices.Contains(t.recent[:], sum) {
		t.recent[t.seen%mostRecent] = sum
		t.seen++
		return nil
	}
	return t.add(d, sum)
}

// add makes a chain of what is on the tape. The one that was not used for longest goes
// if there are too many. It is nil if there was an error.
func (t *tape) add(d *Device, sum uint64) *chain {
	if len(t.chains) == mostChains {
		oldest := slices.MinFunc(t.chains, func(a, b *chain) int { return int(a.turn) - int(b.turn) })
		t.chains = slices.DeleteFunc(t.chains, func(c *chain) bool { return c == oldest })
		if !d.check(d.on.CloseChain(oldest.Chain)) {
			return nil
		}
	}
	made, err := d.on.NewChain(t.links)
	if !d.check(err) {
		return nil
	}
	c := &chain{Chain: made, sum: sum, turn: t.turn}
	for i := range t.links {
		c.kernels = append(c.kernels, t.links[i].Kernel)
	}
	t.chains = append(t.chains, c)
	return c
}

// sum is a number of the kernels on the tape, and never 0.
func (t *tape) sum() uint64 {
	h := uint64(len(t.links))
	for i := range t.links {
		h = (h ^ uint64(uintptr(unsafe.Pointer(t.links[i].Kernel)))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h | 1
}

func (t *tape) close(d *Device) {
	for _, c := range t.chains {
		d.check(d.on.CloseChain(c.Chain))
	}
	t.chains = nil
}
