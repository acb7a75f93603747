package program

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
)

// most bounds the sums of a step. Nodes remember what they say of each until the next.
const most = 4096

// firstIndex separates what programs have their nodes say from the rest of a step's messages.
const firstIndex = 1 << 16

// sums are what the programs of all nodes do together: one act after the other in a step,
// and the same everywhere. Before an act each node says which it is.
type sums struct {
	run   *train.Trainer
	left  uint64 // bytes that rooms may take; 0: nobody has said
	epoch int
	step  int
	next  uint32 // the number of the next act in this step
	tally *peer.Tally

	chain  [sha256.Size]byte // digest of all sums so far
	waited time.Duration
	f32    []float32
	f64    []float64
	spare  *desk.Memory // for sums that this node brings nothing to
}

// begin begins a step, unless it is under way.
func (x *sums) begin(epoch, step int, tally *peer.Tally) {
	if epoch != x.epoch || step != x.step {
		x.epoch, x.step, x.next = epoch, step, 0
	}
	x.tally = tally
}

// The acts.
const (
	actNothing = iota // to a sum of which the others know the numbers
	actF32
	actF64
	actEnd // no further act in this step, which others find if they look
	actNext
	actStop
	actReport
)

// An act is what one node says of it.
type act struct {
	Kind   uint64
	Count  uint64 // numbers of a sum
	Weight float64
}

const actSize = 3 * 8

func (a *act) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, actSize), a.Kind)
	b = binary.LittleEndian.AppendUint64(b, a.Count)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Weight))
}

// String is what a node does, as part of a sentence.
func (a *act) String() string {
	switch a.Kind {
	case actNothing:
		return "brings nothing to a sum"
	case actF32, actF64:
		return fmt.Sprintf("sums %d numbers of %s", a.Count, map[uint64]string{actF32: desk.F32, actF64: desk.F64}[a.Kind])
	case actEnd, actNext:
		return "asks for the next batch"
	case actStop:
		return "asks to stop"
	}
	return "reports the epoch"
}

func (x *sums) tag() exchange.Tag {
	return exchange.Tag{Epoch: uint32(x.epoch), Step: uint32(x.step), Index: firstIndex + x.next}
}

// meet has all nodes say what they do next, with some more bytes, and returns that.
func (x *sums) meet(ctx context.Context, mine act, more []byte) (all []act, rest [][]byte, err error) {
	messages, err := x.run.Session.Exchange.Gather(ctx, x.tag(), append(mine.encode(), more...), x.tally)
	if err != nil {
		return nil, nil, fmt.Errorf("hear what the programs of the other nodes do: %w", err)
	}
	x.next++
	for node, m := range messages {
		a, after, err := readAct(m)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s %w", x.run.Session.Name(node), err)
		}
		all, rest = append(all, a), append(rest, after)
	}
	return all, rest, nil
}

// readAct reads what a node does, and returns what follows in its message.
func readAct(m []byte) (a act, rest []byte, err error) {
	if len(m) < actSize {
		return a, nil, fmt.Errorf("says in %d bytes what its program does", len(m))
	}
	a = act{binary.LittleEndian.Uint64(m), binary.LittleEndian.Uint64(m[8:]), math.Float64frombits(binary.LittleEndian.Uint64(m[16:]))}
	switch {
	case a.Kind > actReport:
		return a, nil, fmt.Errorf("says that its program does %d, which is nothing", a.Kind)
	case a.Count > desk.MostBytes/4:
		return a, nil, fmt.Errorf("sums %d numbers, and %d is the most", a.Count, desk.MostBytes/4)
	case !(math.Abs(a.Weight) <= desk.MostWeight):
		return a, nil, fmt.Errorf("gives a sum the weight %g", a.Weight)
	}
	return a, m[actSize:], nil
}

// readScores reads what a program reported on another node.
func readScores(text []byte) (s desk.Scores, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, err
	}
	return s, s.Check()
}

// end lets others know that this node's program asks for nothing more in this step. Nobody
// waits for it: a node whose program does ask for more finds out.
func (x *sums) end() {
	if x.run.Session.Alone() {
		return
	}
	tag := x.tag()
	tag.Lane = exchange.LaneMessages
	next := act{Kind: actEnd}
	x.run.Session.Exchange.Offer(tag, next.encode())
}

// apart returns an error if programs do things of different kinds.
func (x *sums) apart(all []act) error {
	for node := range all {
		if all[node].Kind != all[0].Kind {
			return x.differ(all, 0, node)
		}
	}
	return nil
}

// unlike is the error of programs that do not the same.
type unlike struct{ error }

// differ returns the error of two nodes whose programs do not the same. All nodes return it,
// unless one has gone on.
func (x *sums) differ(all []act, a, b int) error {
	s := x.run.Session
	err := unlike{fmt.Errorf("in step %d of epoch %d, the program of node %s %s where that of node %s %s: all must ask for the same, in the same order", x.step+1, x.epoch, s.Name(a), &all[a], s.Name(b), &all[b])}
	if all[a].Kind == actEnd || all[b].Kind == actEnd {
		return err
	}
	return &session.Agreed{Err: err}
}

