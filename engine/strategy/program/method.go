package program

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// method is the train.Method of a run whose steps a program computes. The run's goroutine
// serves the program from one next to the following one; between them it waits, and goes on
// with the run.
type method struct {
	*batched.Batched
	run  *train.Trainer
	desk *desk.Desk

	visit   *desk.Visit // nil: the run has not begun
	pending *desk.Asking
	why     string // the run ends, if it is not done

	shared shared
	room   *desk.Memory // for sums and states
	state  *desk.Memory // that the program goes on from, until it asks for a batch
	sums   sums
	kept   kept
	scores desk.Scores // of the epoch under way, reported by this node's program, then the first's
	done   bool
	draws  draws

	reader reader
}

// A reader is what the program that has said hello knows. Workers read its form, which run
// within epochs only, and a program that comes within one ends the run.
type reader struct {
	form      desk.Form
	announced bool // the next batch, by the last answer
}

func newMethod(t *train.Trainer) (train.Method, error) {
	if t.Options.Desk == nil {
		return nil, errors.New("no program can attach to this run, which has steps that one computes")
	}
	m := &method{Batched: batched.New(t), run: t, desk: t.Options.Desk, why: "the run has ended"}
	m.Layers, m.Onward = handing{batched.NewFromRows(t), t}, true
	m.shared.desk, m.sums.run = m.desk, t
	return m, nil
}

// Attach implements train.Method.
func (m *method) Attach(l *train.Learner) error {
	m.kept = kept{learner: l, at: l.At}
	l.Extras = append(l.Extras, &m.kept)
	return m.Batched.Attach(l)
}

// SumRows implements train.Method: the placeholder is not summed.
func (m *method) SumRows(*train.Learner, uint64) uint64 { return 0 }

// Fit implements train.Method. A program may change its batch, so none serves all epochs.
func (m *method) Fit(_ context.Context, n *train.Needs) (again bool, err error) {
	again, m.run.Batches.Same = m.run.Batches.Same, false
	if bound := m.run.Options.Memory; bound > 0 {
		// Half is for rows of other nodes that are kept.
		m.sums.left = (bound - min(bound, n.OnHost())) / 2
	}
	return again, nil
}

// Start implements train.Method.
func (m *method) Start(context.Context) error {
	m.visit = m.desk.Open()
	return nil
}

// Evaluates implements train.Method: the program reports what it evaluates.
func (m *method) Evaluates() bool { return false }

// Common implements train.Method.
func (m *method) Common(*train.Learner) bool { return m.kept.common() }

// Resumes implements train.Method. A run that is done goes on nowhere.
func (m *method) Resumes(l *train.Learner) bool { return m.kept.common() || l.Done() }

// Back implements train.Method.
func (m *method) Back(*train.Learner) { m.kept.back() }

// SavesFirst implements train.Method.
func (m *method) SavesFirst() bool { return true }

// Whole implements train.Method.
func (m *method) Whole(*train.Learner) bool { return false }

// Hash implements train.Method: all sums so far stand for the weights, which this node does
// not know.
func (m *method) Hash(*train.Learner) string { return hex.EncodeToString(m.sums.chain[:]) }

// Report implements train.Method.
func (m *method) Report(_ *train.Learner, e *trained.Epoch, _ train.Share) {
	s := &m.scores
	e.Loss = 0
	if s.Loss != nil {
		e.Loss = *s.Loss
	}
	if s.TrainAcc == nil && s.ValAcc == nil && s.TestAcc == nil && s.ValLoss == nil {
		return
	}
	e.Eval = &epoch.Eval{Train: s.TrainAcc, Val: s.ValAcc, Test: s.TestAcc}
	if s.ValAcc != nil {
		e.Eval.Score = *s.ValAcc
	}
	if s.ValLoss != nil {
		e.Eval.Loss = *s.ValLoss
	}
}

// BeginEpoch implements train.Method: it waits until the program asks for the first batch.
func (m *method) BeginEpoch(ctx context.Context, n int) error {
	l := m.run.Learners[0]
	m.kept.settle()
	m.scores = desk.Scores{}
	m.sums.begin(n, l.At.Step, &m.run.Session.Start)
	m.over(n - 1)
	if err := m.serve(ctx, between); err != nil {
		return m.ends(err)
	}
	if l.At.Step > 0 {
		return nil
	}
	stop, err := m.sums.stops(ctx, m.pending.Type == desk.Stop)
	if err != nil {
		return m.refuse(err)
	}
	l.At.Early = stop
	return nil
}

