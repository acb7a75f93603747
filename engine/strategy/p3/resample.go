package p3

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// resampled is the groups of another node in a slot, sampled here. They are the same as
// on that node, since a sample depends on the key alone. The memory is reused.
type resampled struct {
	groups  []deal.Group
	batches []sample.Batch
}

// resample samples the blocks of all other nodes, where nobody sends theirs and this
// node has columns to add.
func (f *Method) resample(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	if !f.resamples || !f.front.Computes() {
		return nil
	}
	of := f.Of(s)
	for len(of.others) < f.Dealing.Nodes {
		of.others = append(of.others, resampled{})
	}
	for node := range of.others {
		if node == f.Dealing.Self {
			continue
		}
		o := &of.others[node]
		o.groups = f.Dealing.Of(o.groups, s.Roots, node)
		for len(o.batches) < len(o.groups) {
			o.batches = append(o.batches, sample.Batch{})
		}
		for i := range o.groups {
			if len(o.groups[i].Roots) == 0 {
				continue
			}
			if err := h.Sampler.Sample(ctx, &o.batches[i], uint64(epoch), uint64(s.Step), o.groups[i].Roots); err != nil {
				return err
			}
		}
	}
	return nil
}

// expect says what other nodes compute in a slot, where they send their blocks.
func (f *Method) expect(of *underway, s *slot.Slot) {
	for node := range f.Dealing.Nodes {
		if f.resamples || node == f.Dealing.Self {
			continue
		}
		of.dealt = f.Dealing.Of(of.dealt, s.Roots, node)
		for i := range of.dealt {
			if g := &of.dealt[i]; len(g.Roots) > 0 {
				f.front.Expect(of.batch, node, g.Grain, len(g.Roots))
			}
		}
	}
}

// add adds the groups of all other nodes to the batch.
func (f *underway) add() {
	for node := range f.others {
		o := &f.others[node]
		for i := range o.groups {
			if g := &o.groups[i]; len(g.Roots) > 0 {
				f.batch.AddOf(node, g.Grain, g.Roots, o.batches[i].Blocks)
			}
		}
	}
}
