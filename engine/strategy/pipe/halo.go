package pipe

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A halo exchanges rows between the ways of a stage. Before a layer, each way sends the
// rows of the current position to the ways that mirror them. On the way back, each sends
// its part of the gradient at its mirrors to the ways that own them. Both follow one plan,
// which is the same in all epochs.
type halo struct {
	w       *Worker
	parcels [][]*parcel // by position, then by the ways from and to
	stages  int         // of the model, in tags
	numbers int         // bounds those of pieces
	space   tensor.Arena
	early   bool  // a history is made, before the epoch
	seen    []int // the stages before which rows are exchanged
	turns   bool  // what is offered takes turns in two rooms
	// direct reports whether rows arrive where layers read them, and gradients are offered from
	// where they are added up and arrive where rows were offered.
	direct bool
	// landing is where pieces arrive: a room for each transfer that is under way in an epoch.
	landing [][]byte

	// transfers are those of the epoch, in order: so many are started, so many are over,
	// and ahead are under way at once.
	transfers            []transfer
	started, over, ahead int
}

// A parcel is the rows of one way, at one position, that another way mirrors.
type parcel struct {
	from, to *way // nil if on another node
	number   int
	owner    int // the node of from
	holder   int // the node of to

	ids         []uint32 // vertices
	first       int      // among to's mirrors
	own, mirror []int32  // of those that are sent: their rows in from, and in to
	scale       float64  // of rows that stand for others, too
	rooms       [2][]byte

	pieces [2][]*piece // rows, and gradients
}

// A piece is what is sent of a parcel at once, in one direction: rows of some shards, as
// soon as those are computed. A gradient is complete only when all that read the rows have
// gone back, so it is one piece.
type piece struct {
	parcel            *parcel
	direction, number int
	gives, takes      *way // nil if on another node
	node              int  // that gives
	begin, end        int  // of the parcel's ids
	low, high         int  // of those that are sent
	out               [][][]byte
	in                []*traffic.Fetch
	land              int // where it writes in landing
}

// A parcel has at most mostPieces pieces. They are no smaller than pieceBytes, if there are
// enough rows: each costs a request.
const mostPieces = 4

var pieceBytes = 64 << 10

// pieces bounds the numbers of pieces.
func pieces(s *arrange.Shape) int { return s.Ways() * s.Ways() * s.Positions() * mostPieces }

// newHalo plans what the worker's ways send and receive.
func newHalo(w *Worker, m *arrange.Mirrors) *halo {
	h := &halo{w: w, stages: len(w.infos), numbers: pieces(w.Shape), space: w.spare, turns: !w.apart && w.Halo.turns(w.Shape.Positions())}
	h.direct = h.turns && w.fleeting() && w.Halo.Policy == Exact
	for s := w.first; s < w.end; s++ {
		if w.sees(s) {
			h.seen = append(h.seen, s)
		}
	}
	here := make([]*way, w.Shape.Ways())
	for _, way := range w.ways {
		here[way.number] = way
	}
	for p := range w.Shape.Positions() {
		var at []*parcel
		for from := range here {
			for to := range here {
				first, end := m.From(to, from, p)
				if from == to || first == end || here[from] == nil && here[to] == nil {
					continue
				}
				c := &parcel{
					from: here[from], to: here[to], number: (p*len(here)+from)*len(here) + to,
					owner: w.Seats.Node(w.stage, from), holder: w.Seats.Node(w.stage, to),
					ids: m.Of[to][first:end], first: first, scale: 1,
				}
				h.cut(c, from, p)
				at = append(at, c)
			}
		}
		h.parcels = append(h.parcels, at)
	}
	h.allot()
	h.choose()
	return h
}

// cut divides a parcel into pieces, in the same way on both ends.
func (h *halo) cut(c *parcel, from, position int) {
	least := max(pieceBytes/max(1, h.w.columns()*h.w.Device.Type().Bytes()), (len(c.ids)+mostPieces-1)/mostPieces)
	shard, end := h.w.Shape.Shards(from, position)
	begin := 0
	for ; shard < end; shard++ {
		at, _ := slices.BinarySearch(c.ids, h.w.Shape.Firsts[shard+1])
		if at-begin >= least || at > begin && shard == end-1 {
			h.piece(c, forwards, begin, at)
			begin = at
		}
	}
	h.piece(c, backwards, 0, len(c.ids))
}

// piece makes one, with its buffers.
func (h *halo) piece(c *parcel, direction, begin, end int) {
	w := h.w
	q := &piece{
		parcel: c, direction: direction, number: c.number*mostPieces + len(c.pieces[direction]),
		gives: c.from, takes: c.to, node: c.owner, begin: begin, end: end,
	}
	if direction == backwards {
		q.gives, q.takes, q.node = c.to, c.from, c.holder
	}
	c.pieces[direction] = append(c.pieces[direction], q)
	if q.gives != nil {
		if direction == forwards || !h.direct {
			h.open(q)
		}
		if direction == forwards {
			q.gives.whole(q, c.ids[begin:end])
		}
	}
	if q.takes != nil && q.gives == nil {
		for range h.rooms() {
			q.in = append(q.in, w.net.NewFetch(q.node, peer.Activation))
		}
	}
}