// over tells the program that an epoch is over, if it has asked.
func (m *method) over(n int) {
	if m.pending != nil {
		m.pending.Answer(desk.Answer{Body: desk.Over{Type: "end", Epoch: n}})
		m.pending = nil
	}
}

// Step implements train.Method: it hands a batch to the program, and serves it until it asks
// for the next. At the end of an epoch the program may evaluate and report.
func (m *method) Step(ctx context.Context, l *train.Learner, s *slot.Slot, _ []*slot.Slot, _ float64) (float64, time.Duration, error) {
	m.sums.begin(l.At.Epoch, s.Step, &s.Tally)
	m.forget() // the program has read it, since it asks for a batch
	m.pending.Answer(m.batch(l, s))
	m.pending = nil
	before := m.sums.waited
	err := m.serve(ctx, working)
	if last := s.Step+1 == m.run.Batches.Steps; err == nil && last {
		m.pending.Answer(desk.Answer{Body: desk.Over{Type: "last", Epoch: l.At.Epoch}})
		m.pending = nil
		if err = m.serve(ctx, reporting); err == nil {
			err = m.sums.share(ctx, &m.scores)
		}
	}
	if err != nil {
		return 0, 0, m.ends(err)
	}
	m.sums.end()
	return 0, m.sums.waited - before, nil
}

// batch answers by a batch, and by the one after if that is prepared too.
func (m *method) batch(l *train.Learner, s *slot.Slot) (a desk.Answer) {
	body, memory := m.body(l, s)
	known := m.reader.announced
	m.reader.announced = false
	if later := m.run.Batches.Following(); later != nil && m.reader.form.Following {
		following, memory := m.body(l, later)
		body.Following, a.Uses, m.reader.announced = &following, append(a.Uses, memory), true
	}
	a.Body, a.Uses = body, append(a.Uses, memory)
	if known {
		a.Body = desk.Announced{Type: "announced", Epoch: body.Epoch, Step: body.Step, Following: body.Following}
	}
	return a
}

// body returns what a program reads of the batch of a prepared step, and where that lies.
func (m *method) body(l *train.Learner, s *slot.Slot) (desk.Batch, *desk.Memory) {
	b := s.Own.(*handed)
	body := b.body
	body.Epoch, body.Step, body.Steps = l.At.Epoch, s.Step, m.run.Batches.Steps
	return body, b.memory
}

// Finish implements train.Method.
func (m *method) Finish(context.Context) error {
	if m.pending != nil && m.pending.Type != desk.Stop {
		m.over(m.run.Learners[0].At.Last.Epoch)
	}
	m.done = true
	return nil
}

// Close implements train.Method.
func (m *method) Close() {
	if m.visit != nil {
		m.visit.Close(m.done, m.why)
		m.visit = nil
	}
	m.shared.close()
	m.Batched.Close()
}

// ends notes why the run does.
func (m *method) ends(err error) error {
	m.why = err.Error()
	return err
}

// refuse answers the pending question by an error with which all nodes end.
func (m *method) refuse(err error) error {
	if _, is := errors.AsType[unlike](err); is {
		m.pending.Answer(desk.Failed(err))
		m.pending = nil
	}
	return m.ends(err)
}

// A phase is what a program is about to do, and so what it may ask.
type phase int

const (
	between   phase = iota // of epochs, or before the first batch
	working                // on a batch
	reporting              // all steps of the epoch are done
)

// serve answers the program until it asks for what comes next.
func (m *method) serve(ctx context.Context, p phase) error {
	for {
		a, err := m.visit.Next(ctx)
		if errors.Is(err, desk.ErrLeft) && p == between && m.sums.next == 0 && m.kept.common() {
			m.visit.Forget() // it has computed nothing
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case a.Type == desk.Next, a.Type == desk.Stop && p == between && m.run.Learners[0].At.Step == 0:
			m.pending = a
			return nil
		case a.Type == desk.Stop:
			err = errors.New("a job is stopped between two epochs, and one is under way: ask for stop after the answer end")
		case a.Type == desk.Report && p != reporting:
			err = errors.New("an epoch is reported once all of its steps are done: ask for report after the answer last")
		default:
			var fatal error
			if err, fatal = m.help(ctx, a, p); fatal != nil {
				if _, is := errors.AsType[unlike](fatal); is {
					a.Answer(desk.Failed(fatal))
				}
				return fatal // else the program hears that it is to begin again
			}
		}
		if err != nil {
			a.Answer(desk.Failed(err)) // the connection ends, which the next question finds
		}
	}
}

