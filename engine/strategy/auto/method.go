package auto

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
var Strategy = train.Descriptor{
	Declaration: strategy.Declaration{Name: strategy.Auto, Measured: true, Describe: describe},
	Choose:      startChoosing,
}

// A Chooser is a run's choice of a strategy.
type Chooser struct {
	run    *train.Trainer
	choice *Choice
	on     *trying // nil: nothing is tried
	watch  watch
}

// trying is a trial under way.
type trying struct {
	*trial
	from  int         // its first epoch
	of    []Candidate // the tries
	clock *clock
	ready bool // it is known which of them there is room for
	held  int  // the try whose batch serves all epochs now
}

// startChoosing chooses a strategy once the nodes have met. What the schedule has is repeated, and
// nothing is looked at then.
func startChoosing(ctx context.Context, t *train.Trainer) (train.Chooser, error) {
	x := t.Session
	_, hands := t.Ahead()
	b := train.NewBatches(t, 1, 1)
	looker, epoch := train.NewLooker(t), min(t.Place().Epoch, t.Recipe.Epochs)
	if looker.Far != nil {
		looker.Far.Tally = &x.Start
	}
	b.Shuffle(epoch)
	choice, err := Consider(&Job{
		Exchange: x.Exchange, Work: x.Work, Layout: x.Layout, Settings: t.Recipe.Sharing, Strategies: dealings(t),
		Batch: b.Roots, Epoch: epoch, Steps: b.Steps, Epochs: t.Recipe.Epochs - epoch + 1, Once: b.Same,
		Model: Sizes(t), Counter: looker.Counter, Rows: x.Source, Hands: hands, Threads: t.Threads(), Room: ColumnsFit(t), Edges: x.Replicated, Tally: &x.Start,
	})
	if err != nil {
		return nil, err
	}
	c := &Chooser{run: t, choice: choice}
	e, err := t.Agreed(ctx, func() (schedule.Entry, error) {
		if err := choice.Choose(ctx); err != nil {
			return schedule.Entry{}, err
		}
		x := c.trial(epoch)
		if x == nil || epoch+x.epochs(b.Steps) > t.Recipe.Epochs || choice.fills() && !b.Same && x.all() > b.Steps/mostWhileRowsCome {
			return c.entry(choice.Chosen(), choice.Why()), nil
		}
		t.Log.Info("the nodes try strategies", "formula", choice.Why())
		return x.entry("to see what is fastest: by formula it is " + choice.Chosen().Name), nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.take(&e); err != nil {
		return nil, err
	}
	to := choice.Chosen()
	if err := t.Begin(ctx, to.Name, to.Dealer, choice.Why()); err != nil {
		return nil, err
	}
	if t.Options.Schedule != nil {
		err = c.take(&e) // it comes before what a checkpoint says
	}
	c.watch.untried = !c.triedBy(t.Place().Epoch)
	return c, err
}

// triedBy reports whether the schedule has had these nodes try strategies by an epoch.
func (c *Chooser) triedBy(epoch int) bool {
	t := c.run
	if t.Options.Schedule == nil {
		return false
	}
	for i := range epoch {
		if e, known := t.Options.Schedule.At(i+1, t.Sharing.Entry.Rate); known && e.Strategy == strategy.Auto {
			return true
		}
	}
	return false
}

// entry returns the entry of the schedule by which a candidate is used.
func (c *Chooser) entry(to Candidate, why string) schedule.Entry {
	return schedule.Entry{Strategy: to.Name, Part: c.run.Options.Strategies.PartOf(to.Name, to.Dealer), Why: why}
}

// trial returns a trial for an epoch to begin with, or nil if none is worth its time. A trial takes at
// most a quarter of the steps that are left. Where weights must be the same bits, nothing is timed.
func (c *Chooser) trial(epoch int) *trial {
	t, j := c.run, c.choice.job
	tries := c.choice.tries()
	if j.Settings.Deterministic || len(tries) == 0 {
		return nil
	}
	left := j.Steps * (t.Recipe.Epochs - epoch + 1)
	x := &trial{Steps: turnSteps(c.watch.least()/float64(j.Steps), left/len(tries)), From: epoch}
	for _, to := range tries {
		x.Tries = append(x.Tries, try{to.Name, t.Options.Strategies.PartOf(to.Name, to.Dealer)})
	}
	if x.all() > left/4 {
		return nil
	}
	return x
}

// mostWhileRowsCome bounds a trial in the first epoch of a run that keeps rows of other nodes: it may
// take one part in so many of the epoch. In a longer trial the first strategy would fetch rows that the
// others then find, and seem slower than them.
const mostWhileRowsCome = 10

// take sets what an entry of the schedule says.
func (c *Chooser) take(e *schedule.Entry) error {
	all := c.run.Options.Strategies
	c.on = nil
	if e.Strategy != strategy.Auto {
		if err := c.choice.Use(e.Strategy, e.Why); err != nil {
			return err
		}
		c.watch.renew()
		return all.Follow(e.Strategy, c.choice.Chosen().Dealer, e.Part)
	}
	x, err := parseTrial(e.Part)
	if err != nil {
		return err
	}
	slots, _ := c.run.Ahead()
	on := &trying{trial: x, from: e.From, clock: newClock(x, min(slots, x.Steps/2))}
	for _, of := range slices.Backward(x.Tries) { // the first one last, which stays in use
		if err := c.choice.Use(of.By, e.Why); err != nil {
			return err
		}
		to := c.choice.Chosen()
		if err := all.Follow(of.By, to.Dealer, of.Part); err != nil {
			return err
		}
		on.of = append(on.of, to)
	}
	slices.Reverse(on.of)
	c.on = on
	return nil
}

// Follow implements train.Chooser.
func (c *Chooser) Follow(ctx context.Context, e *schedule.Entry) error {
	t := c.run
	if err := c.take(e); err != nil {
		return err
	}
	t.Sharing.Entry, t.Sharing.Why = *e, e.Why
	return c.use(ctx, e.From)
}

// use goes over to the chosen strategy from an epoch on.
func (c *Chooser) use(ctx context.Context, epoch int) error {
	t := c.run
	need, err := Try(ctx, t, c.choice.Chosen(), epoch)
	if err != nil {
		return err
	}
	if t.Batches.Same {
		return t.Batches.Fill(ctx, epoch) // it was filled as the other strategy deals it
	}
	return t.Reserve(&need)
}

// Begin implements train.Chooser: where strategies are tried it has them take turns.
func (c *Chooser) Begin(ctx context.Context, epoch, step int) error {
	t, on := c.run, c.on
	t.Sharing.Turns = nil
	if !c.Trying(epoch) {
		return c.settle(ctx, epoch)
	}
	if !on.ready {
		if err := c.strike(ctx, epoch, step); err != nil {
			return err
		}
	}
	steps := t.Batches.Steps
	before := (epoch - on.from) * steps
	first, _ := on.turn(before)
	last, _ := on.turn(before + steps - 1)
	if first == last {
		to := on.of[first]
		t.Use(to.Name, to.Dealer)
		t.Method.(dealt).SetDealer(to.Dealer)
		if t.Batches.Same && on.held != first {
			on.held = first
			return t.Batches.Fill(ctx, epoch)
		}
		return nil
	}
	c.Back()
	turns := make([]train.Deal, len(on.of))
	for i, to := range on.of {
		turns[i] = train.Deal{Dealer: to.Dealer, Asking: to.asking}
	}
	t.Sharing.Turns = func(step int) train.Deal {
		at, _ := on.turn(before + step)
		return turns[at]
	}
	return nil
}

// settle goes back to the chosen strategy if the run was interrupted in the last turn of a trial,
// and has not decided anything.
func (c *Chooser) settle(ctx context.Context, epoch int) error {
	if c.run.Sharing.Strategy == c.choice.Chosen().Name {
		return nil
	}
	c.Back()
	if c.run.Batches.Same {
		return c.run.Batches.Fill(ctx, epoch)
	}
	return nil
}

// strike finds which tries there is room for and makes it. The turns of others are the first
// one's.
func (c *Chooser) strike(ctx context.Context, epoch, step int) error {
	t, on := c.run, c.on
	fit := []Candidate{on.of[0]}
	for i := 1; i < len(on.of); i++ {
		need, err := needOf(ctx, t, append(fit, on.of[i]), epoch)
		if err != nil {
			return err
		}
		at := exchange.Tag{Epoch: uint32(epoch), Step: uint32(step), Lane: exchange.LaneMessages, Index: roomToTry + 2*uint32(i)}
		room, err := c.room(ctx, at, &need)
		if err != nil {
			return fmt.Errorf("try the strategy %s: %w", on.of[i].Name, err)
		}
		if room {
			fit = append(fit, on.of[i])
			continue
		}
		t.Log.Info("a strategy is not tried, since a node lacks the memory for it", "strategy", on.of[i].Name)
		on.of[i] = on.of[0]
	}
	need, err := needOf(ctx, t, fit, epoch)
	if err != nil {
		return err
	}
	c.Back()
	on.ready = true
	return t.Reserve(&need)
}

// Trying implements train.Chooser.
func (c *Chooser) Trying(epoch int) bool {
	return c.on != nil && epoch >= c.on.from && epoch < c.on.from+c.on.epochs(c.run.Batches.Steps)
}

// Stepped implements train.Chooser.
func (c *Chooser) Stepped(epoch, step int, took time.Duration) {
	if c.Trying(epoch) {
		c.on.clock.note(c.on.trial, (epoch-c.on.from)*c.run.Batches.Steps+step, took.Seconds())
	}
}

// Reconsider implements train.Chooser. At the end of a trial the fastest strategy is chosen. A trial
// begins if there was none yet and rows that stay have come; and again if epochs have become slower
// or faster, or bring fewer rows.
func (c *Chooser) Reconsider(ctx context.Context, e *trained.Epoch) error {
	t, on := c.run, c.on
	switch {
	case e.Epoch == t.Recipe.Epochs || c.choice.job.Settings.Deterministic || c.Trying(e.Epoch+1):
		return nil
	case c.Trying(e.Epoch) && on.clock.whole():
		c.watch.tried(e.Rows)
		return c.decide(ctx, e)
	case on != nil: // it was interrupted, or nobody followed what it has shown
		c.on, c.watch.untried = nil, true
		return nil
	case !c.watch.note(e.Seconds, e.Rows):
		return nil
	}
	begins := t.Begins(e)
	x := c.trial(begins)
	if x == nil || begins+x.epochs(c.choice.job.Steps)-1+begins-e.Epoch > t.Recipe.Epochs {
		c.watch.tried(e.Rows) // it would end too late for what it shows to be followed
		return nil
	}
	return c.change(ctx, e, x.entry(c.watch.because(e.Rows)))
}

// decide ends a trial: the nodes exchange their times, and choose alike.
func (c *Chooser) decide(ctx context.Context, e *trained.Epoch) error {
	t, on := c.run, c.on
	at := exchange.Tag{Epoch: uint32(e.Epoch), Step: uint32(t.Batches.Steps), Lane: exchange.LaneMessages, Index: timesAt}
	messages, err := t.Session.Exchange.Gather(ctx, at, on.clock.encode(), &t.Session.Start)
	if err != nil {
		return fmt.Errorf("exchange how long steps took by each strategy: %w", err)
	}
	var all [][]float64
	for node, m := range messages {
		times, err := readTimes(m, len(on.Tries))
		if err != nil {
			return fmt.Errorf("node %s %w", t.Session.Name(node), err)
		}
		for i := range times {
			if i > 0 && on.of[i].Name == on.of[0].Name {
				times[i] = 0 // there was no room for it
			}
		}
		all = append(all, times)
	}
	best, slowest := quickest(all)
	return c.change(ctx, e, c.entry(on.of[best], on.verdict(best, slowest)))
}

// change has an entry followed once the nodes have agreed on it.
func (c *Chooser) change(ctx context.Context, after *trained.Epoch, e schedule.Entry) error {
	t := c.run
	if t.Options.Schedule != nil {
		if t.Change(after, e) {
			t.Log.Info("the nodes change how they share the job", "strategy", e.Strategy, "why", e.Why)
		}
		return nil // until then the epochs have the chosen strategy, see Begin
	}
	t.Log.Info("the nodes change how they share the job", "strategy", e.Strategy, "why", e.Why)
	e.From = after.Epoch + 1
	return c.Follow(ctx, &e)
}

// dealings returns the strategies that compute what one node does.
func dealings(t *train.Trainer) (to []Dealing) {
	for _, d := range t.Options.Strategies {
		switch {
		case d.Exact:
			keeps, far := t.WouldKeep(d.Name)
			to = append(to, Dealing{Name: d.Name, Deal: d.Deal, Asking: d.Asking, Keeps: keeps, Far: far})
		case d.Name == strategy.Single:
			to = append(to, Dealing{Name: d.Name, Deal: dealSolo})
		}
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
	m.Sum, m.Sources = front.Cols, front.Sources
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

// dealt is a method whose dealer can be replaced between epochs. All that auto chooses in
// mid-run are.
type dealt interface{ SetDealer(deal.Dealer) }

// Try switches to a strategy from an epoch on, and returns the memory that its steps
// take.
func Try(ctx context.Context, t *train.Trainer, c Candidate, epoch int) (train.Needs, error) {
	return needOf(ctx, t, []Candidate{c}, epoch)
}

// needOf returns the memory that steps take by any of some strategies.
func needOf(ctx context.Context, t *train.Trainer, all []Candidate, epoch int) (need train.Needs, err error) {
	for _, c := range all {
		t.Use(c.Name, c.Dealer)
		t.Method.(dealt).SetDealer(c.Dealer)
		if err := t.Batches.Outline(ctx, train.NewLooker(t), epoch, train.Looks, func(o *slot.Outline) { t.Method.See(&need, o) }); err != nil {
			return need, err
		}
	}
	t.Settle(&need)
	return need, nil
}

// roomToTry is the index of the first messages on the memory that strategies take which are to be
// tried: two for each. They come after the models' messages. timesAt is that of the times that
// they took.
const (
	roomToTry = 1 << 14
	timesAt   = 1 << 15
)

// room reports whether all nodes have room for what steps need. It sends two messages. Nodes on
// one machine share its memory.
func (c *Chooser) room(ctx context.Context, at exchange.Tag, need *train.Needs) (bool, error) {
	here, err := RoomFor(ctx, c.run, at, need)
	if err != nil {
		return false, err
	}
	message := []byte{0}
	if here {
		message[0] = 1
	}
	at.Index++
	messages, err := c.run.Session.Exchange.Gather(ctx, at, message, &c.run.Session.Start)
	if err != nil {
		return false, err
	}
	all := true
	for node, said := range messages {
		if len(said) != 1 || said[0] > 1 {
			return false, fmt.Errorf("node %s sent a malformed report of whether it has room (%d bytes)", c.run.Session.Name(node), len(said))
		}
		all = all && said[0] == 1
	}
	return all, nil
}

// RoomFor reports whether this node has room for what steps need, and all nodes together.
func RoomFor(ctx context.Context, t *train.Trainer, at exchange.Tag, need *train.Needs) (bool, error) {
	err := t.Afford(ctx, at, need.OnHost())
	if _, short := errors.AsType[*budget.Short](err); short {
		return false, nil
	}
	if err == nil {
		err = t.Fault(int(at.Epoch), 0)
	}
	return err == nil && t.AffordDevice(need) == nil, err
}

// Back returns to the chosen strategy after another was tried.
func (c *Chooser) Back() {
	t, to := c.run, c.choice.Chosen()
	t.Use(to.Name, to.Dealer)
	t.Method.(dealt).SetDealer(to.Dealer)
}
