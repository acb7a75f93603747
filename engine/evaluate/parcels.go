package evaluate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
)

const (
	// messages is the first Index of evaluation's messages: those below are training's.
	messages     = 1 << 20
	meetMessage  = messages
	scoreMessage = messages + 1
	rankMessage  = messages + 2
	costMessage  = messages + 3
	linkMessage  = messages + 4 // and those behind it
	// patience is how long an answer that makes no progress may take.
	patience = 10 * time.Second
	// indices is how many there are for what evaluation offers.
	indices = 1 << 24
)

// windowBytes is about how much is taken at once. All nodes have the same.
var windowBytes = 4 << 20

// The kinds of parcels: the rows after each stage by its number, then these.
const (
	whichRows = iota // that a node needs of another
	roots            // 1/sqrt(degree) of these
	valLogits
	testLogits
	kindsOffered
)

// A parcel is what one node offers to another, or to all: rows of some bytes each.
type parcel struct {
	what int // a stage, or the number of stages plus one of the above
	to   int // whom it is for; for all: 0
	row  int // bytes
	// window is about how many bytes are offered at once; 0: windowBytes.
	window int
}

// parcels is the traffic of one evaluation at a time: what this node offers and what it
// takes of others. Their tags are those of a step after the epoch's last.
type parcels struct {
	nodes  *Nodes
	stages []string // names of the model's

	epoch, step uint32
	offered     []exchange.Tag
	tally       peer.Tally

	// Takers wait under ctx: it ends with parent, and with the first of them that fails.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc

	takers  []*taker // for each node
	running sync.WaitGroup
}

func newParcels(nodes *Nodes) *parcels {
	p := &parcels{nodes: nodes}
	for node := range nodes.Work.Nodes {
		p.takers = append(p.takers, newTaker(p, node))
	}
	return p
}

// name sets the model whose stages are exchanged next. All nodes do so at once.
func (p *parcels) name(stages []nn.StageInfo) {
	p.stages = p.stages[:0]
	for _, stage := range stages {
		p.stages = append(p.stages, stage.Name)
	}
}

// begin begins an evaluation.
func (p *parcels) begin(ctx context.Context, at Moment) {
	p.epoch, p.step = uint32(at.Epoch), uint32(at.Step)
	if p.parent != ctx || p.ctx.Err() != nil {
		p.stop()
		p.parent = ctx
		p.ctx, p.cancel = context.WithCancelCause(ctx)
	}
	p.tally.Reset()
}

// stop ends what takers wait for.
func (p *parcels) stop() {
	if p.cancel != nil {
		p.cancel(nil)
	}
}

// withdraw takes back all that is offered. It waits for those who read it.
func (p *parcels) withdraw(ctx context.Context) (err error) {
	for _, t := range p.offered {
		err = errors.Join(err, p.nodes.Exchange.Withdraw(ctx, t))
	}
	p.offered = p.offered[:0]
	return err
}

// window returns in how many bytes at a time a parcel of some bytes is offered. Tags are
// numbered by what, to and place, of which there is room for so many.
func (p *parcels) window(of parcel, bytes int) (window, room int) {
	room = max(1, indices/((len(p.stages)+kindsOffered)*len(p.nodes.Work.Nodes)))
	most := of.window
	if most == 0 {
		most = windowBytes
	}
	rows := max(1, most/of.row, (bytes/of.row+room-1)/room)
	return rows * of.row, room
}

func (p *parcels) tag(of parcel, room, place int) exchange.Tag {
	return exchange.Tag{
		Epoch: p.epoch, Step: p.step, Lane: exchange.LaneHalo,
		Index: uint32((of.what*len(p.nodes.Work.Nodes)+of.to)*room + place),
	}
}

// offer offers a parcel, which must stay as it is until the end of the evaluation.
func (p *parcels) offer(of parcel, b []byte) {
	window, room := p.window(of, len(b))
	for place := 0; len(b) > 0; place++ {
		n := min(window, len(b))
		t := p.tag(of, room, place)
		p.nodes.Exchange.Offer(t, b[:n:n])
		p.offered = append(p.offered, t)
		b = b[n:]
	}
}

// take takes what all takers were set to, at once. Afterwards none is set.
func (p *parcels) take() error {
	for _, t := range p.takers {
		if len(t.to) > 0 {
			p.running.Add(1)
			go t.run()
		}
	}
	p.running.Wait()
	for _, t := range p.takers {
		t.to = nil
	}
	return context.Cause(p.ctx)
}

// describe names a kind of parcel in a sentence.
func (p *parcels) describe(what int) string {
	switch what - len(p.stages) {
	case whichRows:
		return "the list of vertices whose rows it needs"
	case roots:
		return "the degrees of vertices next to those here"
	case valLogits, testLogits:
		return "the logits that are ranked"
	}
	return "the rows after " + p.stages[what]
}

// A taker takes parcels of one node, in a goroutine of its own.
type taker struct {
	parcels *parcels
	node    int
	run     func() // made once, so that starting it allocates nothing

	parcel parcel // to be taken, if to is not empty
	kind   peer.Kind
	to     []byte
}

func newTaker(p *parcels, node int) *taker {
	t := &taker{parcels: p, node: node}
	t.run = func() {
		defer p.running.Done()
		if err := t.take(); err != nil {
			p.cancel(err)
		}
	}
	return t
}

// set has the taker take the rows after a stage.
func (t *taker) set(stage, row int, to []byte) {
	t.parcel, t.kind, t.to = parcel{what: stage, to: t.parcels.nodes.Work.Self, row: row}, peer.Activation, to
}

// take takes a parcel, window by window.
func (t *taker) take() error {
	window, room := t.parcels.window(t.parcel, len(t.to))
	for place, to := 0, t.to; len(to) > 0; place++ {
		n := min(window, len(to))
		if err := t.one(t.parcels.tag(t.parcel, room, place), to[:n]); err != nil {
			return err
		}
		to = to[n:]
	}
	return nil
}

// at takes the window of a parcel at one place.
func (t *taker) at(of parcel, kind peer.Kind, place, room int, to []byte) error {
	t.parcel, t.kind = of, kind
	return t.one(t.parcels.tag(of, room, place), to)
}

// one takes one window.
func (t *taker) one(tag exchange.Tag, to []byte) error {
	p := t.parcels
	if err := p.nodes.Exchange.Take(p.ctx, t.node, t.kind, tag, to, &p.tally); err != nil {
		return fmt.Errorf("take %s from node %s: %w", p.describe(t.parcel.what), p.nodes.name(t.node), err)
	}
	return nil
}
