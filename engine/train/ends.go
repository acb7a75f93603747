package train

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime/pprof"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Epoch finishes the epoch under way. All learners end it together: an interrupted node
// has the state of before that, or of after.
func (t *Trainer) Epoch(ctx context.Context) error {
	at := t.Place()
	if at.Step < t.Batches.Steps {
		if err := t.turn(ctx, at); err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return err
		}
		if c := t.Sharing.Chooser; c != nil {
			if err := c.Begin(ctx, at.Epoch, at.Step); err != nil {
				if ctx.Err() != nil {
					return t.Stopped(ctx)
				}
				return err
			}
		}
		if err := t.Method.BeginEpoch(ctx, at.Epoch); err != nil {
			return err
		}
		if err := t.Steps(ctx); err != nil {
			return err
		}
	}
	t.Take(at.Epoch, t.Batches.Steps)
	if err := t.Each(ctx, (*Learner).check); err != nil {
		return err
	}
	if err := t.intact.Verify(ctx); err != nil {
		if ctx.Err() != nil {
			return t.Stopped(ctx)
		}
		return err
	}
	if err := t.foresee(ctx, at.Epoch+1); err != nil {
		if ctx.Err() != nil {
			return t.Stopped(ctx)
		}
		return err
	}
	if err := t.Each(ctx, (*Learner).conclude); err != nil {
		return err
	}
	t.intact.Agreed()
	if !t.Session.Alone() && t.whole && !t.Lead().Done() {
		if err := t.learnFrom(ctx, t.ended()); err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return fmt.Errorf("look again how the nodes share the job: %w", err)
		}
		t.whole = false
	}
	if t.Evaluates(at.Epoch) {
		if at.Epoch == t.Recipe.Epochs {
			t.Batches.GiveBack()
		}
		if err := t.Each(ctx, (*Learner).examine); err != nil {
			return err
		}
	}
	for _, l := range t.Turn {
		if !l.Done() {
			l.commit()
		}
	}
	if t.Done() {
		if err := t.Method.Finish(ctx); err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return err
		}
	}
	if t.Wants() && t.resumable() {
		return t.saveSoon()
	}
	return nil
}

// Evaluates reports whether weights are evaluated after an epoch.
func (t *Trainer) Evaluates(epoch int) bool {
	return t.Method.Evaluates() && (epoch%t.Recipe.EvalEvery == 0 || epoch == t.Recipe.Epochs)
}

