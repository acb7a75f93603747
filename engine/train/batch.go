package train

import (
	"context"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A slot is one step with all that this node needs for it. Its memory is used again.
type slot struct {
	step   int
	roots  []uint32 // of the whole batch: a part of the epoch's order
	groups []group  // of this node, in the order in which they are computed
	// spans are what each node brings to the step's sum, where gradients are added up
	// by grains; else nil.
	spans [][]exchange.Span

	dealt []strategy.Group // whose memory the groups' roots lie in
	sets  [][]uint32       // the groups' outermost vertices
	far   gather.Rows
	rows  tensor.Arena // of dense input
	// landing is what the slot has on a device whose memory is not the host's, where
	// groups' dense input is then, and no longer in rows.
	landing *landing
	front   *p3.Batch // nil until there is a front, and in place of input

	others []resampled // of other nodes, where their blocks are drawn here

	// What it took. Counts are of what was asked for on the step's behalf, ahead of it
	// and in it.
	tally               strategy.Tally
	sampling, gathering time.Duration
	gathered, remote    int // rows; remote are those of gathered that were elsewhere
	// looked says that the slot was only looked at: rows are counted and not there.
	looked bool
}

// A group is roots that are computed together, with what that takes.
type group struct {
	strategy.Group
	labels []int32
	batch  sample.Batch
	input  nn.Input
	sparse features.Rows
	place  int // among those of the front

	weights []float64 // of the roots' losses, where groups train in isolation; nil: all 1
	weighed []float64 // whose memory these lie in
	weight  float64   // what they add up to
}

// edges counts those of the slot's blocks.
func (s *slot) edges() uint64 {
	n := 0
	for i := range s.groups {
		for b := range s.groups[i].batch.Blocks {
			n += s.groups[i].batch.Blocks[b].Entries()
		}
	}
	return uint64(n)
}

// outermost is the vertices whose features the group reads.
func (g *group) outermost() []uint32 {
	if len(g.batch.Blocks) == 0 {
		return g.Roots
	}
	return g.batch.Blocks[0].Vertices
}

// forget says that what the slot took has been counted.
func (s *slot) forget() {
	s.tally.Reset()
	s.sampling, s.gathering, s.gathered, s.remote = 0, 0, 0, 0
}

// A hand fills slots. One goroutine at a time uses it.
type hand struct {
	data    *data
	dealing *dealing
	sampler *sample.Sampler
	far     *frontier.Frontier // nil where all edges are here
	device  tensor.Device      // of one thread
	scratch tensor.Arena
}

func newHand(d *data, deal *dealing, o sample.Options, device tensor.Device) (*hand, error) {
	h := &hand{data: d, dealing: deal, device: device}
	if sh := deal.shared; sh != nil && !sh.replica.Replicated && deal.isolated == nil {
		h.far = frontier.New(sh.peers, sh.work, sh.layout)
		o.Far = h.far
	}
	h.sampler = sample.New(d.topology, o)
	var err error
	h.scratch, err = h.device.NewArena(0)
	return h, err
}

func (h *hand) close() {
	if h.scratch != nil {
		h.scratch.Close()
	}
	h.device.Close()
}

// phases are the labels under which profiles show what time goes to.
type phases struct{ sample, gather, compute, reduce, evaluate, other context.Context }

func newPhases(ctx context.Context) phases {
	label := func(phase string) context.Context {
		return pprof.WithLabels(ctx, pprof.Labels("phase", phase))
	}
	return phases{label("sample"), label("gather"), label("compute"), label("reduce"), label("evaluate"), ctx}
}

// fill deals the roots of the slot, samples what of them is this node's, and gathers
// what that reads.
func (h *hand) fill(ctx context.Context, s *slot, p *phases, epoch int) error {
	defer pprof.SetGoroutineLabels(p.other)
	pprof.SetGoroutineLabels(p.sample)
	start := time.Now()
	if err := h.draw(ctx, s, epoch); err != nil {
		return err
	}
	sampled := time.Now()
	pprof.SetGoroutineLabels(p.gather)
	places, err := h.gather(ctx, s, epoch)
	if err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, s.step+1, err)
	}
	s.landing.bring(s, places)
	s.sampling, s.gathering = sampled.Sub(start), time.Since(sampled)
	return nil
}

