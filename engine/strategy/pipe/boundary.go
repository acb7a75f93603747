package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
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
	fetches [][]*fetch
	started int
}

// parcelsOf is one side of a boundary.
type parcelsOf struct {
	stage int // the other one
	// room is the buffers: by position and way for what is sent, by place ahead and way for
	// what is received.
	room [][][]byte
	// history is the buffers for making histories, by way.
	history [][]byte
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
		for p := range w.Shape.Positions() {
			b.out.room = append(b.out.room, b.rooms(b.columns(to), func(way *way) int { return rowsAt(way, p) }))
		}
	}
	if b.out != nil && direction == forwards && w.refreshes() {
		b.out.history = b.rooms(b.columns(to), (*way).own)
	}
	const ahead = 2
	for range ahead {
		if b.in == nil {
			break
		}
		b.in.room = append(b.in.room, b.rooms(b.columns(from), func(way *way) (most int) {
			for p := range w.Shape.Positions() {
				most = max(most, rowsAt(way, p))
			}
			return most
		}))
		var fetches []*fetch
		for _, way := range w.ways {
			fetches = append(fetches, w.newFetch(w.Seats.Node(from, way.number), peer.Activation))
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

func (b *boundary) rooms(columns int, rows func(*way) int) (all [][]byte) {
	for _, way := range b.w.ways {
		all = append(all, room(rows(way)*columns*b.w.Device.Type().Bytes()))
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
	t := b.w.stamp(b.w.epoch)
	t.Lane, t.Index = exchange.LaneBoundary, uint32(index)
	return t
}

// send offers the rows of a position to the next stage, or their gradients to the one
// before. The buffers stay until the epoch is over.
func (b *boundary) send(position int) {
	if b.out == nil {
		return
	}
	for i, way := range b.w.ways {
		b.offer(b.tag(way.number, position), b.out.room[position][i], way.at[position])
	}
}

// offer offers what grains send.
func (b *boundary) offer(t exchange.Tag, room []byte, grains []*grain) {
	if len(room) == 0 {
		return
	}
	rest := room
	for beside := range 2 {
		for _, g := range grains {
			if m := b.sent(g)[beside]; !m.None() {
				read(b.w.Device, rest[:bytes(m)], m)
				rest = rest[bytes(m):]
			}
		}
	}
	b.w.offer(t, room)
}

// sent returns what is sent of a grain: its rows, and what is carried.
func (b *boundary) sent(g *grain) [2]tensor.Matrix {
	if b.direction == forwards {
		return [2]tensor.Matrix{g.x, g.carry}
	}
	return [2]tensor.Matrix{g.dy, g.dcarry}
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
		b.start()
	}
}

func (b *boundary) start() {
	place, position := b.started%len(b.fetches), b.position(b.started)
	b.started++
	columns := b.columns(b.in.stage) * b.w.Device.Type().Bytes()
	for i, way := range b.w.ways {
		if n := rowsAt(way, position) * columns; n > 0 {
			b.fetches[place][i].start(b.tag(way.number, position), b.in.room[place][i][:n])
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
		b.start()
	}
	for i, way := range b.w.ways {
		at := after % len(b.fetches)
		if err := b.fetches[at][i].wait(); err != nil {
			return fmt.Errorf("fetch the rows between stages: %w", err)
		}
		b.give(way.at[b.w.order[place]], b.in.room[at][i])
	}
	b.ahead()
	return nil
}

// give stores what has come for grains.
func (b *boundary) give(grains []*grain, rest []byte) {
	for beside := range 2 {
		for _, g := range grains {
			if m := b.received(g)[beside]; !m.None() {
				write(b.w.Device, m, rest[:bytes(m)])
				rest = rest[bytes(m):]
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