// help answers a question that does not end a phase. The error is what is wrong with it, and
// fatal one with which the run ends.
func (m *method) help(ctx context.Context, a *desk.Asking, p phase) (err, fatal error) {
	switch a.Type {
	case desk.Hello:
		return m.welcome(a), nil
	case desk.Room:
		return m.makeRoom(a), nil
	case desk.Keep:
		from, err := m.room.Of(a.Region)
		if err != nil {
			return err, nil
		}
		done := m.run.Learners[0].At.Step
		if p != between {
			done = m.sums.step + 1
		}
		m.kept.keep(append([]byte{}, from...), done, m.sums.chain)
		a.Answer(desk.Just("kept"))
	case desk.Report:
		m.scores = a.Scores
		a.Answer(desk.Just("noted"))
	case desk.Sum:
		return m.sum(ctx, a)
	case desk.Draw:
		return m.draw(ctx, a)
	case desk.Own:
		return m.own(a), nil
	case desk.Know:
		return m.know(ctx, a)
	}
	return nil, nil
}

// welcome answers hello: from here the program goes on.
func (m *method) welcome(a *desk.Asking) error {
	t, l := m.run, m.run.Learners[0]
	about := &t.Data.About
	if about.Targets != graph.OneClass && !a.Columns {
		return fmt.Errorf("the dataset has %s targets in columns, and the program knows one class of each vertex only: take the package of the same release as the node", about.Targets)
	}
	m.sums.chain, m.reader = m.kept.chain, reader{form: a.Form}
	r := desk.Ready{
		Type: "ready", Version: desk.Version, Rank: t.Session.Work.Self, Size: max(1, len(t.Session.Work.Nodes)), Epoch: l.At.Epoch, Step: l.At.Step,
		Steps: t.Batches.Steps, Epochs: t.Recipe.Epochs, Vertices: about.Vertices, Features: about.Features, Classes: about.Classes,
		Targets: string(about.Targets),
		Layers:  l.Model.Hops(), Seed: t.Recipe.Seed,
	}
	of := m.along()
	r.Relations, r.Weighted, r.EdgeFeatures = of.relations, of.weighted, of.columns
	if w := &t.Options.Work; len(w.Nodes) > 0 { // that of the session has no name of a node that is alone
		r.Node = w.Nodes[w.Self]
	}
	var uses []*desk.Memory
	m.forget() // that of a program which has left
	if m.kept.state != nil {
		memory, err := m.shared.take(uint64(len(m.kept.state)))
		if err != nil {
			return err
		}
		copy(memory.Data, m.kept.state)
		r.State = &desk.Region{Memory: memory.ID, Bytes: uint64(len(m.kept.state))}
		m.state, uses = memory, append(uses, memory)
	}
	a.Answer(desk.Answer{Body: r, Uses: uses})
	return nil
}

// forget gives back the memory of the state that a program was to go on from.
func (m *method) forget() {
	m.shared.drop(m.state)
	m.state = nil
}

// copies is how much memory a node needs for what a program has room for: the room itself,
// numbers that are summed with those of others, and a state with what a checkpoint is
// written from.
const copies = 4

// makeRoom replaces the room for sums and states.
func (m *method) makeRoom(a *desk.Asking) error {
	if left := m.sums.left; m.run.Options.Memory > 0 && a.Bytes > left/copies {
		return fmt.Errorf("room for %s of sums and states takes %s on this node, and %s of its memory are left: let the node use more, or take smaller batches", budget.Format(a.Bytes), budget.Format(copies*a.Bytes), budget.Format(left))
	}
	m.shared.drop(m.room)
	m.room = nil
	room, err := m.shared.take(a.Bytes)
	if err != nil {
		return err
	}
	m.room = room
	a.Answer(desk.Answer{Body: desk.Roomy{Type: "room", Region: desk.Region{Memory: room.ID, Bytes: a.Bytes}}, Uses: []*desk.Memory{room}})
	return nil
}