// open makes room for what is offered of a piece.
func (h *halo) open(q *piece) {
	w := h.w
	size := func(s int) int { return (q.end - q.begin) * w.infos[s].In * w.Device.Type().Bytes() }
	q.out = make([][][]byte, w.end-w.first)
	if h.turns {
		for odd := range 2 {
			most := 0 // columns
			for i := odd; i < len(h.seen); i += 2 {
				most = max(most, w.infos[h.seen[i]].In)
			}
			most *= w.Device.Type().Bytes()
			of := &q.parcel.rooms[odd]
			if q.direction == backwards {
				of = new([]byte)
			}
			if *of == nil {
				*of = w.room(len(q.parcel.ids) * most)
			}
			for i := odd; i < len(h.seen); i += 2 {
				q.out[h.seen[i]-w.first] = [][]byte{(*of)[q.begin*most : q.end*most]}
			}
		}
		return
	}
	// Others may still read a buffer when the next one is filled: that of the next epoch or,
	// after a history, that of the epoch.
	rooms := 1
	if w.Halo.Policy == Previous || w.refreshes() {
		rooms = 2
	}
	for _, s := range h.seen {
		for range rooms {
			q.out[s-w.first] = append(q.out[s-w.first], w.room(size(s)))
		}
	}
}

// rooms returns how many transfers of an epoch are under way at once.
func (h *halo) rooms() int {
	if h.w.Halo.Policy == Previous {
		return previousAhead
	}
	return 1
}

// allot makes room for what arrives. Transfers follow each other in the same memory, whatever
// their direction; those of all positions are under way at once where a history is made.
func (h *halo) allot() {
	most := 0
	for direction := 0; direction < 2 && !h.direct; direction++ {
		next := 0
		for p := range h.parcels {
			if !h.w.refreshes() {
				next = 0
			}
			for _, c := range h.parcels[p] {
				for _, q := range c.pieces[direction] {
					if len(q.in) > 0 {
						q.land = next
						next += (q.end - q.begin) * h.w.columns() * h.w.Device.Type().Bytes()
						most = max(most, next)
					}
				}
			}
		}
	}
	for range h.rooms() {
		h.landing = append(h.landing, h.w.room(most))
	}
}

// came returns where a piece arrives, of so many transfers after the first.
func (h *halo) came(q *piece, s, number int) []byte {
	switch {
	case h.direct && q.direction == forwards:
		return plain.Of(q.mirrors(q.takes.levels[s-h.w.first].rows))
	case h.direct:
		// Whoever sends it has taken all rows that were offered in this room.
		return q.parcel.rooms[slices.Index(h.seen, s)%2][:h.bytes(q, s)]
	}
	return h.landing[number%len(h.landing)][q.land:][:h.bytes(q, s)]
}

// whole makes the last of the grains that have these vertices send a piece.
func (w *way) whole(q *piece, ids []uint32) {
	var last *grain
	at := -1
	for _, v := range ids {
		row := int(w.places[v-w.first])
		for i := at + 1; i < len(w.grains); i++ { // the piece waits for the last grain only
			if g := w.grains[i]; row >= g.row && row < g.row+len(g.vertices) {
				at, last = i, g
				break
			}
		}
	}
	last.gives = append(last.gives, q)
}

// choose sets which rows of the parcels are sent: all, or a share drawn for the epoch, by
// vertex and by receiving way.
func (h *halo) choose() {
	key := keyed.New(h.w.Seed, keyed.Boundary).With(uint64(h.w.epoch))
	sampled := h.w.Halo.Policy == Sampled
	below := keyed.Threshold(h.w.Halo.Share)
	for p := range h.parcels {
		for _, c := range h.parcels[p] {
			of := key.With(uint64(c.number % h.w.Shape.Ways()))
			c.own, c.mirror = c.own[:0], c.mirror[:0]
			n, rows := 0, c.pieces[forwards]
			for i, v := range c.ids {
				if i == rows[0].begin {
					rows[0].low = n
				}
				if !sampled || h.w.Halo.Share >= 1 || of.With(uint64(v)).Column(0) < below {
					if c.from != nil {
						c.own = append(c.own, c.from.places[v-c.from.first])
					}
					if c.to != nil {
						c.mirror = append(c.mirror, int32(c.to.own()+c.first+i))
					}
					n++
				}
				if i == rows[0].end-1 {
					rows[0].high = n
					rows = rows[1:]
				}
			}
			c.pieces[backwards][0].high = n
			if sampled {
				c.scale = 1 / h.w.Halo.Share
			}
		}
	}
}

// count returns how many of a piece's rows are sent.
func (q *piece) count() int { return q.high - q.low }

// all reports whether all are sent, unscaled.
func (q *piece) all() bool { return q.count() == q.end-q.begin && q.parcel.scale == 1 }

// exactly reports whether current rows are used: always in a worker's first epoch, since
// there are no others.
func (h *halo) exactly() bool { return !h.w.went || h.w.Halo.exactly(h.w.epoch) }

// silent reports whether nothing is sent. Mirrors then keep what was sent last. Their
// gradients are dropped: they are constants to those who read them.
func (h *halo) silent() bool { return h.w.Halo.Policy == Skip && !h.exactly() }

// used returns the epoch whose rows are used.
func (h *halo) used() int {
	if h.w.Halo.Policy == Previous && !h.exactly() {
		return h.w.epoch - 1
	}
	return h.w.epoch
}

// tag returns that of a piece at a stage, in an epoch.
func (h *halo) tag(q *piece, s, epoch int) exchange.Tag {
	index := (q.direction*h.stages+s)*h.numbers + q.number
	t := h.w.net.Stamp(epoch)
	t.Lane, t.Index = exchange.LaneMirror, uint32(index)
	if h.early {
		t.Lane = exchange.LaneEarly
	}
	return t
}
