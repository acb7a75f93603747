package train

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// resampled is the groups of another node in a slot, drawn here: the same as that node
// draws, since what is drawn depends on the key alone. Its memory is used again.
type resampled struct {
	groups  []strategy.Group
	batches []sample.Batch
}

// resample draws the blocks of all other nodes, where nobody tells of theirs and this
// node has columns of them to add.
func (f *front) resample(ctx context.Context, h *hand, s *slot, epoch int) error {
	if !f.resamples || !f.Computes() {
		return nil
	}
	for len(s.others) < h.dealing.nodes {
		s.others = append(s.others, resampled{})
	}
	for node := range s.others {
		if node == h.dealing.self {
			continue
		}
		o := &s.others[node]
		h.dealing.of(o, s.roots, node)
		for len(o.batches) < len(o.groups) {
			o.batches = append(o.batches, sample.Batch{})
		}
		for i := range o.groups {
			if len(o.groups[i].Roots) == 0 {
				continue
			}
			if err := h.sampler.Sample(ctx, &o.batches[i], uint64(epoch), uint64(s.step), o.groups[i].Roots); err != nil {
				return err
			}
		}
	}
	return nil
}

// of sets the groups of another node.
func (d *dealing) of(o *resampled, roots []uint32, node int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.groups = d.dealer.Deal(o.groups, roots, node)
}

// addOthers gives the groups of all other nodes to the slot's batch of the front.
func (f *front) addOthers(s *slot) {
	for node := range s.others {
		o := &s.others[node]
		for i := range o.groups {
			if g := &o.groups[i]; len(g.Roots) > 0 {
				s.front.AddOf(node, g.Grain, g.Roots, o.batches[i].Blocks)
			}
		}
	}
}

// othersBytes is the memory of what was drawn of other nodes.
func (s *slot) othersBytes() (n uint64) {
	for node := range s.others {
		o := &s.others[node]
		for i := range o.groups {
			n += 4 * uint64(cap(o.groups[i].Roots))
			for b := range o.batches[i].Blocks {
				n += blockBytes(&o.batches[i].Blocks[b])
			}
		}
	}
	return n
}

// blockBytes is the memory that a block takes, with its transpose.
func blockBytes(b *sample.Block) uint64 { return uint64(16*b.Entries() + 8*b.Rows + 12*b.Cols) }
