package train

import (
	"context"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// A slot is one batch with all that its step needs. Its memory is used again.
type slot struct {
	step   int
	roots  []uint32 // a part of the epoch's order
	labels []int32
	batch  sample.Batch
	input  nn.Input
	sparse features.Rows
	rows   tensor.Arena // of dense input

	sampling, gathering time.Duration
	gathered            int // rows
}

// edges counts those of the slot's blocks.
func (s *slot) edges() uint64 {
	n := 0
	for i := range s.batch.Blocks {
		n += s.batch.Blocks[i].Entries()
	}
	return uint64(n)
}

// outermost is the vertices whose features the batch reads.
func (s *slot) outermost() []uint32 {
	if len(s.batch.Blocks) == 0 {
		return s.roots
	}
	return s.batch.Blocks[0].Vertices
}

// A hand fills slots. One goroutine at a time uses it.
type hand struct {
	sampler *sample.Sampler
	device  tensor.Device // of one thread
	scratch tensor.Arena
}

func newHand(d *data, o sample.Options) (*hand, error) {
	h := &hand{sampler: sample.New(d.topology, o), device: cpu.New(1)}
	var err error
	h.scratch, err = h.device.NewArena(0)
	return h, err
}

func (h *hand) close() {
	h.scratch.Close()
	h.device.Close()
}

// phases are the labels under which profiles show what time goes to.
type phases struct{ sample, gather, compute, evaluate, other context.Context }

func newPhases(ctx context.Context) phases {
	label := func(phase string) context.Context {
		return pprof.WithLabels(ctx, pprof.Labels("phase", phase))
	}
	return phases{label("sample"), label("gather"), label("compute"), label("evaluate"), ctx}
}

// fill samples the roots of the slot and gathers what their step reads.
func (h *hand) fill(s *slot, d *data, p *phases, epoch int) error {
	defer pprof.SetGoroutineLabels(p.other)
	pprof.SetGoroutineLabels(p.sample)
	start := time.Now()
	if err := h.sampler.Sample(&s.batch, uint64(epoch), uint64(s.step), s.roots); err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, s.step+1, err)
	}
	for i := range s.batch.Blocks {
		s.batch.Blocks[i].Transpose()
	}
	s.labels = d.labels(s.labels[:0], s.roots)
	sampled := time.Now()
	pprof.SetGoroutineLabels(p.gather)
	h.gather(s, d)
	s.sampling, s.gathering = sampled.Sub(start), time.Since(sampled)
	return nil
}

func (h *hand) gather(s *slot, d *data) {
	vertices := s.outermost()
	s.input, s.gathered = nn.Input{Vertices: vertices}, len(vertices)
	if d.features.Sparse() {
		d.features.Fill(&s.sparse, vertices, true)
		s.input.Sparse = &s.sparse.CSR
		return
	}
	s.rows.Reset()
	h.scratch.Reset()
	s.input.Dense = s.rows.Alloc(h.device.Type(), len(vertices), d.features.Columns())
	d.features.Dense(h.device, h.scratch, s.input.Dense, vertices)
}