// look is fill, but for rows of other nodes: those are counted and not asked for, and
// no input is made.
func (h *hand) look(ctx context.Context, s *slot, epoch int) error {
	if err := h.draw(ctx, s, epoch); err != nil {
		return err
	}
	s.looked = true
	s.outermost()
	if h.dealing.isolated != nil {
		return nil // none is asked for in a step
	}
	return h.dealing.shared.source.Count(&s.far, s.sets, h.dealing.shared.asking)
}

// outermost sets the slot's sets.
func (s *slot) outermost() {
	s.sets = s.sets[:0]
	for i := range s.groups {
		s.sets = append(s.sets, s.groups[i].outermost())
	}
}

// draw deals the roots of the slot and samples what of them is this node's.
func (h *hand) draw(ctx context.Context, s *slot, epoch int) error {
	s.landing.free()
	s.forget()
	s.looked = false
	h.dealing.deal(s)
	if h.far != nil {
		h.far.Tally = &s.tally
	}
	for i := range s.groups {
		if err := h.sample(ctx, s, &s.groups[i], epoch); err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", epoch, s.step+1, err)
		}
	}
	if n := h.dealing.isolated; n != nil {
		for i := range s.groups {
			n.weigh(s, &s.groups[i])
		}
	}
	if f := h.dealing.front; f != nil {
		if err := f.resample(ctx, h, s, epoch); err != nil {
			return fmt.Errorf("epoch %d, step %d, what other nodes draw: %w", epoch, s.step+1, err)
		}
	}
	return nil
}

func (h *hand) sample(ctx context.Context, s *slot, g *group, epoch int) error {
	g.labels = h.data.labels(g.labels[:0], g.Roots)
	if len(g.Roots) == 0 {
		g.batch.Blocks = g.batch.Blocks[:0]
		return nil
	}
	if s.landing.draws() {
		return s.landing.draw(s, g, epoch)
	}
	if n := h.dealing.isolated; n != nil {
		h.sampler.Within(n.of(g.Roots).Topology)
	}
	if err := h.sampler.Sample(ctx, &g.batch, uint64(epoch), uint64(s.step), g.Roots); err != nil {
		return err
	}
	for b := range g.batch.Blocks {
		g.batch.Blocks[b].Transpose()
	}
	return nil
}

// gather sets the inputs of all groups, but for rows that are gathered on a device: for
// that it says where they are.
func (h *hand) gather(ctx context.Context, s *slot, epoch int) (places [][]uint32, err error) {
	if f := h.dealing.front; f != nil {
		return nil, f.ahead(ctx, h, s, epoch)
	}
	s.outermost()
	places, far := s.sets, (*features.Far)(nil)
	if n := h.dealing.isolated; n != nil {
		if err := n.gather(s); err != nil {
			return nil, err
		}
		places, far = s.far.Places, &s.far.Far
	} else if sh := h.dealing.shared; sh != nil {
		if err := sh.source.Gather(ctx, &s.far, s.sets, uint32(epoch), uint32(s.step), sh.asking, &s.tally); err != nil {
			return nil, err
		}
		places, far = s.far.Places, &s.far.Far
		s.gathered, s.remote = s.far.Local+s.far.Cached+s.far.Remote, s.far.Remote
	}
	s.rows.Reset()
	for i := range s.groups {
		g := &s.groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		if far == nil {
			s.gathered += len(places[i])
		}
		if s.landing.sums() {
			s.gathered += g.batch.Blocks[0].Entries()
		}
		g.input = nn.Input{Vertices: s.sets[i]}
		if h.data.features.Sparse() {
			h.data.features.Fill(&g.sparse, places[i], true, far)
			g.input.Sparse = &g.sparse.CSR
			continue
		}
		if s.landing.gathers() {
			continue
		}
		h.scratch.Reset()
		g.input.Dense = s.rows.Alloc(h.device.Type(), len(places[i]), h.data.features.Columns())
		h.data.features.Dense(h.device, h.scratch, g.input.Dense, places[i], far)
	}
	return places, nil
}
