package metric

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A Ranking keeps the logits of some vertices class by class, to rank them: for the area
// under the ROC curve. It takes four bytes for each logit in a store, and little memory of
// its own. Logits that several nodes have are ranked together where each sorts its own: see
// Comparison.
type Ranking struct {
	counts []Sides
	begin  []int // of each class: where its keys begin; then how many there are
	words  int   // of a row's target
	side   Side
	store  Store
	at     [][2]int    // of each class: keys so far, of vertices without it and with it
	some   [2][]uint32 // of the rows that are added
	run    []uint32
	ends   []int // of the runs of a column
}

// Sides counts the vertices that a class is ranked by: those without it, and those with it.
type Sides [2]int

// A Side says on which side of a class a vertex with some target is. Those of which it is not
// known are not ranked.
type Side func(target []int32, class int) int

// The sides.
const (
	Unknown = iota - 1
	Without
	With
)

// A Store holds the bytes of a ranking.
type Store interface {
	Write(b []byte, at int64) error
	// Bytes returns all bytes, for reading.
	Bytes() []byte
}

// mostRun bounds how many keys are sorted at once in memory. Tests lower it.
var mostRun = 1 << 20

// NewRanking returns a ranking of so many vertices by each class. Their targets are so many
// words each.
func NewRanking(counts []Sides, words int, side Side) *Ranking {
	r := &Ranking{counts: slices.Clone(counts), begin: []int{0}, words: words, side: side, at: make([][2]int, len(counts))}
	for _, of := range counts {
		r.begin = append(r.begin, r.begin[len(r.begin)-1]+of[Without]+of[With])
	}
	return r
}

// Counts returns how many vertices each class is ranked by.
func (r *Ranking) Counts() []Sides { return r.counts }

// Size returns how many bytes its store has.
func (r *Ranking) Size() int64 { return 4 * int64(r.begin[len(r.counts)]) }

// most returns how many vertices the class of most is ranked by.
func (r *Ranking) most() (n int) {
	for _, of := range r.counts {
		n = max(n, of[Without]+of[With])
	}
	return n
}

// Beside returns how many bytes sorting takes of memory, and of another store.
func (r *Ranking) Beside() (memory, store int64) {
	most := r.most()
	memory = 4 * int64(min(most, mostRun))
	if most > mostRun {
		store = 4 * int64(most)
	}
	return memory, store
}

// Begin has it keep the logits of all of its vertices anew, in a store.
func (r *Ranking) Begin(s Store) {
	r.store = s
	clear(r.at)
}

// key returns a number that is ordered as logits are. That of a NaN is the largest.
func key(f float32) uint32 {
	bits := math.Float32bits(f)
	switch {
	case f != f:
		return math.MaxUint32
	case f == 0:
		return 1 << 31 // of either sign
	case bits>>31 != 0:
		return ^bits
	}
	return bits | 1<<31
}

// Add adds the logits of some vertices, row after row, with their targets.
func (r *Ranking) Add(logits []float32, targets []int32) error {
	classes := len(r.counts)
	for c := range classes {
		r.some[Without], r.some[With] = r.some[Without][:0], r.some[With][:0]
		for row := range len(targets) / r.words {
			if side := r.side(targets[row*r.words:][:r.words], c); side >= 0 {
				r.some[side] = append(r.some[side], key(logits[row*classes+c]))
			}
		}
		for side, keys := range r.some {
			if err := r.store.Write(plain.Bytes(keys), 4*int64(r.begins(c, side)+r.at[c][side])); err != nil {
				return err
			}
			r.at[c][side] += len(keys)
		}
	}
	return nil
}

// begins returns where the keys of a side of a class begin.
func (r *Ranking) begins(class, side int) int {
	at := r.begin[class]
	if side == With {
		at += r.counts[class][Without]
	}
	return at
}

// Keys returns the bytes of the keys of some classes, which are sorted once Sort has
// returned: of each class first those of vertices without it, then those with it.
func (r *Ranking) Keys(from, to int) []byte {
	return r.store.Bytes()[4*r.begin[from] : 4*r.begin[to]]
}

