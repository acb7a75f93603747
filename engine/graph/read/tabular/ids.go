package tabular

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/textids"
)

// idMap numbers the ids of a source. First ids are collected from all tables; after
// finish they can be looked up.
//
// Integers are numbered in ascending order, so that 0..n-1 stay what they are.
// If one id is not an integer, all are text, numbered in the order of their first
// appearance: in edges, where a source comes before its target, and then in
// the table that names vertices beside them.
type idMap struct {
	memory *source.Memory
	ints   *intids.IDs
	text   *textids.IDs // nil while all ids are integers
	order  []uint32     // what the numbers become; nil: they stay
}

func newIDMap(m *source.Memory, text bool) *idMap {
	if text {
		return &idMap{memory: m, text: textids.New(m)}
	}
	return &idMap{memory: m, ints: intids.New(m)}
}

// collect adds a column.
func (m *idMap) collect(c *idColumn) error {
	if m.text == nil {
		return m.ints.Collect(c.ints)
	}
	return m.collectText(c, nil)
}

// collectText adds a column of text, or two, whose ids come in turn.
func (m *idMap) collectText(c, second *idColumn) error {
	for i := range c.ends {
		if err := m.text.Add(c.at(i)); err != nil {
			return err
		}
		if second == nil {
			continue
		}
		if err := m.text.Add(second.at(i)); err != nil {
			return err
		}
	}
	return nil
}

// number returns the numbers of a column's ids, in out if there is room. The number
// of an id that was never collected is unknownID.
func (m *idMap) number(c *idColumn, out []uint32) []uint32 {
	out = m.collected(c, out[:0])
	m.reorder(out)
	return out
}

// reorder turns numbers in the order of the ids into those of vertices.
func (m *idMap) reorder(numbers []uint32) {
	if m.order == nil {
		return
	}
	for i, v := range numbers {
		if v != unknownID {
			numbers[i] = m.order[v]
		}
	}
}

// collected appends the numbers of a column's ids in the order of the ids.
func (m *idMap) collected(c *idColumn, out []uint32) []uint32 {
	switch {
	case m.text != nil:
		for i := range c.ends {
			out = append(out, m.text.Number(c.at(i)))
		}
	case m.ints.Identity():
		n := uint64(m.ints.Len())
		for _, v := range c.ints {
			if uint64(v) >= n { // negative ones too
				v = int64(unknownID)
			}
			out = append(out, uint32(v))
		}
	default:
		for _, v := range c.ints {
			out = append(out, m.ints.Number(v))
		}
	}
	return out
}

// soFar returns how many different ids were collected.
func (m *idMap) soFar() int {
	if m.text != nil {
		return m.text.Len()
	}
	return m.ints.SoFar()
}

func (m *idMap) finish() error {
	if m.text != nil {
		return nil
	}
	return m.ints.Finish()
}

func (m *idMap) len() uint32 {
	if m.text != nil {
		return uint32(m.text.Len())
	}
	return m.ints.Len()
}

// ids returns the ids as a Source reports them. The slices are the map's own.
func (m *idMap) ids() graph.IDs {
	switch {
	case m.text != nil:
		return graph.IDs{Strings: m.text.Strings()}
	case m.ints.Identity():
		return graph.IDs{}
	}
	return graph.IDs{Ints: m.ints.Sorted()}
}

// note describes how the ids were numbered.
func (m *idMap) note() string {
	switch {
	case m.text != nil:
		return "Not all ids are integers: they are taken as text and numbered in the order in which they first appear."
	case m.ints.Identity():
		return fmt.Sprintf("The ids are the integers 0 to %d and stay as they are.", m.len()-1)
	}
	return fmt.Sprintf("The ids are integers from %d to %d and are numbered in ascending order.", m.ints.Sorted()[0], m.ints.Sorted()[len(m.ints.Sorted())-1])
}

// unknownID is larger than every vertex's number.
const unknownID = intids.Unknown

// An idColumn holds the ids of some rows: integers, or text in one slice, where the
// i-th id ends before ends[i].
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

// show returns the i-th id as the user wrote it.
func (c *idColumn) show(i int) string {
	if len(c.ends) == 0 {
		return fmt.Sprint(c.ints[i])
	}
	return source.Shorten(c.at(i))
}
