package pipe

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The directions.
const (
	forwards = iota
	backwards
)

// A boundary is what passes between this stage and the next in one direction, for all
// ways of this node: each way's rows of a position, and behind them what travels beside.
type boundary struct {
	w         *Worker
	direction int
	in, out   *parcelsOf // nil at the ends of the pipeline
	ahead     int        // positions that are received before they are wanted

	arrived chan arrival
	free    chan [][]byte
}

// parcelsOf is one side.
type parcelsOf struct {
	stage int // the other's
	// room has, of each position and way that is sent, or of each place and way that is
	// received ahead, what lies there.
	room [][][]byte
	// history is what is sent of each way where histories are made.
	history [][]byte
}

// An arrival is what has come for all ways.
type arrival struct {
	rows [][]byte // of each way
	err  error
}

// newBoundary makes one of a direction.
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
	if b.in != nil {
		b.ahead = 2
		if w.apart {
			b.ahead = 1
		}
		for range b.ahead {
			b.in.room = append(b.in.room, b.rooms(b.columns(from), func(way *way) (most int) {
				for p := range w.Shape.Positions() {
					most = max(most, rowsAt(way, p))
				}
				return most
			}))
		}
	}
	return b
}

func (b *boundary) side(stage int) *parcelsOf {
	if stage < 0 || stage >= b.w.Seats.Stages {
		return nil
	}
	return &parcelsOf{stage: stage}
}

// columns are those of what passes between this stage and another, and of what travels
// beside that.
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

// rowsAt counts a way's at a position.
func rowsAt(w *way, position int) (n int) {
	for _, g := range w.at[position] {
		n += len(g.vertices)
	}
	return n
}

func (b *boundary) tag(way, position int) exchange.Tag {
	index := (way*b.w.Shape.Positions()+position)*2 + b.direction
	return exchange.Tag{Epoch: uint32(b.w.epoch + 1), Lane: exchange.LaneBoundary, Index: uint32(index)}
}

// send offers the rows of a position to the next stage, or their gradients to the one
// before. They stay until all of the epoch is done.
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
	for _, which := range []func(*grain) tensor.Matrix{b.sent, b.beside} {
		for _, g := range grains {
			if m := which(g); !m.None() {
				read(b.w.Device, rest[:bytes(m)], m)
				rest = rest[bytes(m):]
			}
		}
	}
	b.w.Exchange.Offer(t, room)
}

// sent and beside are what of a grain is sent.
func (b *boundary) sent(g *grain) tensor.Matrix {
	if b.direction == forwards {
		return g.x
	}
	return g.dy
}

func (b *boundary) beside(g *grain) tensor.Matrix {
	if b.direction == forwards {
		return g.carry
	}
	return g.dcarry
}

// start begins to receive, in the order of the epoch. What it returns ends that, and
// returns when nothing is received any more.
func (b *boundary) start(ctx context.Context) (stop func()) {
	if b.in == nil || b.w.apart {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	b.arrived, b.free = make(chan arrival, b.ahead), make(chan [][]byte, b.ahead)
	for _, rows := range b.in.room {
		b.free <- rows
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range b.w.order {
			var rows [][]byte
			select {
			case rows = <-b.free:
			case <-ctx.Done():
				return
			}
			a := b.bring(ctx, rows, b.position(i))
			b.arrived <- a // there is room for as many as there are rows
			if a.err != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// position is the one that is received after so many others.
func (b *boundary) position(after int) int {
	if b.direction == backwards {
		after = len(b.w.order) - 1 - after
	}
	return b.w.order[after]
}

// bring takes what all ways have of a position, one after the other.
func (b *boundary) bring(ctx context.Context, rows [][]byte, position int) arrival {
	columns := b.columns(b.in.stage) * b.w.Device.Type().Bytes()
	for i, way := range b.w.ways {
		n := rowsAt(way, position) * columns
		if n == 0 {
			continue
		}
		node := b.w.Seats.Node(b.in.stage, way.number)
		if err := b.w.take(ctx, node, b.tag(way.number, position), rows[i][:n]); err != nil {
			return arrival{rows, fmt.Errorf("take the rows between stages from node %s: %w", b.w.Work.Nodes[node], err)}
		}
	}
	return arrival{rows: rows}
}

// receive waits for the rows at a place of the order, and gives them to their grains.
func (b *boundary) receive(ctx context.Context, place int) error {
	if b.in == nil {
		return nil
	}
	position := b.w.order[place]
	a := b.wait(ctx, position)
	if a.err != nil {
		return a.err
	}
	for i, way := range b.w.ways {
		b.give(way.at[position], a.rows[i])
	}
	if !b.w.apart {
		b.free <- a.rows
	}
	return nil
}

// wait waits for the rows of the position that is next.
func (b *boundary) wait(ctx context.Context, position int) arrival {
	defer b.w.since(time.Now())
	if b.w.apart {
		return b.bring(ctx, b.in.room[0], position)
	}
	select {
	case a := <-b.arrived:
		return a
	case <-ctx.Done():
		return arrival{err: context.Cause(ctx)}
	}
}

// give gives grains what has come for them.
func (b *boundary) give(grains []*grain, rest []byte) {
	for _, which := range []func(*grain) tensor.Matrix{b.received, b.receivedBeside} {
		for _, g := range grains {
			if m := which(g); !m.None() {
				write(b.w.Device, m, rest[:bytes(m)])
				rest = rest[bytes(m):]
			}
		}
	}
}

func (b *boundary) received(g *grain) tensor.Matrix {
	if b.direction == forwards {
		return g.input
	}
	return g.dy
}

func (b *boundary) receivedBeside(g *grain) tensor.Matrix {
	if b.direction == forwards {
		return g.carried
	}
	return g.dcarry
}