// Sort sorts the keys of all vertices, once all were added. It makes another store if it
// needs one.
func (r *Ranking) Sort(another func(bytes int64) (Store, error)) (err error) {
	var beside Store
	if _, bytes := r.Beside(); bytes > 0 {
		if beside, err = another(bytes); err != nil {
			return err
		}
	}
	for c := range r.counts {
		for side := range 2 {
			first := r.begins(c, side)
			if err := r.sort(first, first+r.at[c][side], beside); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort sorts keys run by run, then joins the runs.
func (r *Ranking) sort(first, end int, beside Store) error {
	r.ends = r.ends[:0]
	for at := first; at < end; at += mostRun {
		n := min(mostRun, end-at)
		if cap(r.run) < n {
			r.run = make([]uint32, min(r.most(), mostRun))
		}
		run := r.run[:n]
		copy(run, plain.Numbers[uint32](r.store.Bytes())[at:])
		slices.Sort(run)
		if err := r.store.Write(plain.Bytes(run), 4*int64(at)); err != nil {
			return err
		}
		r.ends = append(r.ends, at+n)
	}
	if len(r.ends) < 2 {
		return nil
	}
	return r.join(first, beside)
}

// join merges the runs from first on.
func (r *Ranking) join(first int, beside Store) error {
	var runs []Stream
	at := first
	for _, end := range r.ends {
		runs = append(runs, &piece{plain.Numbers[uint32](r.store.Bytes())[at:end]})
		at = end
	}
	var m merge
	if err := m.begin(runs); err != nil {
		return err
	}
	n := at - first
	for written := 0; written < n; {
		run := r.run[:0]
		for len(run) < cap(run) && m.more() {
			run = append(run, m.least())
			if err := m.pop(); err != nil {
				return err
			}
		}
		if err := beside.Write(plain.Bytes(run), 4*int64(written)); err != nil {
			return err
		}
		written += len(run)
	}
	for at := 0; at < n; at += cap(r.run) {
		run := append(r.run[:0], plain.Numbers[uint32](beside.Bytes())[at:min(at+cap(r.run), n)]...)
		if err := r.store.Write(plain.Bytes(run), 4*int64(first+at)); err != nil {
			return err
		}
	}
	return nil
}

// A Stream is keys in ascending order, piece by piece.
type Stream interface {
	// Next returns the next piece, which is valid until the one after it; at the end, none.
	Next() ([]uint32, error)
}

// piece is a stream of one piece.
type piece struct{ keys []uint32 }

// Next implements Stream.
func (p *piece) Next() (keys []uint32, err error) {
	keys, p.keys = p.keys, nil
	return keys, nil
}

// merge merges streams: a heap of those that have more keys, by the next one.
type merge struct{ heads []head }

type head struct {
	keys []uint32 // not empty
	of   Stream
}

// begin has it merge some streams.
func (m *merge) begin(streams []Stream) error {
	m.heads = m.heads[:0]
	for _, s := range streams {
		keys, err := s.Next()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			m.heads = append(m.heads, head{keys, s})
		}
	}
	for at := len(m.heads)/2 - 1; at >= 0; at-- {
		m.sink(at)
	}
	return nil
}

func (m *merge) more() bool { return len(m.heads) > 0 }

// least returns the smallest key.
func (m *merge) least() uint32 { return m.heads[0].keys[0] }

// pop removes the smallest key.
func (m *merge) pop() (err error) {
	h := &m.heads[0]
	if h.keys = h.keys[1:]; len(h.keys) == 0 {
		if h.keys, err = h.of.Next(); err != nil {
			return err
		}
		if len(h.keys) == 0 {
			last := len(m.heads) - 1
			m.heads[0] = m.heads[last]
			m.heads = m.heads[:last]
		}
	}
	m.sink(0)
	return nil
}

// sink moves a head down to its place.
func (m *merge) sink(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(m.heads); child++ {
			if m.heads[child].keys[0] < m.heads[least].keys[0] {
				least = child
			}
		}
		if least == at {
			return
		}
		m.heads[at], m.heads[least] = m.heads[least], m.heads[at]
		at = least
	}
}

// pass removes the keys that equal one, and counts them.
func (m *merge) pass(k uint32) (n float64, err error) {
	for ; m.more() && m.least() == k; n++ {
		if err := m.pop(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// passBelow removes the keys that are below one, and counts them.
func (m *merge) passBelow(k uint32) (n float64, err error) {
	for ; m.more() && m.least() < k; n++ {
		if err := m.pop(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// A Comparison compares the keys of vertices with a class with those of vertices without it.
// It reuses its memory.
type Comparison struct{ without, with merge }

// Ranks is what a comparison comes to.
type Ranks struct {
	// Pairs is in how many pairs of a vertex with the class and one without it the former
	// has the larger key, ties counting half.
	Pairs float64
	// Precisions is the sum, over vertices with the class, of the share of those with it
	// among all that have no smaller key.
	Precisions float64
}

// Compare compares so many keys. A NaN is in no pair, and adds no precision.
func (p *Comparison) Compare(without, with []Stream, of Sides) (r Ranks, err error) {
	if err := p.without.begin(without); err != nil {
		return r, err
	}
	if err := p.with.begin(with); err != nil {
		return r, err
	}
	below, passed := 0.0, 0.0 // vertices without the class, and with it, that have smaller keys
	for p.with.more() && p.with.least() != math.MaxUint32 {
		k := p.with.least()
		smaller, err := p.without.passBelow(k)
		if err != nil {
			return r, err
		}
		equal, err := p.without.pass(k)
		if err != nil {
			return r, err
		}
		n, err := p.with.pass(k)
		if err != nil {
			return r, err
		}
		below += smaller
		r.Pairs += n * (below + equal/2)
		right, wrong := float64(of[With])-passed, float64(of[Without])-below
		r.Precisions += n * (right / (right + wrong))
		below, passed = below+equal, passed+n
	}
	return r, nil
}

// Area returns the mean, over the classes that have vertices on both sides, of the probability
// that a vertex with the class has a larger key than one without it: the area under the ROC
// curve. ok reports whether there is such a class.
func Area(ranks []Ranks, counts []Sides) (area float64, ok bool) {
	ranked := 0
	for c, of := range counts {
		if of[Without] == 0 || of[With] == 0 {
			continue
		}
		area += ranks[c].Pairs / (float64(of[With]) * float64(of[Without]))
		ranked++
	}
	if ranked == 0 {
		return 0, false
	}
	return area / float64(ranked), true
}

// Precision returns the mean of the average precisions of the classes that vertices have. ok
// reports whether there is such a class.
func Precision(ranks []Ranks, counts []Sides) (mean float64, ok bool) {
	ranked := 0
	for c, of := range counts {
		if of[With] == 0 {
			continue
		}
		mean += ranks[c].Precisions / float64(of[With])
		ranked++
	}
	if ranked == 0 {
		return 0, false
	}
	return mean / float64(ranked), true
}
