package pipe

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A halo has the ways of a stage see each other's rows: before a layer, each gives those
// of the position that is computed to the ways that mirror them, and on the way back each
// gives what it knows of the gradient at its mirrors of that position to the ways whose
// they are. Both follow the same plan, which is that of all epochs.
type halo struct {
	w       *Worker
	parcels [][]*parcel // of each position, by the ways from and to
	stages  int         // of the model, in tags
	pairs   int         // of ways, and positions
	space   tensor.Arena
	early   bool // what is made is a history, before the epoch
}

// A parcel is the rows of one way, at one position, that another way mirrors.
type parcel struct {
	from, to *way // nil where that is another node's
	number   int
	owner    int // the node of from
	holder   int // the node of to

	ids         []uint32 // vertices
	first       int      // of to's mirrors
	own, mirror []int32  // where those that travel lie in from's rows, and in to's
	scale       float64  // of rows that stand for others, too

	sides [2]side // rows, and gradients
}

// A side is what travels in one direction.
type side struct {
	out [][][]byte // of each of the worker's stages, of odd epochs and of others
	in  []byte     // of the layer in hand
}

// parcels bounds the numbers of parcels.
func parcels(s *Shape) int { return s.Ways() * s.Ways() * s.Positions() }

// newHalo plans what the worker's ways give and take.
func newHalo(w *Worker, m *Mirrors) *halo {
	h := &halo{w: w, stages: len(w.infos), pairs: parcels(w.Shape), space: w.spare}
	here := make([]*way, w.Shape.Ways())
	for _, way := range w.ways {
		here[way.number] = way
	}
	for p := range w.Shape.Positions() {
		var at []*parcel
		for from := range here {
			for to := range here {
				first, end := m.from(to, from, p)
				if from == to || first == end || here[from] == nil && here[to] == nil {
					continue
				}
				c := &parcel{
					from: here[from], to: here[to], number: (p*len(here)+from)*len(here) + to,
					owner: w.Seats.Node(w.stage, from), holder: w.Seats.Node(w.stage, to),
					ids: m.of[to][first:end], first: first, scale: 1,
				}
				c.reserve(w)
				at = append(at, c)
			}
		}
		h.parcels = append(h.parcels, at)
	}
	h.choose()
	return h
}

// reserve makes room for what is given and taken.
func (c *parcel) reserve(w *Worker) {
	widest := 0
	for d := range c.sides {
		c.sides[d].out = make([][][]byte, w.end-w.first)
	}
	for s := w.first; s < w.end; s++ {
		if !w.sees(s) {
			continue
		}
		bytes := len(c.ids) * w.infos[s].In * w.Device.Type().Bytes()
		widest = max(widest, bytes)
		for d, gives := range []bool{c.from != nil, c.to != nil} {
			if !gives {
				continue
			}
			// What others take still is there beside what comes next: the next epoch or,
			// after a history, the epoch.
			rooms := 1
			if w.Halo.Policy == Previous || w.refreshes() {
				rooms = 2
			}
			for range rooms {
				c.sides[d].out[s-w.first] = append(c.sides[d].out[s-w.first], room(bytes))
			}
		}
	}
	for d, takes := range []bool{c.to != nil, c.from != nil} {
		if takes {
			c.sides[d].in = room(widest)
		}
	}
}

// begin begins an epoch.
func (h *halo) begin() {
	if h.w.Halo.Policy == Sampled {
		h.choose()
	}
}

// choose sets which rows of the parcels travel: all, or a share that the epoch draws, by
// vertex and by who mirrors it.
func (h *halo) choose() {
	key := keyed.New(h.w.Seed, keyed.Boundary).With(uint64(h.w.epoch))
	sampled := h.w.Halo.Policy == Sampled
	for p := range h.parcels {
		for _, c := range h.parcels[p] {
			_, to := c.ways(h.w.Shape.Ways())
			below := keyed.Threshold(h.w.Halo.Share)
			of := key.With(uint64(to))
			c.own, c.mirror = c.own[:0], c.mirror[:0]
			for i, v := range c.ids {
				if sampled && h.w.Halo.Share < 1 && of.With(uint64(v)).Column(0) >= below {
					continue
				}
				if c.from != nil {
					c.own = append(c.own, int32(v-c.from.first))
				}
				if c.to != nil {
					c.mirror = append(c.mirror, int32(c.to.own()+c.first+i))
				}
			}
			if sampled {
				c.scale = 1 / h.w.Halo.Share
			}
		}
	}
}

// ways are those that a parcel is from and to.
func (c *parcel) ways(of int) (from, to int) { return c.number / of % of, c.number % of }

// count is how many rows travel.
func (c *parcel) count() int { return max(len(c.own), len(c.mirror)) }

// A move is how parcels go in one direction.
type move struct {
	direction int
	// gives and takes are the ends of a parcel: their ways, if they are here.
	gives, takes func(c *parcel) *way
	// rows are those that travel, of who gives and who takes.
	rows func(c *parcel) (gives, takes []int32)
	// node is who gives.
	node func(c *parcel) int
	of   func(l *level) tensor.Matrix
}

var moves = [2]move{
	{
		forwards,
		func(c *parcel) *way { return c.from }, func(c *parcel) *way { return c.to },
		func(c *parcel) ([]int32, []int32) { return c.own, c.mirror },
		func(c *parcel) int { return c.owner },
		func(l *level) tensor.Matrix { return l.rows },
	},
	{
		backwards,
		func(c *parcel) *way { return c.to }, func(c *parcel) *way { return c.from },
		func(c *parcel) ([]int32, []int32) { return c.mirror, c.own },
		func(c *parcel) int { return c.holder },
		func(l *level) tensor.Matrix { return l.back },
	},
}

