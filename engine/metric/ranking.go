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
	labelled []int // of each class: vertices that have it
	rows     int
	store    Store
	at       [][2]int    // of each class: keys so far, of vertices without it and with it
	some     [2][]uint32 // of the rows that are added
	run      []uint32
	ends     []int // of the runs of a column
}

// A Store holds the bytes of a ranking.
type Store interface {
	Write(b []byte, at int64) error
	// Bytes returns all bytes, for reading.
	Bytes() []byte
}

// mostRun bounds how many keys are sorted at once in memory. Tests lower it.
var mostRun = 1 << 20

// NewRanking returns a ranking of vertices of which so many have each class.
func NewRanking(labelled []int) *Ranking {
	r := &Ranking{labelled: slices.Clone(labelled), at: make([][2]int, len(labelled))}
	for _, n := range labelled {
		r.rows += n
	}
	return r
}

// Labelled returns how many vertices have each class.
func (r *Ranking) Labelled() []int { return r.labelled }

// Size returns how many bytes its store has.
func (r *Ranking) Size() int64 { return 4 * int64(r.rows) * int64(len(r.labelled)) }

// Beside returns how many bytes sorting takes of memory, and of another store.
func (r *Ranking) Beside() (memory, store int64) {
	memory = 4 * int64(min(r.rows, mostRun))
	if r.rows > mostRun {
		store = 4 * int64(r.rows)
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

// Add adds the logits of some vertices, row after row, but for those without a label.
func (r *Ranking) Add(logits []float32, labels []int32) error {
	classes := len(r.labelled)
	for c := range classes {
		r.some[0], r.some[1] = r.some[0][:0], r.some[1][:0]
		for row, label := range labels {
			if label < 0 {
				continue
			}
			has := 0
			if int(label) == c {
				has = 1
			}
			r.some[has] = append(r.some[has], key(logits[row*classes+c]))
		}
		for has, keys := range r.some {
			if err := r.store.Write(plain.Bytes(keys), 4*int64(r.begins(c, has)+r.at[c][has])); err != nil {
				return err
			}
			r.at[c][has] += len(keys)
		}
	}
	return nil
}

// begins returns where the keys of a class begin: those of vertices without it, or with it.
func (r *Ranking) begins(class, has int) int {
	at := class * r.rows
	if has > 0 {
		at += r.rows - r.labelled[class]
	}
	return at
}

// Keys returns the bytes of the keys of some classes, which are sorted once Sort has
// returned: of each class first those of vertices without it, then those with it.
func (r *Ranking) Keys(from, to int) []byte {
	return r.store.Bytes()[4*from*r.rows : 4*to*r.rows]
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
	for c := range r.labelled {
		for has := range 2 {
			first := r.begins(c, has)
			if err := r.sort(first, first+r.at[c][has], beside); err != nil {
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
			r.run = make([]uint32, min(r.rows, mostRun))
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

// A Comparison counts pairs of a vertex with a class and one without it. It reuses its
// memory.
type Comparison struct{ without, with merge }

// Pairs returns in how many pairs the vertex with the class has the larger key, ties
// counting half. A NaN is in none of them.
func (p *Comparison) Pairs(without, with []Stream) (pairs float64, err error) {
	if err := p.without.begin(without); err != nil {
		return 0, err
	}
	if err := p.with.begin(with); err != nil {
		return 0, err
	}
	below := 0.0 // vertices without the class that have smaller keys
	for p.with.more() && p.with.least() != math.MaxUint32 {
		k := p.with.least()
		smaller, err := p.without.passBelow(k)
		if err != nil {
			return 0, err
		}
		equal, err := p.without.pass(k)
		if err != nil {
			return 0, err
		}
		n, err := p.with.pass(k)
		if err != nil {
			return 0, err
		}
		below += smaller
		pairs += n * (below + equal/2)
		below += equal
	}
	return pairs, nil
}
