package slot

import (
	"time"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Share makes memory of so many bytes for the dense input of the step that is computed. A
// slot has memory for rows of other nodes only, of which there are so many bytes. No slot
// may be in use.
func (b *Batches) Share(rows, far int) (err error) {
	d := b.Workers[0].Device
	b.unshare()
	for _, s := range b.Slots { // before others are made
		s.forgetFar()
		none, err := d.NewArena(0)
		if err != nil {
			return err
		}
		s.Rows.Close()
		s.Rows = none
	}
	if b.Rows, err = d.NewArena(rows); err != nil {
		return err
	}
	for _, s := range b.Slots {
		if s.Far.Far.Memory, err = d.NewArena(far); err != nil {
			return err
		}
	}
	return nil
}

// GiveBack gives back the memory of rows that all slots share, with that of rows of other
// nodes, once no step follows. Nobody may prepare any.
func (b *Batches) GiveBack() {
	if b.Rows == nil {
		return
	}
	b.unshare()
	for _, s := range b.Slots {
		s.forgetFar()
		*s = Slot{Rows: s.Rows, Staged: s.Staged}
	}
}

// Arrive gathers the dense input of a step that is gathered late, from this node's features
// and the rows of others that the slot has. Where rows are learnt, late are those of others, nil if all
// are here. scratch is reset.
func (b *Batches) Arrive(s *Slot, d tensor.Device, scratch tensor.Arena, data *features.Store, late *gather.Rows) {
	if !s.Late {
		return
	}
	start := time.Now()
	scratch.Reset()
	b.Rows.Reset()
	for i := range s.Groups {
		if g := &s.Groups[i]; len(g.Roots) > 0 {
			places, far := s.Sets[i], (*features.Far)(nil)
			switch {
			case late != nil:
				places, far = late.Places[i], &late.Far
			case !data.Learnt():
				places, far = s.Far.Places[i], &s.Far.Far
			}
			g.Input.Dense = b.Rows.Alloc(d.Type(), len(places), data.Columns())
			data.Dense(d, scratch, g.Input.Dense, places, far)
		}
	}
	s.Late = b.Same // the next step begins with other rows
	s.Gathering += time.Since(start)
}

func (b *Batches) unshare() {
	if b.Rows != nil {
		b.Rows.Close()
		b.Rows = nil
	}
}

// forgetFar releases the memory of rows of other nodes.
func (s *Slot) forgetFar() {
	if s.Far.Far.Memory != nil {
		s.Far.Far.Memory.Close()
	}
	s.Far.Far = features.Far{}
}
