package train

import (
	"context"
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
)

// chosen makes the choice of the strategy where it is not given, when the nodes have met.
func (t *trainer) chosen(ctx context.Context) error {
	s := t.shared
	if s == nil || s.dealer != nil {
		return nil
	}
	_, hands := t.ahead()
	b, err := newBatches(t.data, newDealing(t), &t.phases, &t.recipe, t.sampling(), 1, 1, t.newHand)
	if err != nil {
		return err
	}
	defer b.close()
	hand, epoch := b.hands[0], min(t.place().epoch, t.recipe.Epochs)
	if hand.far != nil {
		hand.far.Tally = &s.start
	}
	b.shuffle(epoch)
	s.choice, err = auto.Choose(ctx, &auto.Job{
		Exchange: s.exchange, Work: s.work, Layout: s.layout, Settings: t.recipe.Sharing, Strategies: t.options.Strategies,
		Batch: b.roots, Epoch: epoch, Steps: b.steps, Epochs: t.recipe.Epochs - epoch + 1, Once: b.same,
		Model: t.sizes(), Sampler: hand.sampler, Rows: s.source, Hands: hands, Threads: t.threads(), Room: t.columnsFit(), Edges: s.replicated, Tally: &s.start,
	})
	if err != nil {
		return err
	}
	s.use(s.choice.Chosen(), &t.recipe.Sharing)
	s.why = s.choice.Why()
	s.dealer.Restore(t.tuning())
	t.log.Info("the nodes have chosen how they share the job", "strategy", s.strategy, "why", s.why)
	return s.keep(ctx, t)
}

// use has a strategy deal.
func (s *shared) use(c auto.Candidate, settings *strategy.Settings) {
	s.strategy, s.dealer, s.asking = c.Name, c.Dealer, auto.AskingOf(c.Name, settings)
}

// sizes are what a choice depends on of what is computed.
func (t *trainer) sizes() auto.Model {
	m := auto.Model{Features: t.inputs()}
	for _, l := range t.learners {
		m.Weights += l.model.Size()
	}
	front, err := t.learners[0].model.Front()
	if err != nil || t.sweeps() {
		return m // which has no such sum
	}
	m.Sum = front.Cols
	for _, term := range front.Terms {
		m.Front += term.Param.Rows * term.Param.Cols
	}
	return m
}

// inputs is how many numbers the features of all vertices are.
func (t *trainer) inputs() float64 {
	columns := float64(t.data.features.Columns())
	if t.data.features.Sparse() {
		columns = 2 * t.data.entries
	}
	return columns * float64(t.data.about.Vertices)
}

// columnsFit says whether p3 has room for this node's columns: half of what there is.
func (t *trainer) columnsFit() bool {
	memory := t.options.Memory
	if memory == 0 {
		memory = headroom.Available()
	}
	return 4*t.inputs()/float64(len(t.shared.work.Nodes)) <= float64(memory)/2
}

// mayUse says whether a strategy may come to deal.
func (s *shared) mayUse(name string, o *Options) bool {
	return s.strategy == name || s.strategy == "" && slices.ContainsFunc(o.Strategies, func(a strategy.Strategy) bool { return a.Name() == name })
}

// reconsider changes the strategy if another one is faster, by what an epoch took. All
// nodes come to the same.
func (t *trainer) reconsider(ctx context.Context, e *Epoch) error {
	s := t.shared
	if s.choice == nil || e.Epoch == t.recipe.Epochs {
		return nil
	}
	var need needs
	tried := false
	changed, err := s.choice.Note(ctx, auto.Measured{
		Epoch: e.Epoch, Seconds: e.Seconds, Sample: e.Phases.Sample, Compute: e.Phases.Compute, Wait: e.Phases.Wait,
	}, func(c auto.Candidate) (fits bool, err error) {
		tried = true
		if need, err = t.try(ctx, c, e.Epoch+1); err != nil {
			return false, err
		}
		return t.roomFor(ctx, &need, e.Epoch)
	})
	switch {
	case err != nil || !tried:
		return err
	case changed:
		s.why = s.choice.Why()
		t.log.Info("the nodes have changed how they share the job", "strategy", s.strategy, "why", s.why)
		return t.batches.reserve(int(need.rows))
	}
	t.log.Info("another strategy would be faster, but a node lacks the memory for it", "strategy", s.choice.Chosen().Name)
	return t.back(ctx, e.Epoch+1)
}

// try has a strategy deal from an epoch on, and says what memory its steps take.
func (t *trainer) try(ctx context.Context, c auto.Candidate, epoch int) (need needs, err error) {
	t.shared.use(c, &t.recipe.Sharing)
	t.dealing.dealer = c.Dealer
	if err := t.batches.ahead(ctx, epoch, looks, func(s *slot) { need.see(t, s) }); err != nil {
		return need, err
	}
	need.settle(t)
	return need, nil
}

// roomToChange is the index of the message on the memory that another strategy takes, at
// the end of an epoch: after what the models say there, and before what auto does.
const roomToChange = 1 << 12

// roomFor says whether all nodes have room for another strategy after an epoch, those on
// one machine beside each other.
func (t *trainer) roomFor(ctx context.Context, need *needs, epoch int) (bool, error) {
	tag := exchange.Tag{Epoch: uint32(epoch), Step: uint32(t.batches.steps), Lane: exchange.LaneMessages, Index: roomToChange}
	err := t.afford(ctx, tag, need.onHost(t))
	if _, lacks := errors.AsType[*agreed](err); lacks {
		return false, nil
	}
	if err == nil {
		err = t.fault(epoch, 0)
	}
	return err == nil && t.affordDevice(need) == nil, err
}

// back has the strategy deal again that was chosen, after another was tried.
func (t *trainer) back(ctx context.Context, epoch int) error {
	c := t.shared.choice.Chosen()
	t.shared.use(c, &t.recipe.Sharing)
	t.dealing.dealer = c.Dealer
	if !t.batches.same {
		return nil
	}
	// The batch of all epochs was filled as the other deals it.
	return t.batches.ahead(ctx, epoch, 1, func(*slot) {})
}
