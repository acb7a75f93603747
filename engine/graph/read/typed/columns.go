package typed

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// A columnsOf is a type of a table of nodes: its vertices, and which columns of features are its own.
type columnsOf struct {
	name     string
	vertices uint32
	columns  []int   // that have a number in its rows
	seen     []uint8 // of each column of the table, what its rows have: some of the bits below
	begun    bool
}

const (
	hasNumber = 1 << iota
	hasNone
)

// all gives it so many columns.
func (c *columnsOf) all(width int) {
	for i := range width {
		c.columns = append(c.columns, i)
	}
}

// A sorter goes through a table of nodes and finds out which types there are, which vertices are of
// which, and which columns each has.
type sorter struct {
	rows  *tabular.Rows
	list  bool // features are lists
	types []*columnsOf
	of    []uint16 // of each vertex, one more than the place of its type; 0: no row yet
	// The first cell with content says whether a column holds words or numbers.
	words, numbers []bool
}

func (s *sorter) see(n *tabular.Nodes) error {
	for i, v := range n.Vertices {
		if s.of[v] != 0 {
			if !s.rows.Typed() {
				return fmt.Errorf("%s: the id %s has a row already: leave one row for each id", n.At(i), n.ID(i))
			}
			return fmt.Errorf("%s: the id %s has a row already, and ids are those of all types of a table: leave one row for each id, or put its type before each", n.At(i), n.ID(i))
		}
		at, err := s.typeOf(n, i)
		if err != nil {
			return err
		}
		s.of[v] = uint16(at + 1)
		one := s.types[at]
		one.vertices++
		if !s.rows.Typed() || len(s.words) == 0 {
			continue
		}
		if s.list {
			err = s.seeList(one, n, i)
		} else {
			err = s.seeColumns(one, n, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// typeOf returns the place of the type of a row, a new one if need be.
func (s *sorter) typeOf(n *tabular.Nodes, i int) (int, error) {
	name := []byte(vertexName)
	if s.rows.Typed() {
		name = n.Type(i)
	}
	if at := slices.IndexFunc(s.types, func(t *columnsOf) bool { return t.name == string(name) }); at >= 0 {
		return at, nil
	}
	switch {
	case len(s.types) == graph.MaxTypes:
		return 0, tabular.NoCategory(false, "%s: there are more than %d types, which are the most that a graph may have: name another column with {dataset.type_column}", n.At(i), graph.MaxTypes)
	case strings.Contains(string(name), "/"):
		return 0, tabular.NoCategory(false, "%s: the type %s has a /, which stands between types and ids: call it otherwise", n.At(i), source.Shorten(name))
	}
	if err := graph.CheckTypeName(string(name)); err != nil {
		return 0, tabular.NoCategory(false, "%s: %w", n.At(i), err)
	}
	width := len(s.words)
	if err := s.rows.Memory().Grow(0, uint64(width)*9); err != nil { // what is seen, and their places
		return 0, err
	}
	s.types = append(s.types, &columnsOf{name: string(name), seen: make([]uint8, width)})
	return len(s.types) - 1, nil
}

// seeList notes how many features a type has. All its rows have as many.
func (s *sorter) seeList(one *columnsOf, n *tabular.Nodes, i int) error {
	width := len(n.Features(i))
	if !one.begun {
		one.begun = true
		if err := s.rows.Memory().Grow(0, uint64(width)*8); err != nil {
			return err
		}
		one.all(width)
	}
	if width != len(one.columns) {
		return fmt.Errorf("%s: there are %d features, and the first row of the type %s has %d: give each id of a type as many", n.At(i), width, one.name, len(one.columns))
	}
	return nil
}

// seeColumns notes in which columns a row has a number.
func (s *sorter) seeColumns(one *columnsOf, n *tabular.Nodes, i int) error {
	for c, x := range n.Features(i) {
		switch {
		case s.words[c]:
			continue
		case math.IsInf(float64(x), 0) && !s.numbers[c]:
			s.words[c] = true
			continue
		case math.IsInf(float64(x), 0):
			return fmt.Errorf("%s: the feature %s is not a number, as it is in earlier rows: write one with a decimal point, or rename the column", n.At(i), s.rows.Column(c))
		case x != x && one.seen[c]&hasNumber != 0:
			return fmt.Errorf("%s: the feature %s is missing, and earlier rows of the type %s have it: write a number, 0 if there is nothing", n.At(i), s.rows.Column(c), one.name)
		case x == x && one.seen[c]&hasNone != 0:
			return fmt.Errorf("%s: here is a feature %s, and earlier rows of the type %s have none: write numbers there, 0 if there is nothing", n.At(i), s.rows.Column(c), one.name)
		case x != x:
			one.seen[c] |= hasNone
			continue
		}
		s.numbers[c] = true
		if one.seen[c] == 0 {
			one.seen[c] = hasNumber
			one.columns = append(one.columns, c)
		}
	}
	return nil
}

// left names the columns that are no features after all. It also puts each type's in order.
func (s *sorter) left() (names []string) {
	for c, is := range s.words {
		if is {
			names = append(names, s.rows.Column(c))
		}
	}
	for _, one := range s.types {
		slices.Sort(one.columns)
		one.seen = nil
	}
	return names
}
