package train

import (
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A ferry is how hands use a device whose memory is not the host's, beside the steps that
// it computes: what a step reads is brought to it ahead of the step, and blocks are drawn
// there, where it holds the graph. Hands take turns.
type ferry struct {
	mu     sync.Mutex // of the device, while hands are at work
	device tensor.Foreign
	steps  tensor.Foreign // the lane that computes steps; its goroutine's
	// bring copies from where hands put rows, write from ordinary memory.
	bring, write func(to, from tensor.Matrix)

	holds    holdings        // what of the graph is there
	held     tensor.Arena    // of what follows
	store    *features.Store // nil: rows are gathered on the host
	kept     *features.Far   // rows of other nodes that are kept; nil: none are
	resident sample.Resident // nil: blocks are drawn on the host
	// summed says that the outermost hop is drawn as its rows are added up, and how.
	summed bool
	how    tensor.Aggregation
}

// newFerry makes one that holds nothing.
func newFerry(d tensor.Foreign) (*ferry, error) {
	own, err := d.Lane()
	if err != nil {
		return nil, &Broken{Device: d.Name(), err: err}
	}
	write := func(to, from tensor.Matrix) { own.Write32(to, from.F32()) }
	return &ferry{device: own, steps: d, bring: own.Bring, write: write}, nil
}

// close is called when the slots are closed.
func (f *ferry) close() {
	if f == nil {
		return
	}
	if f.resident != nil {
		f.resident.Close()
	}
	if f.held != nil {
		f.held.Close()
	}
	f.device.Close()
}

// A landing is what a slot has on a device: the rows that its groups read, and when they
// are there, and are read no more. A nil landing is of a slot that needs none.
type landing struct {
	ferry        *ferry
	rows         tensor.Arena
	far          features.Far // those of other nodes
	filled, done tensor.Mark
	// once says that the slot is filled for all steps, in ordinary memory.
	once bool
}

// land gives a slot its place on the device, for so many bytes of rows, and memory of the
// host's from which the device copies by itself.
func (f *ferry) land(s *slot, bytes int, once bool) (err error) {
	p := s.landing
	if p == nil {
		p = &landing{ferry: f, once: once}
		s.landing = p
		if p.filled, err = f.device.NewMark(); err == nil {
			p.done, err = f.device.NewMark()
		}
		if err != nil {
			return &Broken{Device: f.steps.Name(), err: err}
		}
	}
	_ = f.device.Err() // no copy is under way any more
	if p.rows != nil {
		p.rows.Close()
	}
	if p.rows, err = f.device.NewArena(bytes); err != nil {
		return &Broken{Device: f.steps.Name(), err: err}
	}
	if once {
		return nil
	}
	if f.store != nil {
		bytes = 0 // the host has none but those of other nodes
	}
	if s.far.Far.Memory == nil {
		if s.far.Far.Memory, err = f.device.HostArena(0); err != nil {
			return err
		}
	}
	rows, err := f.device.HostArena(bytes)
	if err != nil {
		return err
	}
	s.rows.Close()
	s.rows = rows
	return nil
}

// close is called when no hand is at work.
func (p *landing) close(s *slot) {
	if p == nil {
		return
	}
	_ = p.ferry.device.Err() // no copy is under way any more
	groups := s.groups[:cap(s.groups)]
	for i := range groups {
		groups[i].batch.Close()
	}
	for _, a := range []tensor.Arena{p.rows, s.far.Far.Memory} {
		if a != nil {
			a.Close()
		}
	}
	for _, m := range []tensor.Mark{p.filled, p.done} {
		if m != nil {
			m.Close()
		}
	}
	s.landing, s.far.Far = nil, features.Far{}
}

// free has what the ferry does for a slot from now on begin when the step is over that
// the slot was for.
func (p *landing) free() {
	if p == nil {
		return
	}
	p.ferry.mu.Lock()
	defer p.ferry.mu.Unlock()
	p.ferry.device.After(p.done)
}

// draws says whether the ferry draws the blocks of a slot.
func (p *landing) draws() bool { return p != nil && p.ferry.resident != nil }

// draw draws a group's blocks.
func (p *landing) draw(s *slot, g *group, epoch int) error {
	f := p.ferry
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.resident.Sample(&g.batch, uint64(epoch), uint64(s.step), g.Roots)
	if err != nil {
		return &Broken{Device: f.steps.Name(), Epoch: epoch, Step: s.step + 1, err: fmt.Errorf("draw blocks: %w", err)}
	}
	return nil
}

// gathers says whether the ferry gathers dense rows: of those of other nodes the host has
// only what came.
func (p *landing) gathers() bool { return p != nil && p.ferry.store != nil }

// sums says whether the ferry adds up the outermost hop: it reads a row for each edge.
func (p *landing) sums() bool { return p != nil && p.ferry.summed }

// bring has the dense rows come that a slot's groups read, at these places.
func (p *landing) bring(s *slot, places [][]uint32) {
	if p == nil {
		return
	}
	f := p.ferry
	f.mu.Lock()
	defer f.mu.Unlock()
	p.rows.Reset()
	far, bring := (*features.Far)(nil), f.bring
	if p.once {
		bring = f.write
	}
	if f.store != nil && s.far.Places != nil {
		far = &p.far
		far.Kept = f.kept
		s.far.Far.Bring(far, p.rows, bring)
	}
	for i := range s.groups {
		g := &s.groups[i]
		switch {
		case len(g.Roots) == 0 || g.input.Sparse != nil:
		case f.store == nil:
			host := g.input.Dense
			g.input.Dense = p.rows.Alloc(host.Type, host.Rows, host.Cols)
			bring(g.input.Dense, host)
		default:
			n, columns := len(places[i]), f.store.Columns()
			g.input.Dense = p.rows.Alloc(f.device.Type(), n, columns)
			f.store.Dense(f.device, p.rows, g.input.Dense, places[i], far)
			if f.summed {
				g.input.Sums = p.rows.Alloc(f.device.Type(), n, columns)
				table, _ := f.store.Table()
				f.resident.Sum(g.input.Sums, &g.batch, table, f.how)
			}
		}
	}
	f.device.Mark(p.filled)
}

// arrive has the step that a slot is for begin when its rows are there.
func (p *landing) arrive() {
	if p != nil {
		p.ferry.steps.After(p.filled)
	}
}

// leave says that the step has been handed over.
func (p *landing) leave() {
	if p != nil {
		p.ferry.steps.Mark(p.done)
	}
}
