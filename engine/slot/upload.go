package slot

import (
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An Uploader gives workers access to a device whose memory is not the host's, beside
// the steps that it computes. The input of a step is copied to it ahead of the step,
// and blocks are sampled there where it holds the graph. Workers take turns.
type Uploader struct {
	mu     sync.Mutex // of the device, while workers are at work
	Device tensor.Foreign
	steps  tensor.Foreign // the lane that computes steps; used by its goroutine
	// bring copies from where workers put rows, Write from ordinary memory.
	bring, Write func(to, from tensor.Matrix)

	Holds    Holdings        // the part of the graph that is there
	Held     tensor.Arena    // memory of Store and Kept
	Store    *features.Store // nil: rows are gathered on the host
	Kept     *features.Far   // cached rows of other nodes; nil: none
	Resident sample.Resident // nil: blocks are sampled on the host
	// Summed means that the outermost hop is added up, by How, as it is sampled.
	Summed bool
	How    tensor.Aggregation
}

// NewUploader returns an uploader that holds nothing.
func NewUploader(d tensor.Foreign) (*Uploader, error) {
	own, err := d.Lane()
	if err != nil {
		return nil, &Broken{Device: d.Name(), Err: err}
	}
	write := func(to, from tensor.Matrix) { own.Write32(to, from.F32()) }
	return &Uploader{Device: own, steps: d, bring: own.Bring, Write: write}, nil
}

// Close is called when the slots are closed.
func (f *Uploader) Close() {
	if f == nil {
		return
	}
	if f.Resident != nil {
		f.Resident.Close()
	}
	if f.Held != nil {
		f.Held.Close()
	}
	f.Device.Close()
}

// An upload is a slot's part of a device: the rows that its groups read, and the events
// of their arrival and release. A nil upload is of a slot that needs none.
type upload struct {
	Uploader     *Uploader
	Rows         tensor.Arena
	far          features.Far // those of other nodes
	filled, done tensor.Mark
	// once means that the slot is filled once for all steps, in ordinary memory.
	once bool
}

// Land gives a slot its place on the device, for so many bytes of rows, and host memory
// from which the device copies by itself.
func (f *Uploader) Land(s *Slot, bytes int, once bool) (err error) {
	p := s.Staged
	if p == nil {
		p = &upload{Uploader: f, once: once}
		s.Staged = p
		if p.filled, err = f.Device.NewMark(); err == nil {
			p.done, err = f.Device.NewMark()
		}
		if err != nil {
			return &Broken{Device: f.steps.Name(), Err: err}
		}
	}
	_ = f.Device.Err() // no copy is under way any more
	if p.Rows != nil {
		p.Rows.Close()
	}
	if p.Rows, err = f.Device.NewArena(bytes); err != nil {
		return &Broken{Device: f.steps.Name(), Err: err}
	}
	if once {
		return nil
	}
	if f.Store != nil {
		bytes = 0 // the host has only those of other nodes
	}
	if s.Far.Far.Memory == nil {
		if s.Far.Far.Memory, err = f.Device.HostArena(0); err != nil {
			return err
		}
	}
	rows, err := f.Device.HostArena(bytes)
	if err != nil {
		return err
	}
	s.Rows.Close()
	s.Rows = rows
	return nil
}

// Close is called when no worker is at work.
func (p *upload) Close(s *Slot) {
	if p == nil {
		return
	}
	_ = p.Uploader.Device.Err() // no copy is under way any more
	groups := s.Groups[:cap(s.Groups)]
	for i := range groups {
		groups[i].Batch.Close()
	}
	for _, a := range []tensor.Arena{p.Rows, s.Far.Far.Memory} {
		if a != nil {
			a.Close()
		}
	}
	for _, m := range []tensor.Mark{p.filled, p.done} {
		if m != nil {
			m.Close()
		}
	}
	s.Staged, s.Far.Far = nil, features.Far{}
}

// Free makes the uploader's next work for a slot wait until the current step has read
// it.
func (p *upload) Free() {
	if p == nil {
		return
	}
	p.Uploader.mu.Lock()
	defer p.Uploader.mu.Unlock()
	p.Uploader.Device.After(p.done)
}

// Draws reports whether the uploader samples the blocks of a slot.
func (p *upload) Draws() bool { return p != nil && p.Uploader.Resident != nil }

// Draw samples a group's blocks.
func (p *upload) Draw(s *Slot, g *Group, epoch int) error {
	f := p.Uploader
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.Resident.Sample(&g.Batch, uint64(epoch), uint64(s.Step), g.Roots)
	if err != nil {
		return &Broken{Device: f.steps.Name(), Epoch: epoch, Step: s.Step + 1, Err: fmt.Errorf("draw blocks: %w", err)}
	}
	return nil
}

// Gathers reports whether the uploader gathers dense rows. Then the host has only the
// rows received from other nodes.
func (p *upload) Gathers() bool { return p != nil && p.Uploader.Store != nil }

// Sums reports whether the uploader adds up the outermost hop: it reads a row for each
// edge.
func (p *upload) Sums() bool { return p != nil && p.Uploader.Summed }

// Bring uploads the dense rows that a slot's groups read, at these places.
func (p *upload) Bring(s *Slot, places [][]uint32) {
	if p == nil {
		return
	}
	f := p.Uploader
	f.mu.Lock()
	defer f.mu.Unlock()
	p.Rows.Reset()
	far, bring := (*features.Far)(nil), f.bring
	if p.once {
		bring = f.Write
	}
	if f.Store != nil && s.Far.Places != nil {
		far = &p.far
		far.Kept = f.Kept
		s.Far.Far.Bring(far, p.Rows, bring)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		switch {
		case len(g.Roots) == 0 || g.Input.Sparse != nil:
		case f.Store == nil:
			host := g.Input.Dense
			g.Input.Dense = p.Rows.Alloc(host.Type, host.Rows, host.Cols)
			bring(g.Input.Dense, host)
		default:
			n, columns := len(places[i]), f.Store.Columns()
			g.Input.Dense = p.Rows.Alloc(f.Device.Type(), n, columns)
			f.Store.Dense(f.Device, p.Rows, g.Input.Dense, places[i], far)
			if f.Summed {
				g.Input.Sums = p.Rows.Alloc(f.Device.Type(), n, columns)
				table, _ := f.Store.Table()
				f.Resident.Sum(g.Input.Sums, &g.Batch, table, f.How)
			}
		}
	}
	f.Device.Mark(p.filled)
}

// Arrive makes the step of a slot wait until its rows are there.
func (p *upload) Arrive() {
	if p != nil {
		p.Uploader.steps.After(p.filled)
	}
}

// Leave marks the point where the step has been submitted.
func (p *upload) Leave() {
	if p != nil {
		p.Uploader.steps.Mark(p.done)
	}
}
