package auto

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Strategy leaves the choice to the nodes.
var Strategy = train.Descriptor{Declaration: strategy.Declaration{Name: strategy.Auto, Measured: true}, Choose: startChoosing}

// A Chooser is a run's choice of a strategy.
type Chooser struct {
	run    *train.Trainer
	choice *Choice
}

// startChoosing chooses a strategy once the nodes have met.
func startChoosing(ctx context.Context, t *train.Trainer) (train.Chooser, error) {
	x := t.Session
	_, hands := t.Ahead()
	b := train.NewBatches(t, 1, 1)
	looker, epoch := train.NewLooker(t), min(t.Place().Epoch, t.Recipe.Epochs)
	if looker.Far != nil {
		looker.Far.Tally = &x.Start
	}
	b.Shuffle(epoch)
	choice, err := Choose(ctx, &Job{
		Exchange: x.Exchange, Work: x.Work, Layout: x.Layout, Settings: t.Recipe.Sharing, Strategies: dealings(t),
		Batch: b.Roots, Epoch: epoch, Steps: b.Steps, Epochs: t.Recipe.Epochs - epoch + 1, Once: b.Same,
		Model: Sizes(t), Counter: looker.Counter, Rows: x.Source, Hands: hands, Threads: t.Threads(), Room: ColumnsFit(t), Edges: x.Replicated, Tally: &x.Start,
	})
	if err != nil {
		return nil, err
	}
	e, err := t.Agreed(ctx, func() (schedule.Entry, error) {
		to := choice.Chosen()
		return schedule.Entry{Strategy: to.Name, Part: t.Options.Strategies.PartOf(to.Name, to.Dealer), Why: choice.Why()}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := choice.follow(&e, t.Options.Strategies); err != nil {
		return nil, err
	}
	to := choice.Chosen()
	if err := t.Begin(ctx, to.Name, to.Dealer, choice.Why()); err != nil {
		return nil, err
	}
	if t.Options.Schedule != nil {
		err = t.Options.Strategies.Follow(to.Name, to.Dealer, e.Part) // it comes before what a checkpoint says
	}
	return &Chooser{t, choice}, err
}

// follow sets what an entry of the schedule says.
func (c *Choice) follow(e *schedule.Entry, all train.Strategies) error {
	if err := c.Use(e.Strategy, e.Why); err != nil {
		return err
	}
	return all.Follow(e.Strategy, c.Chosen().Dealer, e.Part)
}

// Follow implements train.Chooser.
func (c *Chooser) Follow(ctx context.Context, e *schedule.Entry) error {
	t := c.run
	if err := c.choice.follow(e, t.Options.Strategies); err != nil {
		return err
	}
	t.Sharing.Entry, t.Sharing.Why = *e, e.Why
	need, err := Try(ctx, t, c.choice.Chosen(), e.From)
	if err != nil {
		return err
	}
	if t.Batches.Same {
		return t.Batches.Fill(ctx, e.From) // it was filled as the other strategy deals it
	}
	return t.Reserve(&need)
}

// dealings returns the strategies that compute what one node does.
func dealings(t *train.Trainer) (to []Dealing) {
	for _, d := range t.Options.Strategies {
		if !d.Exact {
			continue
		}
		keeps, far := t.WouldKeep(d.Name)
		to = append(to, Dealing{Name: d.Name, Deal: d.Deal, Asking: d.Asking, Keeps: keeps, Far: far})
	}
	return to
}

// Sizes returns the sizes of the model's computation that a choice depends on.
func Sizes(t *train.Trainer) Model {
	m := Model{Features: featureNumbers(t)}
	for _, l := range t.Learners {
		m.Weights += l.Model.Size()
	}
	front, err := t.Learners[0].Model.Front()
	if err != nil || t.Sweeps() {
		return m // no such sum
	}
	m.Sum = front.Cols
	for _, term := range front.Terms {
		m.Front += term.Param.Rows * term.Param.Cols
	}
	return m
}

// featureNumbers returns how many numbers the features of all vertices take.
func featureNumbers(t *train.Trainer) float64 {
	columns := float64(t.Data.Features.Columns())
	if t.Data.Features.Sparse() {
		columns = 2 * t.Data.Entries
	}
	return columns * float64(t.Data.About.Vertices)
}

// ColumnsFit reports whether this node's columns of p3 fit in half of the memory that
// is left.
func ColumnsFit(t *train.Trainer) bool {
	return 4*featureNumbers(t)/float64(len(t.Session.Work.Nodes)) <= float64(budget.Left(t.Options.Memory, 0))/2
}

// Reconsider implements Chooser: it decides by the time of an epoch.
func (c *Chooser) Reconsider(ctx context.Context, e *trained.Epoch) error {
	t := c.run
	if e.Epoch == t.Recipe.Epochs {
		return nil
	}
	var need train.Needs
	tried, from, why := false, c.choice.Chosen().Name, c.choice.Why()
	changed, err := c.choice.Note(ctx, Measured{
		Epoch: e.Epoch, Next: t.Begins(e), Seconds: e.Seconds, Sample: e.Phases.Sample, Compute: e.Phases.Compute, Wait: e.Phases.Wait,
	}, func(to Candidate) (fits bool, err error) {
		tried = true
		if need, err = Try(ctx, t, to, e.Epoch+1); err != nil {
			return false, err
		}
		return RoomFor(ctx, t, &need, e.Epoch)
	})
	switch {
	case err != nil || !tried:
		return err
	case changed && t.Options.Schedule != nil:
		to := c.choice.Chosen()
		t.Change(e, schedule.Entry{Strategy: to.Name, Part: t.Options.Strategies.PartOf(to.Name, to.Dealer), Why: c.choice.Why()})
		if err := c.choice.Use(from, why); err != nil {
			return err
		}
		c.Back()
		return nil
	case changed:
		t.Sharing.Why = c.choice.Why()
		t.Log.Info("the nodes have changed how they share the job", "strategy", t.Sharing.Strategy, "why", t.Sharing.Why)
		if t.Batches.Same {
			return t.Batches.Fill(ctx, e.Epoch+1) // it was filled as the other strategy deals it
		}
		return t.Reserve(&need)
	}
	t.Log.Info("another strategy would be faster, but a node lacks the memory for it", "strategy", c.choice.Chosen().Name)
	c.Back()
	return nil
}

// dealt is a method whose dealer can be replaced between epochs. All that auto chooses in
// mid-run are.
type dealt interface{ SetDealer(deal.Dealer) }

// Try switches to a strategy from an epoch on, and returns the memory that its steps
// take.
func Try(ctx context.Context, t *train.Trainer, c Candidate, epoch int) (need train.Needs, err error) {
	t.Use(c.Name, c.Dealer)
	t.Method.(dealt).SetDealer(c.Dealer)
	if err := t.Batches.Outline(ctx, train.NewLooker(t), epoch, train.Looks, func(o *slot.Outline) { t.Method.See(&need, o) }); err != nil {
		return need, err
	}
	t.Settle(&need)
	return need, nil
}

// roomToChange is the index of the end-of-epoch message on the memory that another
// strategy takes. It lies between the models' messages and auto's.
const roomToChange = 1 << 12

// RoomFor reports whether all nodes have room for another strategy after an epoch.
// Nodes on one machine share its memory.
func RoomFor(ctx context.Context, t *train.Trainer, need *train.Needs, epoch int) (bool, error) {
	tag := exchange.Tag{Epoch: uint32(epoch), Step: uint32(t.Batches.Steps), Lane: exchange.LaneMessages, Index: roomToChange}
	err := t.Afford(ctx, tag, need.OnHost())
	if _, short := errors.AsType[*budget.Short](err); short {
		return false, nil
	}
	if err == nil {
		err = t.Fault(epoch, 0)
	}
	return err == nil && t.AffordDevice(need) == nil, err
}

// Back returns to the chosen strategy after another was tried.
func (c *Chooser) Back() {
	t, to := c.run, c.choice.Chosen()
	t.Use(to.Name, to.Dealer)
	t.Method.(dealt).SetDealer(to.Dealer)
}
