package batched

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Prepare implements Method: it deals the seed vertices of the slot, samples this
// node's share, and gathers the rows that it reads.
func (b *Batched) Prepare(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	s.Staged.Free()
	s.Forget()
	b.Deal(s, epoch)
	return b.PrepareDealt(ctx, h, s, epoch)
}

// PrepareDealt prepares the groups of a slot, which have been dealt.
func (b *Batched) PrepareDealt(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	p := &b.Run.Phases
	defer pprof.SetGoroutineLabels(p.Other)
	pprof.SetGoroutineLabels(p.Sample)
	start := time.Now()
	if err := b.draw(ctx, h, s, epoch); err != nil {
		return err
	}
	sampled := time.Now()
	pprof.SetGoroutineLabels(p.Gather)
	places, err := b.gather(ctx, h, s, epoch)
	if err != nil {
		return fmt.Errorf("epoch %d, step %d: %w", epoch, s.Step+1, err)
	}
	s.Staged.Bring(s, places)
	s.Sampling, s.Gathering = sampled.Sub(start), time.Since(sampled)
	return nil
}

// Draw deals the seed vertices of the slot and samples this node's share.
func (b *Batched) Draw(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	s.Staged.Free()
	s.Forget()
	b.Deal(s, epoch)
	return b.draw(ctx, h, s, epoch)
}

// Deal deals the seeds of the slot.
func (b *Batched) Deal(s *slot.Slot, epoch int) {
	b.BeginPairs(&s.Pairs, s.Roots, epoch)
	b.Dealing.Deal(s)
}

// BeginPairs begins a step with the pairs at some places, where pairs are learnt.
func (b *Batched) BeginPairs(to *link.Batch, places []uint32, epoch int) {
	links := b.Run.Data.Links
	if links == nil {
		return
	}
	var within *link.Regions
	if b.Regions != nil {
		within = b.Regions()
	}
	to.Begin(links, places, epoch, within)
}

// seeds returns how many seeds of all nodes the step learns.
func (b *Batched) seeds(s *slot.Slot) int {
	if b.Run.Data.Links != nil {
		return s.Pairs.Count()
	}
	return len(s.Roots)
}

func (b *Batched) draw(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error {
	if h.Far != nil {
		h.Far.Tally = &s.Tally
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if err := b.sample(ctx, h, s, g, epoch); err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", epoch, s.Step+1, err)
		}
		b.Weights.Weigh(s, g)
	}
	return nil
}

func (b *Batched) sample(ctx context.Context, h *slot.Worker, s *slot.Slot, g *slot.Group, epoch int) error {
	if err := b.label(ctx, h, s, g); err != nil {
		return err
	}
	if len(g.Roots) == 0 {
		g.Batch.Blocks = g.Batch.Blocks[:0]
		return nil
	}
	if s.Staged.Draws() {
		return s.Staged.Draw(s, g, epoch)
	}
	if edges := b.Sources.Topology(g.Roots); edges != nil {
		h.Sampler.Within(edges)
	}
	if b.Run.Data.Links != nil {
		h.Sampler.Prune(&s.Pairs)
	}
	if err := h.Sampler.Sample(ctx, &g.Batch, uint64(epoch), uint64(s.Step), g.Roots); err != nil {
		return err
	}
	for i := range g.Batch.Blocks {
		if !b.Onward {
			g.Batch.Blocks[i].Transpose()
		}
	}
	return nil
}

// label sets the labels of a group's seed vertices. Where pairs are learnt it also sets the
// group's roots, which were the sources of its pairs, to the vertices at which they end.
func (b *Batched) label(ctx context.Context, h *slot.Worker, s *slot.Slot, g *slot.Group) (err error) {
	if b.Run.Data.Links != nil {
		g.Ends, g.Labels = s.Pairs.Ends(g.Ends[:0], g.Labels[:0], g.Roots)
		g.Roots = g.Ends
		return nil
	}
	if b.Labels != nil {
		g.Labels, err = b.Labels(g.Labels[:0], g.Roots)
		return err
	}
	if b.Run.Session.Alone() {
		g.Labels = h.Data.TargetsOf(g.Labels[:0], g.Roots)
		return nil
	}
	g.Labels, err = b.Run.Session.Labels.Append(ctx, g.Labels[:0], g.Roots, &s.Tally)
	return err
}