// Each calls do for every learner whose turn it is.
func (t *Trainer) Each(ctx context.Context, do func(*Learner, context.Context) error) error {
	for _, l := range t.Turn {
		if l.Done() {
			continue
		}
		if err := do(l, ctx); err != nil {
			if err := t.drop(ctx, l, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended returns the epoch of the learners whose turn it is, with their work added up.
func (t *Trainer) ended() *trained.Epoch {
	sum := t.Lead().end
	for _, l := range t.Turn {
		if l != t.Lead() && !l.Done() {
			sum.Took(&l.end)
		}
	}
	return &sum
}

// check returns an error if the last update made the weights infinite, which no further
// loss would show.
func (t *Learner) check(context.Context) error {
	if t.complete() && !t.sound() { // else the nodes that have them report it
		return t.Diverged(nil, "a weight")
	}
	return nil
}

// complete reports whether this node has all that is learnt: else others may know of numbers that are
// not finite, and it does not.
func (t *Learner) complete() bool { return t.Run.Method.Complete(t) && !t.Rows.Apart() }

// conclude sets end to the report of the epoch, but for its evaluation.
func (t *Learner) conclude(ctx context.Context) error {
	t.end = t.At.Under
	e := &t.end
	e.Epoch, e.Model, e.Steps = t.At.Epoch, t.Index, t.Run.Batches.Steps
	e.Loss = t.At.Losses / float64(len(t.Run.Data.Training))
	var err error
	switch {
	case !t.Run.Method.Whole(t):
		e.Hash = t.Run.Method.Hash(t)
	case t.Rows.Apart():
		t.Run.Device.Read32(t.Host, t.Weights)
		e.Hash, err = t.Run.Sharing.learnt.Hash(ctx, t.Run.Session, t.Rows, t.At.Epoch, e.Steps, t.Host)
	default:
		e.Hash = t.Hash()
	}
	if err != nil {
		if ctx.Err() != nil {
			return t.Run.Stopped(ctx)
		}
		return err
	}
	if err := t.Fault(); err != nil {
		return err
	}
	if t.Run.Session.Alone() {
		var mine Share
		t.Run.Method.Mine(t, &mine)
		t.Run.Method.Report(t, e, mine)
		return nil
	}
	if err := t.agree(ctx, e); err != nil {
		if ctx.Err() != nil {
			return t.Run.Stopped(ctx)
		}
		return err
	}
	return nil
}

// examine evaluates the epoch.
func (t *Learner) examine(ctx context.Context) (err error) {
	e := &t.end
	if e.Scores, err = t.Evaluate(ctx); err != nil {
		if ctx.Err() != nil {
			return t.Run.Stopped(ctx)
		}
		return fmt.Errorf("evaluate epoch %d: %w", e.Epoch, err)
	}
	if !IsNumber(e.Scores.Train.Loss) || !IsNumber(e.Scores.Val.Loss) {
		return t.Diverged(nil, "the loss of its evaluation")
	}
	if !IsNumber(e.Scores.Test.Loss) {
		e.Scores.Test.Loss = 0 // not used for decisions, and JSON has no infinity
	}
	e.Eval = e.Scores.Record(t.Recipe.Metric)
	return nil
}

// evaluationNodes returns the part of a session that evaluation needs.
func evaluationNodes(s *session.Session) evaluate.Nodes {
	return evaluate.Nodes{Exchange: s.Exchange, Work: s.Work, Layout: s.Layout, Source: s.Source}
}

// Evaluate scores the weights of an epoch's end on all vertices, with all their
// neighbours.
func (t *Learner) Evaluate(ctx context.Context) (*evaluate.Result, error) {
	defer pprof.SetGoroutineLabels(t.Run.Phases.Other)
	pprof.SetGoroutineLabels(t.Run.Phases.Evaluate)
	at := evaluate.Moment{Epoch: t.At.Epoch, Step: t.Run.Batches.Steps + t.Index}
	if t.Rows.Apart() {
		t.Rows.Serve(at.Epoch, at.Step)
	}
	return t.Run.Infer.Evaluate(ctx, t.view, at, t.Fault)
}

// commit goes on to the next epoch.
func (t *Learner) commit() {
	e := t.end
	e.Requests, e.Bytes = e.Sent.Record()
	if e.Eval.Ranks() && t.At.Rise(&e, &t.Recipe) {
		t.best = append(t.best[:0], t.Host...) // hash has read them
		t.Rows.KeepBest()
	}
	t.At.Last = e
	t.Run.Method.Evaluated(t)
	t.At.Epoch, t.At.Step, t.At.Losses, t.At.Under = t.At.Epoch+1, 0, 0, trained.Epoch{}
	t.History, t.end = append(t.History, e), trained.Epoch{}
	if t.Run.Options.Report != nil {
		t.Run.Options.Report(e)
	}
}

// A Share is a node's part of an epoch.
type Share = trained.Share

// Differing is trained.Differing.
type Differing = trained.Differing

// agree combines what all nodes did of an epoch, the same on each of them.
func (t *Learner) agree(ctx context.Context, e *trained.Epoch) error {
	s := t.Run.Session
	mine := Share{Rows: e.Rows, Edges: e.Edges, Slots: uint64(e.Slots), Sent: e.Sent, Phases: e.Phases, Seconds: e.Seconds, Schedule: t.Run.foreseen()}
	t.Run.Method.Mine(t, &mine)
	if err := mine.Sign(e.Hash); err != nil {
		return err
	}
	if !t.complete() && !t.sound() {
		mine.Unsound = 1
	}
	// The message can't count itself: its size is known.
	others := uint64(len(s.Work.Nodes) - 1)
	mine.Sent.Requests[peer.Control] += others
	mine.Sent.Bytes[peer.Control] += others * uint64(peer.QueryFraming+peer.AnswerFraming+binary.Size(&mine))
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return fmt.Errorf("encode what this node did of epoch %d: %w", e.Epoch, err)
	}
	tag := exchange.Tag{Epoch: uint32(e.Epoch), Step: uint32(e.Steps), Lane: exchange.LaneMessages, Index: uint32(t.Index)}
	messages, err := s.Exchange.Gather(ctx, tag, message, nil)
	if err != nil {
		return fmt.Errorf("exchange what each node did of epoch %d: %w", e.Epoch, err)
	}
	e.Rows, e.Edges, e.Slots, e.Sent, e.Phases, e.Seconds = epoch.Rows{}, 0, 0, peer.Counts{}, epoch.Phases{}, 0
	seen, unsound, earlier, next := uint64(0), false, -1, uint64(0)
	var first [sha256.Size]byte
	for node, m := range messages {
		var of Share
		if err := of.Read(m); err != nil {
			return fmt.Errorf("node %s %w", s.Name(node), err)
		}
		if node == 0 {
			next = of.Schedule
		}
		if of.Schedule != next {
			return t.Run.apart(node, e.Epoch+1)
		}
		seen, unsound = seen+of.Seen, unsound || of.Unsound > 0
		switch {
		case of.Hash == [sha256.Size]byte{}:
		case earlier < 0: // all the same, unless devices are mixed
			earlier, first = node, of.Hash
			e.Hash = hex.EncodeToString(first[:])
		case of.Hash != first && !s.Mixed:
			d := &Differing{Epoch: e.Epoch, Nodes: [2]string{s.Name(earlier), s.Name(node)}}
			if model := t.called(); model != "" {
				d.Model = " of " + model
			}
			return &session.Agreed{Err: d}
		}
		of.Add(e, float64(len(messages)))
	}
	if unsound {
		return t.Diverged(nil, "a weight")
	}
	e.Strategy, e.Why = t.Run.Sharing.Strategy, t.Run.Sharing.Why
	t.Run.Method.Report(t, e, Share{Seen: seen})
	return nil
}
