package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/footprint"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// The directions.
const (
	forwards = iota
	backwards
)

// A boundary sends rows between this stage and the next in one direction, for all ways of
// this node: each way's rows of a position, and behind them what is carried beside them.
type boundary struct {
	w         *Worker
	direction int
	in, out   *parcelsOf // nil at the ends of the pipeline
	// fetches are those of each way, for each place that is received ahead; started counts
	// the places of an epoch whose fetches were started.
	fetches [][]*traffic.Fetch
	started int
}

// parcelsOf is one side of a boundary.
type parcelsOf struct {
	stage int // the other one
	// room is the buffers: what is sent takes turns in them, and what is received has one for
	// each place ahead; by way.
	room [][][]byte
	sent [][]exchange.Tag // by way: what was offered in this epoch, in order
}

// newBoundary makes that of a direction.
func newBoundary(w *Worker, direction int) *boundary {
	b := &boundary{w: w, direction: direction}
	from, to := w.stage-1, w.stage+1
	if direction == backwards {
		from, to = to, from
	}
	b.in, b.out = b.side(from), b.side(to)
	if b.out != nil {
		for range footprint.Offers(w.Shape.Positions()) {
			b.out.room = append(b.out.room, b.rooms(b.columns(to)))
		}
		b.out.sent = make([][]exchange.Tag, len(w.ways))
	}
	for range footprint.Ahead {
		if b.in == nil {
			break
		}
		b.in.room = append(b.in.room, b.rooms(b.columns(from)))
		var fetches []*traffic.Fetch
		for _, way := range w.ways {
			fetches = append(fetches, w.net.NewFetch(w.Seats.Node(from, way.number), peer.Activation))
		}
		b.fetches = append(b.fetches, fetches)
	}
	return b
}

func (b *boundary) side(stage int) *parcelsOf {
	if stage < 0 || stage >= b.w.Seats.Stages {
		return nil
	}
	return &parcelsOf{stage: stage}
}

// columns returns those of what goes between this stage and another, with what is carried.
func (b *boundary) columns(other int) int {
	at := &b.w.infos[b.w.first]
	if other > b.w.stage {
		at = &b.w.infos[b.w.end]
	}
	return at.In + at.CarryIn
}

// rooms returns one for each way, for any position.
func (b *boundary) rooms(columns int) (all [][]byte) {
	for _, way := range b.w.ways {
		most := 0
		for p := range b.w.Shape.Positions() {
			most = max(most, rowsAt(way, p))
		}
		all = append(all, b.w.room(most*columns*b.w.Device.Type().Bytes()))
	}
	return all
}

// rowsAt counts a way's rows at a position.
func rowsAt(w *way, position int) (n int) {
	for _, g := range w.at[position] {
		n += len(g.vertices)
	}
	return n
}

func (b *boundary) tag(way, position int) exchange.Tag {
	index := (way*b.w.Shape.Positions()+position)*2 + b.direction
	t := b.w.net.Stamp(b.w.epoch)
	t.Lane, t.Index = exchange.LaneBoundary, uint32(index)
	return t
}

// send offers the rows of a position to the next stage, or their gradients to the one
// before.
func (b *boundary) send(position int) {
	for i, way := range b.w.ways {
		p := b.claim(i, position, b.tag(way.number, position))
		for at := range way.at[position] {
			b.put(p, way.at[position], at)
		}
		b.give(p)
	}
}

// An offering is the rows of a way at a position that are offered under a tag.
type offering struct {
	tag  exchange.Tag
	room []byte // none: nothing is sent
}

// claim returns room for what is sent of a way at a position, once nobody reads it any more.
func (b *boundary) claim(way, position int, tag exchange.Tag) (o offering) {
	if b.out == nil {
		return o
	}
	n := rowsAt(b.w.ways[way], position) * b.columns(b.out.stage) * b.w.Device.Type().Bytes()
	sent := b.out.sent[way]
	if n == 0 || !b.reclaim(sent) {
		return o
	}
	o = offering{tag, b.out.room[len(sent)%len(b.out.room)][way][:n]}
	b.out.sent[way] = append(sent, tag)
	return o
}

