package batched

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A tour moves models from node to node between the slots of a step. A node passes on
// the model of a slot at once, before it computes with it, so that a hop hides behind
// the computing of the slot before.
//
// Within a step all models are the same bits, since they are updated together at its
// end. They travel nevertheless, in the same frames as models that differ, and each
// slot computes with the model that arrived.
type tour struct {
	session *session.Session
	of      Head // the same in all frames of a step
	// Two sets of buffers, a buffer for each stop, are used in turn, since others may
	// still read the last one.
	buffers [2][][]byte
	turn    int
	stops   []stop
	// arrived receives the result of each stop but the first, in order.
	arrived chan error
	running sync.WaitGroup
}

// A stop is a slot of this node, and where its model comes from.
type stop struct {
	slot, model, from int
	buffer            []byte // a frame
}

// Begin starts the tour of a step, if there is one.
func (o *tour) Begin(ctx context.Context, t *train.Learner, s *slot.Slot) {
	o.stops = o.stops[:0]
	for i := range s.Groups {
		if g := &s.Groups[i]; i == 0 || g.Slot != s.Groups[i-1].Slot {
			o.stops = append(o.stops, stop{slot: g.Slot, model: g.Model, from: g.From})
		}
	}
	if len(o.stops) < 2 {
		return
	}
	if o.of.Length == 0 {
		o.of = Head{Job: t.Recipe.Digest(peer.Work{}), Rows: 1, Length: uint64(t.Weights.Cols * t.Weights.Type.Bytes())}
	}
	o.of.Epoch, o.of.Step, o.of.Updates = uint32(t.At.Epoch), uint32(s.Step), t.Optimizer.Steps()
	o.turn = 1 - o.turn
	for i := range o.stops {
		if i == len(o.buffers[o.turn]) {
			o.buffers[o.turn] = append(o.buffers[o.turn], plain.Grow(nil, HeadSize+int(o.of.Length)))
		}
		o.stops[i].buffer = o.buffers[o.turn][i]
	}
	if cap(o.arrived) < len(o.stops) {
		o.arrived = make(chan error, len(o.stops))
	}
	plain.Read(t.Run.Device, o.stops[0].buffer[HeadSize:], t.Weights)
	tag := modelTag(t, s, 0)
	o.running.Go(func() { o.travel(ctx, t, tag, &s.Tally) })
}

// travel receives models and passes them on. It checks first that what has come is
// whole and the one that is wanted, so nothing else is passed on.
func (o *tour) travel(ctx context.Context, t *train.Learner, tag exchange.Tag, tally *peer.Tally) {
	for i := range o.stops {
		at, of := &o.stops[i], o.of
		of.Model = uint32(at.model)
		if i > 0 {
			of.Slot = uint32(o.stops[i-1].slot)
			tag.Index = slotIndex(t, o.stops[i-1].slot)
			err := o.session.Exchange.Take(ctx, at.from, peer.Model, tag, at.buffer, tally)
			if err == nil {
				err = o.open(at.buffer, of)
			}
			if err != nil {
				err = fmt.Errorf("take over model %d for slot %d from node %s: %w", at.model, at.slot, o.session.Name(at.from), err)
			}
			o.arrived <- err
			if err != nil {
				return
			}
		}
		if i < len(o.stops)-1 { // nobody fetches the last one
			of.Slot = uint32(at.slot)
			tag.Index = slotIndex(t, at.slot)
			of.Seal(at.buffer)
			o.session.Exchange.Offer(tag, at.buffer)
		}
	}
}

// open checks a frame, including that its model has had as many updates as this node's.
func (o *tour) open(frame []byte, want Head) error {
	came, err := OpenFrame(frame, want)
	if err == nil && came.Updates != want.Updates {
		return fmt.Errorf("model %d came with %d updates in place of %d", came.Model, came.Updates, want.Updates)
	}
	return err
}

