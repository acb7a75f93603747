package exchange

import (
	"context"
	"slices"
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
	if s.sum = nil; end > first {
		s.sum = x.blank(LaneSum, end-first)
	}
	x.mu.Unlock()

	for node := range nodes {
		takes := noteSize + r.rows(node)*(end-first)
		if node == self {
			own := s.room(self, takes)
			s.putRows(own, r, first, end)
			s.calls[self].answer = own
			continue
		}
		from, until := share(columns, node, nodes) // the other node's
		from, until = from*size, until*size
		if given := s.trade(node, tag, first, end, noteSize+len(s.rows)*(until-from), takes, r.Tally); given != nil {
			s.putRows(given, r, from, until)
		}
	}
	if err := s.run(ctx, tag, o); err != nil {
		return err
	}
	s.takeNotes()
	return nil
}

// putRows puts the note and some bytes of each of this node's rows.
func (s *summing) putRows(to []byte, r *Round, first, end int) {
	at := len(r.Note.append(to[:0]))
	for _, row := range s.rows {
		at += copy(to[at:], row[first:end])
	}
}

const (
	// moreBytes is how much more may cross a node's link, either way, to save a round of questions.
	// With links of 400 Mbit/s, four nodes that have half a core each take as long either way, and
	// eight with a fifth of a core gain a sixth.
	moreBytes = 128 << 10
	// wholeBytes bounds the memory of rows that are taken whole.
	wholeBytes = 256 << 10
)

// whole reports whether each node takes all rows, of so many bytes.
func whole(nodes, bytes int, rows func(node int) int) bool {
	if nodes < 2 {
		return false // nothing travels
	}
	all, least, most := 0, rows(0), rows(0)
	for node := range nodes {
		n := rows(node)
		all, least, most = all+n, min(least, n), max(most, n)
	}
	come, leave := (all-least)*bytes, (nodes-1)*most*bytes
	// Apart, shares of rows come, and the sums of the other shares; and as much goes.
	sums := bytes - bytes/nodes
	return come <= wholeBytes && come-come/nodes-sums <= moreBytes && leave-leave/nodes-sums <= moreBytes
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
	s.putRows(own, r, 0, row)
	s.calls[self].answer = own
	x.mu.Lock()
	o := x.blank(tag.Lane, len(own)-noteSize)
	x.mu.Unlock()
	o.head = r.Note.append(o.head)
	if len(o.rows) > 0 {
		copy(o.rows[0], own[noteSize:])
	}
	for node := range s.calls {
		if node == self {
			continue
		}
		if given := s.trade(node, tag, 0, r.rows(node)*row, len(own), noteSize+r.rows(node)*row, r.Tally); given != nil {
			copy(given, own)
		}
	}
	if err := s.run(ctx, tag, o); err != nil {
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
	self, nodes := s.x.work.Self, len(s.x.work.Nodes)
	tag := r.Tag
	tag.Lane = LaneSum
	mine := 0
	if s.sum != nil {
		mine = len(s.sum.rows[0])
	}
	for node := range nodes {
		first, end := share(columns, node, nodes)
		takes := (end - first) * size
		if node == self || takes == 0 {
			continue
		}
		if given := s.trade(node, tag, 0, takes, mine, takes, r.Tally); given != nil {
			copy(given, s.sum.rows[0])
		}
	}
	return s.run(ctx, tag, s.sum)
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