// stops reports whether the job is to stop, which all programs must say alike.
func (x *sums) stops(ctx context.Context, stop bool) (bool, error) {
	if x.run.Session.Alone() {
		return stop, nil
	}
	mine := act{Kind: actNext}
	if stop {
		mine.Kind = actStop
	}
	all, _, err := x.meet(ctx, mine, nil)
	if err == nil {
		err = x.apart(all)
	}
	return stop, err
}

// share sets scores to those of the first node.
func (x *sums) share(ctx context.Context, scores *desk.Scores) error {
	if x.run.Session.Alone() {
		return nil
	}
	text, err := json.Marshal(scores)
	if err != nil {
		return fmt.Errorf("write what the program reports: %w", err)
	}
	all, rest, err := x.meet(ctx, act{Kind: actReport}, text)
	if err == nil {
		err = x.apart(all)
	}
	if err != nil {
		return err
	}
	if *scores, err = readScores(rest[0]); err != nil {
		return fmt.Errorf("node %s sent a malformed report: %w", x.run.Session.Name(0), err)
	}
	return nil
}

// sum answers a question for a sum.
func (m *method) sum(ctx context.Context, a *desk.Asking) (err, fatal error) {
	x := &m.sums
	mine := act{Kind: actNothing, Weight: a.Weight}
	size, kind := uint64(4), uint64(actF32)
	if a.DType == desk.F64 {
		size, kind = 8, actF64
	}
	var from []byte
	if a.Region != nil {
		if from, err = m.room.Of(a.Region); err != nil {
			return err, nil
		}
		if uint64(len(from))%size != 0 {
			return fmt.Errorf("%d bytes are no whole number of %s", len(from), a.DType), nil
		}
		mine.Kind, mine.Count = kind, uint64(len(from))/size
	}
	if x.next >= most {
		return fmt.Errorf("a step may have %d sums, and this is one more: sum several tensors at once", most), nil
	}
	start := time.Now()
	defer func() { x.waited += time.Since(start) }()
	all, of := []act{mine}, mine
	if !m.run.Session.Alone() {
		if all, _, fatal = x.meet(ctx, mine, nil); fatal != nil {
			return nil, fatal
		}
		// Those that bring nothing go along with any.
		if of, fatal = x.common(all); fatal != nil {
			return nil, fatal
		}
	} else {
		x.next++
	}
	if of.Kind == actNothing {
		of.Kind = kind
	}
	weight := 0.0
	for i := range all {
		weight += all[i].Weight
	}
	var sum []byte
	if of.Kind == actF64 {
		x.f64, fatal = add(ctx, x, x.f64, from, of.Count)
		sum = plain.Bytes(x.f64)
	} else {
		x.f32, fatal = add(ctx, x, x.f32, from, of.Count)
		sum = plain.Bytes(x.f32)
	}
	if fatal != nil {
		return nil, fatal
	}
	digest := sha256.New()
	digest.Write(x.chain[:])
	digest.Write(sum)
	digest.Sum(x.chain[:0])
	return m.give(a, from, sum, weight), nil
}

// common returns the sum that all who bring something make.
func (x *sums) common(all []act) (of act, err error) {
	first := -1 // of those
	for node := range all {
		a := &all[node]
		switch {
		case a.Kind == actNothing:
			continue
		case first < 0:
			first, of = node, *a
		}
		if a.Kind > actF64 || a.Kind != of.Kind || a.Count != of.Count {
			if node == first { // this one sums, or brings nothing
				first = x.run.Session.Work.Self
			}
			return of, x.differ(all, first, node)
		}
	}
	return of, nil
}

// add sets row to the sum over all nodes of from, which is empty where this node brings
// nothing. from is read once.
func add[T float32 | float64](ctx context.Context, x *sums, row []T, from []byte, count uint64) ([]T, error) {
	if uint64(cap(row)) < count {
		row = make([]T, count)
	}
	row = row[:count]
	clear(row)
	copy(plain.Bytes(row), from)
	if x.run.Session.Alone() || count == 0 {
		return row, nil
	}
	tag := x.tag()
	_, err := exchange.Reduce(ctx, x.run.Session.Exchange, exchange.Round{Tag: tag, Tally: x.tally}, [][]T{row}, row)
	if err != nil {
		return row, fmt.Errorf("add up what the programs give in epoch %d, step %d: %w", x.epoch, x.step+1, err)
	}
	return row, nil
}

// give puts a sum where the program reads it.
func (m *method) give(a *desk.Asking, to, sum []byte, weight float64) error {
	x := &m.sums
	if a.Region != nil {
		copy(to, sum)
		a.Answer(desk.Answer{Body: desk.Summed{Type: "summed", Weight: weight}})
		return nil
	}
	if x.spare == nil || len(x.spare.Data) < len(sum) {
		m.shared.drop(x.spare)
		x.spare = nil
		spare, err := m.shared.take(uint64(len(sum)))
		if err != nil {
			return err
		}
		x.spare = spare
	}
	copy(x.spare.Data, sum)
	bytes := uint64(len(sum))
	a.Answer(desk.Answer{Body: desk.Summed{Type: "summed", Weight: weight, Region: &desk.Region{Memory: x.spare.ID, Bytes: bytes}, Bytes: &bytes}, Uses: []*desk.Memory{x.spare}})
	return nil
}
