package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// CommitTakes is about how long nodes take to agree on an entry of the schedule. An entry begins
// at least so long after it was decided, and a whole epoch, so that no epoch waits for it. Tests
// shorten it.
var CommitTakes = 250 * time.Millisecond

// following is how a run follows its schedule.
type following struct {
	Entry  schedule.Entry // in force
	coming int            // the epoch with which an entry begins that this run has decided; 0: none
	next   schedule.Entry // of the epoch that follows; zero until the run begins
}

// scheduled reports whether the nodes take what they decide from a schedule.
func (t *Trainer) scheduled() bool { return t.Options.Schedule != nil }

// rate returns the learning rate of the schedule's entries.
func (t *Trainer) rate() float64 {
	if t.Sweeps() {
		return 0
	}
	return t.Recipe.Rate
}

// Agreed returns what holds from the run's first epoch on. It is in the schedule, or the nodes
// decide it now: decide is then called on all of them, alike, and what comes of it on the first
// one is proposed.
func (t *Trainer) Agreed(ctx context.Context, decide func() (schedule.Entry, error)) (schedule.Entry, error) {
	if t.scheduled() {
		if e, known := t.Options.Schedule.At(t.from(), t.rate()); known {
			t.Sharing.Entry = e
			return e, nil
		}
	}
	e, err := decide()
	if err != nil {
		return e, err
	}
	e.From = t.from()
	t.Sharing.Entry, err = t.propose(ctx, e)
	return t.Sharing.Entry, err
}

// propose has the nodes agree on an entry for an epoch of which nothing is known, and returns what
// holds then.
func (t *Trainer) propose(ctx context.Context, e schedule.Entry) (schedule.Entry, error) {
	e.Rate = t.rate()
	if !t.scheduled() {
		return e, nil
	}
	if t.Session.Work.Self == 0 {
		t.Options.Schedule.Propose(e)
	}
	// The plan may find that an entry of the same nodes from before says the same, and add none.
	known, err := t.Options.Schedule.Known(ctx, e.From, e.Rate)
	if err != nil {
		return known, fmt.Errorf("agree on how the nodes share epochs from %d on: %w", e.From, err)
	}
	return known, nil
}

func (t *Trainer) await(ctx context.Context, from int) (schedule.Entry, error) {
	e, err := t.Options.Schedule.Await(ctx, from)
	if err != nil {
		return e, fmt.Errorf("agree on how the nodes share epochs from %d on: %w", from, err)
	}
	return e, nil
}

// takeUp follows the schedule from the run's first epoch on, where the strategy is given and has
// nothing to measure.
func (t *Trainer) takeUp(ctx context.Context) error {
	if d := t.described(); d.Measured || t.Session.Alone() {
		return nil
	}
	e, err := t.Agreed(ctx, func() (schedule.Entry, error) {
		return schedule.Entry{Strategy: t.Sharing.Strategy, Part: t.Options.Strategies.PartOf(t.Sharing.Strategy, t.Sharing.Dealer)}, nil
	})
	if err != nil {
		return err
	}
	return t.obey(&e)
}

// obey has the dealer deal by an entry.
func (t *Trainer) obey(e *schedule.Entry) error {
	s := t.Sharing
	err := t.Options.Strategies.Follow(s.Strategy, s.Dealer, e.Part)
	if e.Strategy != s.Strategy {
		err = fmt.Errorf("it is for {strategy} %s, and the job trains by %s", e.Strategy, s.Strategy)
	}
	if err != nil {
		return fmt.Errorf("follow the schedule from epoch %d on: %w: run the same version of hopmesh on all nodes of the job", e.From, err)
	}
	s.Entry = *e
	if now := s.Dealer.Tuning(); now != (deal.Tuning{}) {
		t.tuned(now)
	}
	return nil
}

// foresee finds the entry of an epoch before that begins. What this run has decided is agreed on
// by then, as a rule, and is waited for otherwise.
func (t *Trainer) foresee(ctx context.Context, epoch int) (err error) {
	s := t.Sharing
	if !t.scheduled() || t.Session.Alone() || epoch > t.Recipe.Epochs {
		return nil
	}
	if s.coming == epoch {
		s.coming = 0
		s.next, err = t.await(ctx, epoch)
		return err
	}
	if e, known := t.Options.Schedule.At(epoch, t.rate()); known {
		s.next = e
		return nil
	}
	e := s.Entry // other nodes have trained the epoch before
	e.From = epoch
	s.next, err = t.propose(ctx, e)
	return err
}