// gather sets the inputs of all groups, except rows that are gathered on a device; it
// returns where these are.
func (b *Batched) gather(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) (places [][]uint32, err error) {
	s.Outermost()
	places, far, err := b.Sources.Find(ctx, s, epoch)
	if err != nil {
		return nil, err
	}
	s.Rows.Reset()
	s.Late = b.late()
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		if s.Staged.Sums() {
			s.Gathered += g.Batch.Blocks[0].Entries()
		}
		g.Input = nn.Input{Vertices: s.Sets[i]}
		if h.Data.Features.Sparse() {
			h.Data.Features.Fill(&g.Sparse, places[i], true, far)
			g.Input.Sparse = &g.Sparse.CSR
			continue
		}
		if s.Staged.Gathers() {
			continue
		}
		if s.Late {
			continue
		}
		h.Scratch.Reset()
		g.Input.Dense = s.Rows.Alloc(h.Device.Type(), len(places[i]), h.Data.Features.Columns())
		at := places[i]
		if b.Run.Recipe.Embeddings == 0 && len(g.Batch.Blocks) > 0 { // else rows of one type differ
			at = g.Batch.Blocks[0].Stand(at)
		}
		h.Data.Features.Dense(h.Device, h.Scratch, g.Input.Dense, at, far)
	}
	return places, nil
}

// late reports whether the dense input of a step is gathered when the step begins, into
// memory that all slots share; see slot.Arrive. Several nodes do so: a slot has the rows of
// others until then, and would have them twice.
func (b *Batched) late() bool {
	t := b.Run
	if t.Recipe.Embeddings > 0 {
		return true // rows are those after the step before
	}
	if t.Session.Alone() || t.Foreign != nil || t.Batches.Same || t.Data.Features.Sparse() || b.Ready != nil {
		return false
	}
	_, all := b.Sources.(rowsOfAll)
	_, whole := b.Layers.(FromRows)
	return all && whole
}

// dealing assigns groups to slots. Workers share it.
type dealing struct {
	run    *train.Trainer
	shards int
	Nodes  int
	Self   int
	grains bool // gradients are added up by grains
	links  *link.Pairs

	mu      sync.Mutex // guards what follows
	dealer  deal.Dealer
	others  []deal.Group // of other nodes: only their grains are used
	holders []int        // of the shards' grains
}

// NewDealing returns the dealing of a run by a dealer.
func NewDealing(t *train.Trainer, dealer deal.Dealer) *dealing {
	return &dealing{run: t, shards: len(t.Data.Shards), Nodes: len(t.Session.Work.Nodes), Self: t.Session.Work.Self, dealer: dealer, grains: t.Recipe.Sharing.Deterministic, links: t.Data.Links}
}

// Deal sets the groups of a slot from its seeds.
func (d *dealing) Deal(s *slot.Slot) {
	seeds := s.Roots
	if d.links != nil {
		seeds = s.Pairs.Sources()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	dealer := d.dealer
	if d.run.Sharing.Turns != nil {
		dealer = d.run.Dealt(s.Step).Dealer
	}
	s.Dealt = dealer.Deal(s.Dealt, seeds, d.Self)
	s.Groups = slices.Grow(s.Groups[:0], len(s.Dealt))[:len(s.Dealt)]
	for i := range s.Groups {
		s.Groups[i].Group = s.Dealt[i]
	}
	if d.grains {
		d.spans(s, seeds, dealer)
	}
}

// Of deals the groups of another node, reusing the memory of to.
func (d *dealing) Of(to []deal.Group, roots []uint32, node int) []deal.Group {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dealer.Deal(to, roots, node)
}

// after returns the node that holds a model after the step of a batch. The dealer must
// be a deal.Guide.
func (d *dealing) after(batch []uint32, model int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dealer.(deal.Guide).After(batch, model)
}

// spans finds which node contributes which sums. A grain without seed vertices is in
// none.
func (d *dealing) spans(s *slot.Slot, seeds []uint32, dealer deal.Dealer) {
	d.holders = slices.Grow(d.holders[:0], d.shards)[:d.shards]
	for i := range d.holders {
		d.holders[i] = -1
	}
	for node := range d.Nodes {
		groups := s.Dealt
		if node != d.Self {
			d.others = dealer.Deal(d.others, seeds, node)
			groups = d.others
		}
		for i := range groups {
			if len(groups[i].Roots) > 0 {
				d.holders[groups[i].Grain] = node
			}
		}
	}
	s.Spans = exchange.SpansTo(s.Spans, d.holders, d.Nodes)
}

// Single trains on one node.
var Single = train.Descriptor{Declaration: strategy.Declaration{Name: strategy.Single, Learns: strategy.Learns{Links: true, Embeddings: true}}, Forecast: forecast.Hooks{Volume: forecast.Batched}, New: Plain}

// Plain returns the method of a strategy that only deals seed vertices differently.
func Plain(t *train.Trainer) (train.Method, error) { return New(t), nil }
