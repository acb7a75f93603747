package exchange

import (
	"context"
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// takeRows offers this node's rows, and takes its share of those of the others, with
// their notes. Notes come from all, however small the share is.
func (s *summing) takeRows(ctx context.Context, r *Round, columns, size int) error {
	x, self, nodes := s.x, s.x.work.Self, len(s.x.work.Nodes)
	first, end := share(columns, self, nodes)
	first, end = first*size, end*size
	tag := r.Tag
	tag.Lane = LaneReduce

	x.mu.Lock()
	o := x.blank(tag.Lane, 0)
	o.head = r.Note.append(o.head)
	o.rows = append(o.rows, s.rows...)
	x.publish(tag, o)
	if s.sum = nil; end > first {
		s.sum = x.blank(LaneSum, end-first)
	}
	x.mu.Unlock()

	for node := range nodes {
		bytes := noteSize + r.rows(node)*(end-first)
		if node == self {
			own := s.room(self, bytes)
			r.Note.append(own[:0])
			for i, row := range s.rows {
				copy(own[noteSize+i*(end-first):], row[first:end])
			}
			s.calls[self].answer = own
			continue
		}
		c := s.want(node, peer.Gradient, tag, bytes, r.Tally)
		putColumns(c.columns[:], first, end)
		c.query.Body = c.columns[:]
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	s.takeNotes()
	return nil
}

// wholeBytes is how much more may cross a node's link so that it need not wait for sums: less than
// a round of questions takes of a processor, and of a slow link about a millisecond. It also
// bounds the memory of rows that are taken whole.
const wholeBytes = 48 << 10

// whole reports whether each node takes all rows, of so many bytes.
func whole(nodes, bytes int, rows func(node int) int) bool {
	if nodes < 2 {
		return false // nothing travels
	}
	all := 0
	for node := range nodes {
		all += rows(node)
	}
	return all < 2 && bytes <= wholeBytes/nodes || all > 1 && bytes <= wholeBytes*nodes/(nodes-1)/(all-1)
}

// Rounds returns how many rounds of questions a sum of one row a node takes, of so many bytes, and how
// many bytes of rows come to each node.
func Rounds(nodes, bytes int) (rounds int, came float64) {
	if nodes < 2 {
		return 0, 0
	}
	if whole(nodes, bytes, func(int) int { return 1 }) {
		return 1, float64((nodes - 1) * bytes)
	}
	return 2, 2 * float64((nodes-1)*bytes) / float64(nodes)
}

// takeWhole takes all rows of all nodes, with their notes. Others may ask for this node's when it
// has gone on, so they are copied: they stay for a step, as sums do.
func (s *summing) takeWhole(ctx context.Context, r *Round, row int) error {
	x, self := s.x, s.x.work.Self
	tag := r.Tag
	tag.Lane = LaneReduce

	own := s.room(self, noteSize+len(s.rows)*row)
	r.Note.append(own[:0])
	for i := range s.rows {
		copy(own[noteSize+i*row:], s.rows[i])
	}
	s.calls[self].answer = own
	x.mu.Lock()
	o := x.blank(tag.Lane, len(own)-noteSize)
	o.head = r.Note.append(o.head)
	if len(o.rows) > 0 {
		copy(o.rows[0], own[noteSize:])
	}
	x.publish(tag, o)
	x.mu.Unlock()

	for node := range s.calls {
		if node != self {
			s.want(node, peer.Gradient, tag, noteSize+r.rows(node)*row, r.Tally)
		}
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	s.takeNotes()
	return nil
}

func (s *summing) takeNotes() {
	s.notes = s.notes[:0]
	for i := range s.calls {
		s.notes = append(s.notes, noteOf(s.calls[i].answer))
	}
}

// addUp returns the sum of the rows that were taken, of so many bytes each. It is valid until the
// next round.
func addUp[T Number](s *summing, r *Round, bytes int) []byte {
	s.pieces = s.pieces[:0]
	for node := range s.calls {
		for i := range r.rows(node) {
			p := piece{first: node, row: s.calls[node].answer[noteSize+i*bytes:][:bytes]}
			if r.Spans != nil {
				p.first = r.Spans[node][i].First
			}
			s.pieces = append(s.pieces, p)
		}
	}
	switch {
	case len(s.pieces) == 0:
		none := s.room(s.x.work.Self, bytes)
		clear(none)
		return none
	case r.Spans == nil:
		for _, p := range s.pieces[1:] {
			add(numbers[T](s.pieces[0].row), numbers[T](p.row))
		}
	default:
		slices.SortFunc(s.pieces, func(a, b piece) int { return a.first - b.first })
		fold[T](s.pieces)
	}
	return s.pieces[0].row
}

// takeSums offers the sum of this node's share, and takes those of the others. They
// stay in the round's memory: this node's rows may lie where they are to go, and others
// may still read those.
func (s *summing) takeSums(ctx context.Context, r *Round, columns, size int) error {
	x, self, nodes := s.x, s.x.work.Self, len(s.x.work.Nodes)
	tag := r.Tag
	tag.Lane = LaneSum
	if s.sum != nil {
		x.mu.Lock()
		x.publish(tag, s.sum)
		x.mu.Unlock()
	}
	for node := range nodes {
		if first, end := share(columns, node, nodes); node != self && end > first {
			s.want(node, peer.Gradient, tag, (end-first)*size, r.Tally)
		}
	}
	return s.run(ctx)
}

// put joins all shares' sums.
func (s *summing) put(to []byte, columns, size int) {
	self, nodes := s.x.work.Self, len(s.x.work.Nodes)
	for node := range nodes {
		first, end := share(columns, node, nodes)
		switch {
		case end == first:
		case node == self:
			copy(to[first*size:], s.sum.rows[0])
		default:
			copy(to[first*size:end*size], s.calls[node].answer)
		}
	}
}
