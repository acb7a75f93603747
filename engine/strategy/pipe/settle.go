package pipe

import (
	"context"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Own is which columns of all weights this node trains: those of its stage. Of gradients
// it has these alone, and what it has of the others' weights is what they were when all
// nodes settled last.
func (w *Worker) Own() (from, to int) { return w.from, w.to }

// Parted says whether some node trains some weights only.
func (w *Worker) Parted() bool { return w.parted }

func parted(s *Seats, nodes int) bool { return s.Stages > 1 || len(s.Members(0)) < nodes }

// Settle has all nodes have all columns of rows that each has its own columns of: some
// of those that are numbered from first on, of which each is settled once after an epoch
// at most. All nodes call it with as many, and tell each other something afterwards before
// they settle again.
func (w *Worker) Settle(ctx context.Context, first int, rows []tensor.Matrix, tally *strategy.Tally) error {
	if !w.Parted() {
		return nil
	}
	w.within(ctx)
	w.tally = tally
	for i, row := range rows {
		if err := w.settle(first+i, row); err != nil {
			w.abandon(err)
			return fmt.Errorf("bring together what stages have learnt: %w", err)
		}
	}
	return nil
}

// settle takes turns with one row: each member of a stage gives a share of its columns.
func (w *Worker) settle(number int, row tensor.Matrix) error {
	for stage := range w.Seats.Stages {
		from, to := columnsOf(w.Model, w.Cuts[stage], w.Cuts[stage+1])
		members := w.Seats.Members(stage)
		for member, node := range members {
			first, end := shareOf(to-from, member, len(members))
			mine := w.ways != nil && stage == w.stage
			if end == first || mine && node != w.Work.Self {
				continue
			}
			part := row.View(0, 1, from+first, end-first)
			tag := w.tag(exchange.LaneSettled, stage, member)
			tag.Index += uint32(number * w.Seats.Stages * w.nodes())
			if mine {
				w.Exchange.Offer(tag, w.given(number, part))
				continue
			}
			w.settling(node).start(tag, memory(part))
		}
	}
	for _, f := range w.settles {
		if err := f.wait(); err != nil {
			return err
		}
	}
	return nil
}

// given is a copy of what this node gives of a row, which others may still read when the
// row is no more.
func (w *Worker) given(number int, part tensor.Matrix) []byte {
	for len(w.gives) <= number {
		w.gives = append(w.gives, nil)
	}
	if w.gives[number] == nil {
		w.gives[number] = room(bytes(part))
	}
	copy(w.gives[number], memory(part))
	return w.gives[number]
}

// settling is what takes a share from a node, each of which gives one.
func (w *Worker) settling(node int) *fetch {
	if w.settles == nil {
		w.settles = make(map[int]*fetch)
	}
	if w.settles[node] == nil {
		w.settles[node] = w.newFetch(node, strategy.Model)
	}
	return w.settles[node]
}

// memory is where a row lies, which is the host's.
func memory(row tensor.Matrix) []byte {
	if row.Type == tensor.F64 {
		return raw(row.F64())
	}
	return raw(row.F32())
}

// A digest is that of all weights, of which stages have parts: each goes on where the one
// before has stopped, way by way, so that nodes of a stage that differ come to different
// ends.
type digest struct {
	sum      hash.Hash
	state    []byte // as it is told
	from     *fetch // nil: nobody is before
	previous []byte
}

func newDigest(w *Worker) *digest {
	d := &digest{sum: sha256.New()}
	if w.stage > 0 {
		d.from = w.newFetch(w.Seats.Node(w.stage-1, w.ways[0].number), strategy.Control)
		d.state = d.append(nil)
		d.previous = make([]byte, len(d.state))
	}
	return d
}

func (d *digest) append(to []byte) []byte {
	to, err := d.sum.(encoding.BinaryAppender).AppendBinary(to)
	if err != nil {
		panic(fmt.Sprintf("pipe: the state of a digest: %v", err)) // it never fails
	}
	return to
}

// Digest is that of all weights, on nodes of the last stage, and nil on others. own is
// what this node trains of them, as it is to be digested.
func (w *Worker) Digest(ctx context.Context, own []byte, tally *strategy.Tally) (sum []byte, err error) {
	if w.ways == nil {
		return nil, nil
	}
	w.within(ctx)
	w.tally = tally
	d := w.digest
	d.sum.Reset()
	if d.from != nil {
		if err := d.goOn(w); err != nil {
			w.abandon(err)
			return nil, err
		}
	}
	d.sum.Write(own)
	if w.last() {
		return d.sum.Sum(nil), nil
	}
	d.state = d.append(d.state[:0])
	w.Exchange.Offer(w.tag(exchange.LaneDigest, w.stage, w.ways[0].number), d.state)
	return nil, nil
}

// goOn begins where the stage before has stopped.
func (d *digest) goOn(w *Worker) error {
	d.from.start(w.tag(exchange.LaneDigest, w.stage-1, w.ways[0].number), d.previous)
	if err := d.from.wait(); err != nil {
		return fmt.Errorf("take the digest of the weights of earlier stages: %w", err)
	}
	if err := d.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(d.previous); err != nil {
		return fmt.Errorf("what node %s tells of its weights is no digest of any: %w", w.Work.Nodes[d.from.node], err)
	}
	return nil
}