// reclaim waits until nobody reads what was offered in the next room. Whoever takes it asks for
// what comes ahead places later once it has that.
func (b *boundary) reclaim(sent []exchange.Tag) bool {
	before := len(sent) - len(b.out.room)
	if before < 0 {
		return true
	}
	err := b.w.net.Reclaim(sent[before], sent[before+footprint.Ahead])
	if err != nil {
		b.w.net.Fail(fmt.Errorf("offer the rows between stages: %w", err))
	}
	return err == nil
}

// put stores one of a position's grains in what is sent.
func (b *boundary) put(to offering, grains []*grain, at int) {
	if len(to.room) == 0 {
		return
	}
	info, rest := &b.w.infos[b.w.first], to.room
	if b.direction == forwards {
		info = &b.w.infos[b.w.end]
	}
	for beside, columns := range [2]int{info.In, info.CarryIn} {
		for i, g := range grains {
			n := len(g.vertices) * columns * b.w.Device.Type().Bytes()
			if i == at && n > 0 {
				plain.Read(b.w.Device, rest[:n], b.sent(g)[beside])
			}
			rest = rest[n:]
		}
	}
}

// give offers what has been put.
func (b *boundary) give(o offering) {
	if len(o.room) > 0 {
		b.w.net.Offer(o.tag, o.room)
	}
}

// sent returns what is sent of a grain: its rows, and what is carried.
func (b *boundary) sent(g *grain) [2]tensor.Matrix {
	if b.direction == forwards {
		return [2]tensor.Matrix{g.x, g.carry}
	}
	return [2]tensor.Matrix{g.dy, g.dcarry}
}

// forget begins an epoch: what was offered in the last one has been taken.
func (b *boundary) forget() {
	for i := 0; b.out != nil && i < len(b.out.sent); i++ {
		b.out.sent[i] = b.out.sent[i][:0]
	}
}

// begin begins to receive ahead, in the order of the epoch.
func (b *boundary) begin() {
	b.started = 0
	for range b.fetches {
		b.ahead()
	}
}

// ahead starts to receive the next place, if there is one.
func (b *boundary) ahead() {
	if b.started < len(b.w.order) && !b.w.apart {
		b.start(b.position(b.started), false)
	}
}

// aheadEarly is ahead while a history is made, of all positions in their order.
func (b *boundary) aheadEarly() {
	if b.started < b.w.Shape.Positions() {
		b.start(b.started, true)
	}
}

func (b *boundary) start(position int, early bool) {
	place := b.started % len(b.fetches)
	b.started++
	columns := b.columns(b.in.stage) * b.w.Device.Type().Bytes()
	for i, way := range b.w.ways {
		if n := rowsAt(way, position) * columns; n > 0 {
			tag := b.tag(way.number, position)
			if early {
				tag = b.w.earlyTag(way.number, position)
			}
			b.fetches[place][i].Start(tag, b.in.room[place][i][:n])
		}
	}
}

// position returns the one that is received after so many others.
func (b *boundary) position(after int) int {
	if b.direction == backwards {
		after = len(b.w.order) - 1 - after
	}
	return b.w.order[after]
}

// receive waits for the rows at a place of the order, and stores them in their grains.
func (b *boundary) receive(place int) error {
	if b.in == nil {
		return nil
	}
	after := place
	if b.direction == backwards {
		after = len(b.w.order) - 1 - place
	}
	if b.w.apart {
		b.start(b.position(b.started), false)
	}
	if err := b.arrive(after, b.w.order[place]); err != nil {
		return fmt.Errorf("fetch the rows between stages: %w", err)
	}
	b.ahead()
	return nil
}

// arrive waits for the rows of a position that is received after so many others.
func (b *boundary) arrive(after, position int) error {
	at := after % len(b.fetches)
	for i, way := range b.w.ways {
		if err := b.fetches[at][i].Wait(); err != nil {
			return err
		}
		b.keep(way.at[position], b.in.room[at][i])
	}
	return nil
}

// keep stores what has come for grains.
func (b *boundary) keep(grains []*grain, rest []byte) {
	for beside := range 2 {
		for _, g := range grains {
			if m := b.received(g)[beside]; !m.None() {
				plain.Write(b.w.Device, m, rest[:plain.Size(m)])
				rest = rest[plain.Size(m):]
			}
		}
	}
}

// received returns where a grain keeps what was sent of it.
func (b *boundary) received(g *grain) [2]tensor.Matrix {
	if b.direction == forwards {
		return [2]tensor.Matrix{g.input, g.carried}
	}
	return [2]tensor.Matrix{g.dy, g.dcarry}
}