// Arrive waits for the model of a stop and makes it the current one.
func (o *tour) Arrive(t *train.Learner, n int) error {
	if err := <-o.arrived; err != nil { // which ctx ends, too
		return err
	}
	plain.Write(t.Run.Device, t.Weights, o.stops[n].buffer[HeadSize:])
	return nil
}

// modelTag returns the tag of the model after a slot. Each learner has its own.
func modelTag(t *train.Learner, s *slot.Slot, slot int) exchange.Tag {
	return exchange.Tag{Epoch: uint32(t.At.Epoch), Step: uint32(s.Step), Lane: exchange.LaneModel, Index: slotIndex(t, slot)}
}

func slotIndex(t *train.Learner, slot int) uint32 { return uint32(slot*len(t.Run.Learners) + t.Index) }

// End waits for what Begin has started.
func (o *tour) End() { o.running.Wait() }

// A hop is a slot of this node, and where its model comes from.
type hop struct {
	tag    exchange.Tag // of the slot: the model is offered under it afterwards
	model  int
	from   int          // -1: the model is local
	before exchange.Tag // the tag that its model was offered under there
	buffer []byte       // what has come, and then what is offered
	came   Head
}

// depart starts the tour of a step: models are received as soon as they can be, while
// those before them are computed with. differ reports whether the step before has left
// each node another model.
func (l *Local) depart(ctx context.Context, t *train.Learner, s *slot.Slot, differ bool) {
	l.turn = 1 - l.turn
	l.hops = l.hops[:0]
	for i := range s.Groups {
		g := &s.Groups[i]
		h := hop{
			tag:   modelTag(t, s, g.Slot),
			model: g.Model, from: g.From,
		}
		if i > 0 {
			h.before = l.hops[i-1].tag
		}
		if i == len(l.buffers[l.turn]) {
			l.buffers[l.turn] = append(l.buffers[l.turn], nil)
		}
		h.buffer = plain.Grow(l.buffers[l.turn][i], HeadSize+l.Bytes())
		l.buffers[l.turn][i] = h.buffer
		l.hops = append(l.hops, h)
	}
	if differ {
		l.relocate(t, s)
	}
	if cap(l.arrived) < len(l.hops) {
		l.arrived = make(chan error, len(l.hops))
	}
	l.running.Go(func() { l.travel(ctx, &s.Tally) })
}

// relocate finds where the model of the first slot was last, in the step before.
func (l *Local) relocate(t *train.Learner, s *slot.Slot) {
	first, last := &l.hops[0], &l.hops[len(l.hops)-1]
	from := l.locals.b.Dealing.after(t.Run.Batches.Roots(s.Step-1), first.model)
	if from == l.locals.b.Run.Session.Work.Self {
		return
	}
	first.from, first.before = from, last.tag // a step has as many slots as the one before
	first.before.Step--
}

// travel receives models. It checks that what has come is whole and the one that is
// wanted.
func (l *Local) travel(ctx context.Context, tally *peer.Tally) {
	for i := range l.hops {
		h := &l.hops[i]
		if h.from < 0 {
			continue
		}
		err := l.locals.b.Run.Session.Exchange.Take(ctx, h.from, peer.Model, h.before, h.buffer, tally)
		if err == nil {
			h.came, err = OpenFrame(h.buffer, l.head(h.before, h.model))
		}
		if err != nil {
			err = fmt.Errorf("take over model %d for slot %d from node %s: %w", h.model, l.slot(h.tag), l.locals.b.Run.Session.Name(h.from), err)
		}
		l.arrived <- err
		if err != nil {
			return
		}
	}
}

// Arrive waits for the model of a slot, and makes it the current one.
func (l *Local) Arrive(t *train.Learner, n int) error {
	h := &l.hops[n]
	if h.from < 0 {
		return nil
	}
	if err := <-l.arrived; err != nil { // which the context ends, too
		return err
	}
	l.write(t, h.buffer[HeadSize:])
	t.Optimizer.SetSteps(h.came.Updates)
	return nil
}

