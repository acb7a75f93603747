package pipe

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A summer adds up the gradients of a stage.
type summer interface {
	// of returns the columns of a gradient that belong to this worker's stage.
	of(gradients tensor.Matrix) tensor.Matrix
	// addUp sets these columns of the gradients to the sums.
	addUp() error
}

// openSums returns the summer of a worker; nil where there is nothing to add up.
func openSums(w *Worker) summer {
	switch {
	case w.ways == nil:
		return nil
	case w.Device.Type() == tensor.F64:
		return newSums[float64](w)
	}
	return newSums[float32](w)
}

// sums is a summer in the device's own numbers. The shards of a stage are leaves of the
// tree over all shards. Each node of the stage adds up its own leaves. It then takes its
// share of the columns from the others, adds that up, and takes the remaining totals from
// those who have added them up. Other stages have columns of their own.
type sums[T number] struct {
	w       *Worker
	members []int             // of the stage
	spans   [][]exchange.Span // of each node of the job
	summer  *exchange.Summer[T]
	// Others read what is here until they have ended the epoch, so there are two.
	turn   int
	mine   [2][][]T      // of each of this node's spans
	parts  [2][][][]byte // of each member of its stage: what it takes of mine
	totals [2][]T        // of this node's share
	pieces []*share[T]   // that this node takes of the others of its stage
	leaves []int         // of all pieces, ascending: where their spans begin
	rows   [][]T         // and their columns
	own    []int         // which of them are this node's own
	folder exchange.Folder[T]
	sum    []T         // of all of the stage's columns
	shares []*share[T] // of the columns that other members add up
}

// A share is some of a stage's columns that another node sends.
type share[T number] struct {
	member int // who adds it up
	fetch  *traffic.Fetch
	to     []byte
}

func newSums[T number](w *Worker) *sums[T] {
	from, to := w.Own()
	s := &sums[T]{w: w, members: w.Seats.Members(w.stage), spans: exchange.Spans(w.holders(w.stage), w.net.Nodes()), sum: make([]T, to-from)}
	for member, node := range s.members {
		if first, end := s.share(member); node != w.Work.Self && end > first {
			s.shares = append(s.shares, &share[T]{member, w.net.NewFetch(node, peer.Gradient), plain.Bytes(s.sum[first:end])})
		}
	}
	s.allocate()
	return s
}

// allocate makes room for what the worker adds up.
func (s *sums[T]) allocate() {
	w, columns := s.w, len(s.sum)
	first, end := s.share(s.self())
	s.summer = exchange.NewSummer[T](columns)
	for turn := range s.mine {
		for range s.spans[w.Work.Self] {
			s.mine[turn] = append(s.mine[turn], make([]T, columns))
		}
		for member := range s.members {
			a, b := s.share(member)
			var parts [][]byte
			for _, row := range s.mine[turn] {
				parts = append(parts, plain.Bytes(row[a:b]))
			}
			s.parts[turn] = append(s.parts[turn], parts)
		}
		s.totals[turn] = make([]T, end-first)
	}
	for _, l := range w.leaves {
		l.sum = plain.Room(columns * w.Device.Type().Bytes())
	}
	s.arrange(first, end)
}

// arrange makes room for all pieces of the node's share, and sorts them.
func (s *sums[T]) arrange(first, end int) {
	w := s.w
	type piece struct {
		leaf int
		row  []T
		own  bool
	}
	var all []piece
	for member, node := range s.members {
		spans := s.spans[node]
		lie := make([]T, len(spans)*(end-first))
		for i, span := range spans {
			all = append(all, piece{span.First, lie[i*(end-first):][:end-first], node == w.Work.Self})
		}
		if node != w.Work.Self && len(lie) > 0 {
			s.pieces = append(s.pieces, &share[T]{member, w.net.NewFetch(node, peer.Gradient), plain.Bytes(lie)})
		}
	}
	slices.SortFunc(all, func(a, b piece) int { return a.leaf - b.leaf })
	for i, p := range all {
		s.leaves, s.rows = append(s.leaves, p.leaf), append(s.rows, p.row)
		if p.own {
			s.own = append(s.own, i)
		}
	}
}

// self returns which member of its stage this node is.
func (s *sums[T]) self() int { return slices.Index(s.members, s.w.Work.Self) }

func (s *sums[T]) of(gradients tensor.Matrix) tensor.Matrix {
	from, to := s.w.Own()
	return gradients.View(0, 1, from, to-from)
}

// share returns which of the stage's columns a member adds up.
func (s *sums[T]) share(member int) (first, end int) {
	return shareOf(len(s.sum), member, len(s.members))
}

func shareOf(columns, member, members int) (first, end int) {
	return columns * member / members, columns * (member + 1) / members
}

// holders returns the node that has the gradient of each shard in a stage; -1: the shard is
// empty.
func (t *Task) holders(stage int) []int {
	all := make([]int, len(t.Shape.Firsts)-1)
	for shard := range all {
		all[shard] = -1
		if t.Shape.Firsts[shard] < t.Shape.Firsts[shard+1] {
			all[shard] = t.Seats.Node(stage, t.Shape.WayOf(shard))
		}
	}
	return all
}

func (s *sums[T]) addUp() error {
	s.turn = 1 - s.turn
	// The totals of others arrive while this node adds up.
	for _, x := range s.shares {
		x.fetch.Start(s.tag(exchange.LaneTotal, x.member), x.to)
	}
	s.collect()
	if err := s.total(); err != nil {
		return err
	}
	for _, x := range s.shares {
		if err := x.fetch.Wait(); err != nil {
			return err
		}
	}
	plain.Write(s.w.Device, s.of(s.w.Gradients), plain.Bytes(s.sum))
	return nil
}

// collect adds up this node's leaves, span by span, and offers the sums to the others of
// its stage.
func (s *sums[T]) collect() {
	w := s.w
	s.summer.Begin(s.spans[w.Work.Self])
	for _, l := range w.leaves {
		copy(s.summer.Row(l.shard), plain.Numbers[T](l.sum))
	}
	for i, row := range s.summer.Sums() {
		copy(s.mine[s.turn][i], row)
	}
	for other := range s.members {
		if a, b := s.share(other); other != s.self() && b > a {
			w.net.Offer(s.tag(exchange.LanePiece, other), s.parts[s.turn][other]...)
		}
	}
}

func (s *sums[T]) tag(lane uint8, member int) exchange.Tag { return s.w.tag(lane, s.w.stage, member) }

// total adds up this node's share of its stage's columns, and offers it.
func (s *sums[T]) total() error {
	w, self := s.w, s.self()
	for _, x := range s.pieces {
		x.fetch.Start(s.tag(exchange.LanePiece, self), x.to)
	}
	for _, x := range s.pieces {
		if err := x.fetch.Wait(); err != nil {
			return err
		}
	}
	first, end := s.share(self)
	for i, at := range s.own {
		copy(s.rows[at], s.mine[s.turn][i][first:end])
	}
	s.folder.Fold(s.leaves, s.rows)
	copy(s.totals[s.turn], s.rows[0])
	copy(s.sum[first:end], s.rows[0])
	if len(s.members) > 1 && end > first {
		w.net.Offer(s.tag(exchange.LaneTotal, self), plain.Bytes(s.totals[s.turn]))
	}
	return nil
}

// A number is what is computed with.
type number interface{ ~float32 | ~float64 }