// turn goes over to the entry that begins with an epoch, if one does. Nodes that begin see that
// all follow the same. That they go over to the same they say at the end of the epoch before.
func (t *Trainer) turn(ctx context.Context, at checkpoint.Place) error {
	s := t.Sharing
	switch {
	case !t.scheduled() || t.Session.Alone():
		return nil
	case s.next.From == 0:
		s.next = s.Entry
		return t.confirm(ctx, at)
	case s.next.From == s.Entry.From:
		return nil
	}
	t.Log.Info("the schedule changes", "epoch", at.Epoch, "strategy", s.next.Strategy, "why", s.next.Why)
	if s.Chooser != nil {
		return s.Chooser.Follow(ctx, &s.next)
	}
	slots := s.Dealer.Tuning().Slots
	if err := t.obey(&s.next); err != nil {
		return err
	}
	if t.Batches.Same && s.Dealer.Tuning().Slots != slots {
		return t.Batches.Fill(ctx, at.Epoch) // it was filled for the old number of groups
	}
	return nil
}

// confirmIndex is the index of the message in which nodes say which entry they begin with.
const confirmIndex = 1 << 13

// confirm returns an error unless all nodes begin with the same entry.
func (t *Trainer) confirm(ctx context.Context, at checkpoint.Place) error {
	x := t.Session
	tag := exchange.Tag{Epoch: uint32(at.Epoch), Step: uint32(at.Step), Lane: exchange.LaneMessages, Index: confirmIndex}
	mine := binary.LittleEndian.AppendUint64(nil, t.Sharing.Entry.Digest())
	all, err := x.Exchange.Gather(ctx, tag, mine, &x.Start)
	if err != nil {
		return fmt.Errorf("hear which schedule the other nodes follow: %w", err)
	}
	for node := range all {
		if !bytes.Equal(all[node], all[0]) {
			return t.apart(node, at.Epoch)
		}
	}
	return nil
}

// apart is the error of nodes of which one follows another schedule than the first. By two
// schedules a seed vertex would be computed twice, or never.
func (t *Trainer) apart(node, epoch int) error {
	x := t.Session
	return &session.Agreed{Err: fmt.Errorf("nodes %s and %s follow different schedules from epoch %d on: run the same version of hopmesh on both", x.Name(0), x.Name(node), epoch)}
}

// foreseen returns the digest of the entry of the next epoch; 0: the run has no schedule.
func (t *Trainer) foreseen() uint64 {
	if !t.scheduled() {
		return 0
	}
	return t.Sharing.next.Digest()
}

// Change proposes an entry for the first epoch that can begin with it once the nodes have agreed
// on it. All nodes call it alike, after the same epoch. It reports whether there is such an epoch.
func (t *Trainer) Change(after *trained.Epoch, e schedule.Entry) bool {
	e.From, e.Rate = t.Begins(after), t.rate()
	if e.From > t.Recipe.Epochs {
		return false
	}
	if t.Session.Work.Self == 0 {
		t.Options.Schedule.Propose(e)
	}
	t.Sharing.coming = e.From
	return true
}

// Begins returns the epoch with which that begins which is decided after another.
func (t *Trainer) Begins(after *trained.Epoch) int {
	if !t.scheduled() {
		return after.Epoch + 1
	}
	return after.Epoch + 1 + ahead(after.Seconds)
}

// ahead returns how many epochs pass while the nodes agree, if an epoch takes so long.
func ahead(seconds float64) int {
	if !(seconds > 0) {
		return 1 << 20
	}
	return int(min(1<<20, max(1, math.Ceil(CommitTakes.Seconds()/seconds))))
}

// decides reports whether this run decides after an epoch what follows. It does not where the
// schedule says it: what was decided begins later, or the epochs are repeated.
func (t *Trainer) decides(epoch int) bool {
	return !t.scheduled() || t.Sharing.coming == 0 && t.Options.Schedule.Last() <= epoch
}

// retune has the dealer learn from an epoch. Where there is a schedule, what it decides begins
// with a later epoch.
func (t *Trainer) retune(ctx context.Context, e *trained.Epoch) error {
	s := t.Sharing
	was := t.Options.Strategies.PartOf(s.Strategy, s.Dealer)
	slots := s.Dealer.Tuning().Slots
	s.Dealer.Note(e.Seconds)
	if next := t.Options.Strategies.PartOf(s.Strategy, s.Dealer); t.scheduled() && !bytes.Equal(was, next) {
		t.Change(e, schedule.Entry{Strategy: s.Strategy, Part: next, Why: fmt.Sprintf("as epochs until %d took", e.Epoch)})
		if err := t.Options.Strategies.Follow(s.Strategy, s.Dealer, was); err != nil {
			return err
		}
	}
	now := s.Dealer.Tuning()
	if now != (deal.Tuning{}) { // another strategy's tuning stays as it is
		t.tuned(now)
	}
	if t.Batches.Same && now.Slots != slots && e.Epoch < t.Recipe.Epochs {
		// A batch that serves all epochs was filled for the old number of groups.
		return t.Batches.Fill(ctx, e.Epoch+1)
	}
	return nil
}