// rows gives the rows of a position before a layer, and takes those of the mirrors.
func (h *halo) rows(ctx context.Context, s, position int) error {
	if err := h.exchange(ctx, s, position, &moves[forwards]); err != nil {
		return fmt.Errorf("bring the rows that %s sees: %w", h.w.infos[s].Name, err)
	}
	return nil
}

// gradients gives what is known of the gradients at the mirrors, and takes that of the
// rows of the position.
func (h *halo) gradients(ctx context.Context, s, position int) error {
	if err := h.exchange(ctx, s, position, &moves[backwards]); err != nil {
		return fmt.Errorf("bring the gradients at what others see in %s: %w", h.w.infos[s].Name, err)
	}
	return nil
}

func (h *halo) exchange(ctx context.Context, s, position int, m *move) error {
	exactly := h.exactly()
	previous := h.w.Halo.Policy == Previous
	if h.w.Halo.Policy == Skip && !exactly {
		// Mirrors are what was sent last, and nothing has changed them. Their gradients go
		// nowhere: to who sees them they are constants.
		return nil
	}
	for _, c := range h.parcels[position] {
		if m.gives(c) != nil {
			h.give(c, s, m)
		}
	}
	epoch := h.w.epoch
	if previous && !exactly {
		epoch--
	}
	if err := h.bring(ctx, s, position, epoch, m); err != nil {
		return err
	}
	for _, c := range h.parcels[position] {
		if m.takes(c) != nil {
			h.take(c, s, m)
		}
	}
	return nil
}

// exactly says whether rows of now are seen: they are in a worker's first epoch, since
// there are no others.
func (h *halo) exactly() bool { return !h.w.went || h.w.Halo.exactly(h.w.epoch) }

// level is that of a way at a stage.
func (h *halo) level(w *way, s int) *level { return w.levels[s-h.w.first] }

// out is where a parcel lies on its way out, in an epoch.
func (h *halo) out(c *parcel, s, epoch int, m *move) []byte {
	rooms, at := c.sides[m.direction].out[s-h.w.first], 0
	switch {
	case h.w.Halo.Policy == Previous:
		at = epoch % 2
	case h.early:
		at = 1
	}
	return rooms[at][:c.count()*h.w.infos[s].In*h.w.Device.Type().Bytes()]
}

func (h *halo) tag(c *parcel, s, epoch int, m *move) exchange.Tag {
	index := (m.direction*h.stages+s)*h.pairs + c.number
	lane := exchange.LaneMirror
	if h.early {
		lane = exchange.LaneEarly
	}
	return exchange.Tag{Epoch: uint32(epoch + 1), Lane: lane, Index: uint32(index)}
}

// give reads a parcel's rows out, and offers them.
func (h *halo) give(c *parcel, s int, m *move) {
	if c.count() == 0 {
		return
	}
	d := h.w.Device
	own, _ := m.rows(c)
	h.space.Reset()
	x := h.space.Alloc(d.Type(), len(own), h.w.infos[s].In)
	d.Gather(x, []tensor.Part{{X: m.of(h.level(m.gives(c), s))}}, unsigned(own))
	if c.scale != 1 {
		d.Combine(x, c.scale, x, 0, tensor.Matrix{})
	}
	out := h.out(c, s, h.w.epoch, m)
	read(d, out, x)
	if m.takes(c) == nil {
		h.w.Exchange.Offer(h.tag(c, s, h.w.epoch, m), out)
	}
}

// bring takes all that other nodes give at a position, at once.
func (h *halo) bring(ctx context.Context, s, position, epoch int, m *move) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var under sync.WaitGroup
	for _, c := range h.parcels[position] {
		if m.takes(c) == nil || m.gives(c) != nil || c.count() == 0 {
			continue
		}
		to := c.sides[m.direction].in[:c.count()*h.w.infos[s].In*h.w.Device.Type().Bytes()]
		node, tag := m.node(c), h.tag(c, s, epoch, m)
		under.Go(func() {
			if err := h.w.take(ctx, node, tag, to); err != nil {
				cancel(fmt.Errorf("of node %s: %w", h.w.Work.Nodes[node], err))
			}
		})
	}
	defer h.w.since(time.Now())
	under.Wait()
	return context.Cause(ctx)
}

// take gives what has come to the rows of who takes it.
func (h *halo) take(c *parcel, s int, m *move) {
	d, l := h.w.Device, h.level(m.takes(c), s)
	from := c.sides[m.direction].in
	if m.gives(c) != nil { // it never left
		epoch := h.w.epoch
		if h.w.Halo.Policy == Previous && !h.exactly() {
			epoch--
		}
		from = h.out(c, s, epoch, m)
	}
	_, rows := m.rows(c)
	h.space.Reset()
	x := h.space.Alloc(d.Type(), len(rows), h.w.infos[s].In)
	write(d, x, from[:bytes(x)])
	if m.direction == forwards {
		// Rows that are not there stand for nothing; those that are stand for them.
		all := l.rows.RowRange(c.to.own()+c.first, len(c.ids))
		d.Zero(all)
		d.ScatterAdd(l.rows, x, rows)
		return
	}
	d.ScatterAdd(l.back, x, rows)
}

// unsigned are rows as ids.
func unsigned(rows []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows))
}