// pass offers the model of a slot to the next node. It is kept until that node is done
// with its step.
func (l *Local) pass(t *train.Learner, n int) {
	h := &l.hops[n]
	l.Read(t, h.buffer[HeadSize:])
	of := l.head(h.tag, h.model)
	of.Updates = t.Optimizer.Steps()
	of.Seal(h.buffer)
	l.locals.b.Run.Session.Exchange.Offer(h.tag, h.buffer)
}

// slot returns the slot of a tag.
func (l *Local) slot(tag exchange.Tag) uint32 {
	return tag.Index / uint32(len(l.locals.b.Run.Learners))
}

// head returns the head of a model which is offered under a tag, but for its updates.
func (l *Local) head(tag exchange.Tag, model int) Head {
	return Head{
		Job: l.job, Epoch: tag.Epoch, Step: tag.Step, Slot: l.slot(tag), Model: uint32(model),
		Rows: uint32(len(l.States)), Length: uint64(l.Bytes()),
	}
}

// A Head precedes a model that travels and identifies it: of a job, after a slot of a
// step. It is the same in all generations of the job.
type Head struct {
	Job                            [sha256.Size]byte
	Epoch, Step, Slot, Model, Rows uint32
	Updates, Length                uint64 // Length is of what follows, in bytes
}

// HeadSize is the size of a head in bytes, with a checksum of all others at its end. It
// is a multiple of 8, so that the numbers after it are aligned.
const HeadSize = sha256.Size + 5*4 + 2*8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal writes the head of a frame that already has its model.
func (h *Head) Seal(frame []byte) {
	to := append(frame[:0], h.Job[:]...)
	for _, n := range []uint32{h.Epoch, h.Step, h.Slot, h.Model, h.Rows} {
		to = binary.LittleEndian.AppendUint32(to, n)
	}
	to = binary.LittleEndian.AppendUint64(to, h.Updates)
	to = binary.LittleEndian.AppendUint64(to, h.Length)
	binary.LittleEndian.AppendUint32(to, checksum(frame))
}

func checksum(frame []byte) uint32 {
	sum := crc32.Checksum(frame[:HeadSize-4], castagnoli)
	return crc32.Update(sum, castagnoli, frame[HeadSize:])
}

// OpenFrame reads the head of a frame from another node. It returns an error unless the
// frame is the one that is wanted. Only the sender knows its number of updates.
func OpenFrame(frame []byte, want Head) (h Head, err error) {
	if len(frame) < HeadSize {
		return h, fmt.Errorf("%d bytes are no model", len(frame))
	}
	if binary.LittleEndian.Uint32(frame[HeadSize-4:]) != checksum(frame) {
		return h, errors.New("the model that came is not the one that was sent: it was damaged on its way")
	}
	rest := frame[copy(h.Job[:], frame):]
	for _, to := range []*uint32{&h.Epoch, &h.Step, &h.Slot, &h.Model, &h.Rows} {
		*to, rest = binary.LittleEndian.Uint32(rest), rest[4:]
	}
	h.Updates, h.Length = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
	want.Updates = h.Updates
	switch {
	case h.Job != want.Job:
		return h, errors.New("a model of another job came")
	case h.Length != uint64(len(frame)-HeadSize):
		return h, fmt.Errorf("a model of %d bytes came in %d", h.Length, len(frame)-HeadSize)
	case h.Updates > MostUpdates:
		return h, fmt.Errorf("a model of %d updates came", h.Updates)
	case h != want:
		return h, fmt.Errorf("model %d came as it was after slot %d of step %d of epoch %d, with %d rows in %d bytes, in place of model %d after slot %d of step %d of epoch %d, with %d rows in %d bytes",
			h.Model, h.Slot, h.Step+1, h.Epoch, h.Rows, h.Length, want.Model, want.Slot, want.Step+1, want.Epoch, want.Rows, want.Length)
	}
	return h, nil
}

// MostUpdates is more than any model has had.
const MostUpdates = 1 << 48
