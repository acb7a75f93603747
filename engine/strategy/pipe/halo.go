package pipe

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/strategy"
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
	numbers int         // of pieces
	space   tensor.Arena
	early   bool // what is made is a history, before the epoch

	// trips are those of the epoch, in their order: so many are started, so many are over,
	// and ahead are under way at once.
	trips                []trip
	started, over, ahead int
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

	pieces [2][]*piece // rows, and gradients
}

// A piece is what of a parcel travels at once, in one direction: rows of some shards, as
// soon as those are computed. What is known of a gradient is whole only when all that see
// the rows have gone back, so that is one piece.
type piece struct {
	*parcel
	direction, number int
	gives, takes      *way // nil where that is another node's
	node              int  // who gives
	begin, end        int  // of the parcel's ids
	low, high         int  // of those that travel
	out               [][][]byte
	in                []*fetch
	came              [][]byte // of each fetch: where it puts what it takes
}

// A parcel has so many pieces at most. They are no smaller than pieceBytes, as far as
// there are rows: each is a question of its own.
const mostPieces = 4

var pieceBytes = 64 << 10

// pieces bounds the numbers of pieces.
func pieces(s *Shape) int { return s.Ways() * s.Ways() * s.Positions() * mostPieces }

// newHalo plans what the worker's ways give and take.
func newHalo(w *Worker, m *Mirrors) *halo {
	h := &halo{w: w, stages: len(w.infos), numbers: pieces(w.Shape), space: w.spare}
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
				h.cut(c, from, p)
				at = append(at, c)
			}
		}
		h.parcels = append(h.parcels, at)
	}
	h.choose()
	return h
}

// widest is the bytes of the widest row that travels.
func (w *Worker) widest() (bytes int) {
	for s := w.first; s < w.end; s++ {
		if w.sees(s) {
			bytes = max(bytes, w.infos[s].In*w.Device.Type().Bytes())
		}
	}
	return bytes
}

// cut cuts a parcel of a way into pieces: the same on both ends.
func (h *halo) cut(c *parcel, from, position int) {
	least := max(pieceBytes/max(1, h.w.widest()), (len(c.ids)+mostPieces-1)/mostPieces)
	shard, end := h.w.Shape.Shards(from, position)
	begin := 0
	for ; shard < end; shard++ {
		at, _ := slices.BinarySearch(c.ids, h.w.Shape.firsts[shard+1])
		if at-begin >= least || at > begin && shard == end-1 {
			h.piece(c, forwards, begin, at)
			begin = at
		}
	}
	h.piece(c, backwards, 0, len(c.ids))
}

// piece makes one, and room for what is given and taken.
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
		// What others take still is there beside what comes next: the next epoch or,
		// after a history, the epoch.
		rooms := 1
		if w.Halo.Policy == Previous || w.refreshes() {
			rooms = 2
		}
		q.out = make([][][]byte, w.end-w.first)
		for s := w.first; s < w.end; s++ {
			for range rooms {
				if w.sees(s) {
					q.out[s-w.first] = append(q.out[s-w.first], room((end-begin)*w.infos[s].In*w.Device.Type().Bytes()))
				}
			}
		}
		if direction == forwards {
			q.gives.whole(q, c.ids[begin:end])
		}
	}
	if q.takes != nil && q.gives == nil {
		rooms := 1
		if w.Halo.Policy == Previous {
			rooms = previousAhead
		}
		for range rooms {
			q.in = append(q.in, w.newFetch(q.node, strategy.Activation))
			q.came = append(q.came, room((end-begin)*w.widest()))
		}
	}
}

// whole has a piece be given when the last of the grains is done that have these vertices.
func (w *way) whole(q *piece, ids []uint32) {
	var last *grain
	at := -1
	for _, v := range ids {
		row := int(w.places[v-w.first])
		for i := at + 1; i < len(w.grains); i++ { // those before are done when that one is
			if g := w.grains[i]; row >= g.row && row < g.row+len(g.vertices) {
				at, last = i, g
				break
			}
		}
	}
	last.gives = append(last.gives, q)
}

// choose sets which rows of the parcels travel: all, or a share that the epoch draws, by
// vertex and by who mirrors it.
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

// count is how many of a piece's rows travel.
func (q *piece) count() int { return q.high - q.low }

// all says that all do, as they are.
func (q *piece) all() bool { return q.count() == q.end-q.begin && q.scale == 1 }

// exactly says whether rows of now are seen: they are in a worker's first epoch, since
// there are no others.
func (h *halo) exactly() bool { return !h.w.went || h.w.Halo.exactly(h.w.epoch) }

// silent says whether nothing travels. Mirrors are what was sent last then, and nothing has
// changed them; their gradients go nowhere: to who sees them they are constants.
func (h *halo) silent() bool { return h.w.Halo.Policy == Skip && !h.exactly() }

// seen is the epoch whose rows are.
func (h *halo) seen() int {
	if h.w.Halo.Policy == Previous && !h.exactly() {
		return h.w.epoch - 1
	}
	return h.w.epoch
}

// tag is that of a piece at a stage, in an epoch.
func (h *halo) tag(q *piece, s, epoch int) exchange.Tag {
	index := (q.direction*h.stages+s)*h.numbers + q.number
	lane := exchange.LaneMirror
	if h.early {
		lane = exchange.LaneEarly
	}
	return exchange.Tag{Epoch: uint32(epoch + 1), Lane: lane, Index: uint32(index)}
}
