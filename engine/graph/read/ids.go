package read

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// idMap gives each id of a source its number. Ids are first collected from all
// tables, then, after finish, looked up.
//
// Integers are numbered in ascending order, so that 0..n-1 stay what they are.
// Once one id is no integer they are all text, numbered in the order of their
// first appearance: in edges, where a source comes before its target, and then in
// the table that names vertices beside them.
type idMap struct {
	memory *memory
	ints   *intIDs
	text   *textIDs // nil while all ids are integers
}

func newIDMap(m *memory, text bool) *idMap {
	if text {
		return &idMap{memory: m, text: newTextIDs(m)}
	}
	return &idMap{memory: m, ints: newIntIDs(m)}
}

// collect takes in a column.
func (m *idMap) collect(c *idColumn) error {
	if m.text == nil {
		return m.ints.collect(c.ints)
	}
	return m.text.collect(c)
}

// number returns the numbers of a column's ids in out, which it grows as needed;
// of an id that was never collected, unknownID.
func (m *idMap) number(c *idColumn, out []uint32) []uint32 {
	out = out[:0]
	switch {
	case m.text != nil:
		for i := range c.ends {
			out = append(out, m.text.number(c.at(i)))
		}
	case m.ints.identity:
		n := uint64(m.ints.n)
		for _, v := range c.ints {
			if uint64(v) >= n { // negative ones too
				v = int64(unknownID)
			}
			out = append(out, uint32(v))
		}
	default:
		for _, v := range c.ints {
			out = append(out, m.ints.number(v))
		}
	}
	return out
}

// soFar is how many different ids were collected.
func (m *idMap) soFar() int {
	if m.text != nil {
		return m.text.len()
	}
	n := int(m.ints.lowCount + m.ints.keyCount)
	if m.ints.smallest {
		n++
	}
	return n
}

func (m *idMap) finish() error {
	if m.text != nil {
		return m.text.finish()
	}
	return m.ints.finish()
}

func (m *idMap) len() uint32 {
	if m.text != nil {
		return uint32(m.text.len())
	}
	return m.ints.n
}

// ids is what a Source says of its ids; the slices are the map's own.
func (m *idMap) ids() graph.IDs {
	switch {
	case m.text != nil:
		return graph.IDs{Strings: &graph.Strings{Offsets: m.text.offsets, Bytes: m.text.bytes}}
	case m.ints.identity:
		return graph.IDs{}
	}
	return graph.IDs{Ints: m.ints.sorted}
}

// note says how the ids were taken.
func (m *idMap) note() string {
	switch {
	case m.text != nil:
		return "Not all ids are integers: they are taken as text and numbered in the order in which they first appear."
	case m.ints.identity:
		return fmt.Sprintf("The ids are the integers 0 to %d and stay as they are.", m.len()-1)
	}
	return fmt.Sprintf("The ids are integers from %d to %d and are numbered in ascending order.", m.ints.sorted[0], m.ints.sorted[len(m.ints.sorted)-1])
}

// unknownID is beyond every vertex's number.
const unknownID uint32 = 1<<32 - 1

// An idColumn is ids of some rows: integers, or text that lies in one slice, the
// i-th ending before ends[i].
type idColumn struct {
	ints  []int64
	ends  []int
	bytes []byte
}

func (c *idColumn) reset() { c.ints, c.ends, c.bytes = c.ints[:0], c.ends[:0], c.bytes[:0] }

func (c *idColumn) at(i int) []byte {
	from := 0
	if i > 0 {
		from = c.ends[i-1]
	}
	return c.bytes[from:c.ends[i]]
}

func (c *idColumn) addText(id []byte) {
	c.bytes = append(c.bytes, id...)
	c.ends = append(c.ends, len(c.bytes))
}

// show is the i-th id as a user wrote it.
func (c *idColumn) show(i int) string {
	if len(c.ends) == 0 {
		return fmt.Sprint(c.ints[i])
	}
	return shorten(c.at(i))
}

// shorten quotes what stands in a file for a sentence.
func shorten(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// parseID reads an integer only where writing it again gives the same: 007, +7 and
// -0 are text, so that every id comes back as it was.
func parseID(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var v uint64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + uint64(c) // 19 digits are below 1<<64
	}
	if negative {
		return -int64(v), v <= 1<<63
	}
	return int64(v), v < 1<<63
}

// memory counts what the source holds against what it may. Limit 0: no bound.
type memory struct {
	limit, held uint64
}

var errMemory = errors.New("more memory is needed than is allowed")

// grow replaces from bytes by to bytes, which lie side by side while one is copied
// into the other.
func (m *memory) grow(from, to uint64) error {
	if m.limit > 0 && m.held+to > m.limit {
		return errMemory
	}
	m.held += to - from
	return nil
}

// enlarge returns s with room for more elements, asking for the memory first.
func enlarge[E any](m *memory, s []E, more int, size uint64) ([]E, error) {
	if len(s)+more <= cap(s) {
		return s, nil
	}
	room := max(len(s)+more, cap(s)+cap(s)/2, 1024)
	if err := m.grow(uint64(cap(s))*size, uint64(room)*size); err != nil {
		return nil, err
	}
	out := make([]E, len(s), room)
	copy(out, s)
	return out, nil
}
