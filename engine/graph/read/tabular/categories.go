package tabular

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph/read/columnar"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A category is what a row of a table says of a vertex's type, or of an edge's relation.

// A categoryColumn says how the column of categories of a table is found.
type categoryColumn struct {
	name string // whatever it holds; "": none is asked for
	look bool   // one that is called so, if it holds words
}

// categoryFound is the column of types or relations of a file of lines.
type categoryFound struct {
	column   int // -1: no such column
	name     string
	features []string // names of the columns of features beside types
	hint     string
}

// lookFor returns how the column of an option is found. Nothing is found if it says so.
func lookFor(name string, look bool) categoryColumn {
	if name == source.NoColumn {
		return categoryColumn{}
	}
	return categoryColumn{name: name, look: look && name == ""}
}

// The names that columns of categories go by, in lower case: those of DGL, PyG, TigerGraph and
// Neo4j among them.
var (
	typeNames     = []string{"type", "node_type", "vertex_type", "ntype", "v_type", ":label"}
	relationNames = []string{"relation", "rel", "type", "edge_type", "relation_type", "rel_type", "etype", "e_type", ":type"}
)

// option is the option that names the column of categories, with some value or none.
func (k tableKind) option(value string) string {
	key := "dataset.type_column"
	if k == edgesTable {
		key = "dataset.relation_column"
	}
	if value == "" {
		return "{" + key + "}"
	}
	return "{" + key + " " + value + "}"
}

// categories says what the categories of a table are.
func (k tableKind) categories() string {
	if k == edgesTable {
		return "relations"
	}
	return "types"
}

// find returns the column of categories, or -1. hint is a note on a column that may have been meant.
func (c categoryColumn) find(file string, kind tableKind, columns []nodeColumn, asked []string) (at int, hint string, err error) {
	names := columnNames(columns)
	if c.name != "" {
		if at = slices.Index(names, c.name); at < 0 {
			at = column(names, c.name)
		}
		switch {
		case at < 0:
			return -1, "", fmt.Errorf("%s has no column called %s among %s: check %s", file, source.Printable(c.name), source.Listed(names), kind.option(""))
		case !columns[at].word && !columns[at].number:
			return -1, "", fmt.Errorf("%s: the column %s, which %s names, has neither words nor numbers: name another one", file, source.Printable(names[at]), kind.option(""))
		case column(asked, names[at]) >= 0:
			return -1, "", fmt.Errorf("the column %s of %s is named by %s and by another option: name it once", source.Printable(names[at]), file, kind.option(""))
		}
		return at, "", nil
	}
	usual := typeNames
	if kind == edgesTable {
		usual = relationNames
	}
	at = -1
	for i, of := range columns {
		switch {
		case !c.look || column([]string{of.name}, usual...) < 0 || column(asked, of.name) >= 0:
		case of.number:
			// It has been a feature, or left out, since before there were types.
			hint = fmt.Sprintf("%s: the column %s begins with numbers and does not count as %s: give %s if it should.", file, source.Printable(of.name), kind.categories(), kind.option(of.name))
		case of.word && at >= 0:
			return -1, "", fmt.Errorf("%s has %s in the column %s or in %s: name one with %s, or give %s", file, kind.categories(), source.Printable(names[at]), source.Printable(of.name), kind.option(""), kind.option(source.NoColumn))
		case of.word:
			at = i
		}
	}
	if at >= 0 {
		hint = ""
	}
	return at, hint, nil
}

// place finds the columns of a table, of which one may have categories. Nothing else is found there.
func (c categoryColumn) place(file string, kind tableKind, nodes bool, columns []nodeColumn, asked []string) (p placed, err error) {
	at, hint, err := c.find(file, kind, columns, asked)
	if err != nil {
		return p, err
	}
	name := ""
	if at >= 0 {
		columns = slices.Clone(columns)
		name, columns[at].name = columns[at].name, ""
	}
	if nodes {
		p, err = placeNodes(file, kind, columns, asked)
	} else {
		p, err = placeColumns(file, kind, columnNames(columns), asked)
	}
	if at >= 0 {
		p.ignored = slices.DeleteFunc(p.ignored, func(name string) bool { return name == "" })
	}
	clash := err == nil && at >= 0 && slices.Contains(p.id[:kind.ids()], at)
	// Where another column does for the one that is named, an error has another cause.
	others := columnNames(columns)
	asEnds := column(others, sourceNames...) >= 0 && column(others, targetNames...) >= 0
	asIDs := column(others, nodeNames...) >= 0
	switch {
	case c.name != "" && (err != nil || clash) && kind == edgesTable && !asEnds && column([]string{name}, slices.Concat(sourceNames, targetNames)...) >= 0:
		err = fmt.Errorf("%s: the column %s, which %s names, has an end of each edge: name the one that says the relation of each", file, source.Printable(name), kind.option(""))
	case c.name != "" && (err != nil || clash) && kind != edgesTable && !asIDs && column([]string{name}, nodeNames...) >= 0:
		err = fmt.Errorf("%s: the column %s, which %s names, has the names of nodes: name the one that says the type of each", file, source.Printable(name), kind.option(""))
	case clash:
		err = fmt.Errorf("%s has no column called id beside %s, which has the %s: call the column with the names of nodes so", file, source.Printable(name), kind.categories())
	}
	p.category = -1
	if kind == edgesTable || kind == featuresTable {
		p.category, p.hint = at, hint
	}
	return p, err
}

// categoryNotes says where categories are.
func categoryNotes(file string, kind tableKind, name, hint string) (notes []string) {
	if name != "" {
		notes = append(notes, fmt.Sprintf("%s: %s are in the column %s.", file, kind.categories(), source.Printable(name)))
	}
	if hint != "" {
		notes = append(notes, hint)
	}
	return notes
}

// namesOf returns the names of some columns.
func namesOf(names []string, columns []int) (of []string) {
	for _, i := range columns {
		of = append(of, names[i])
	}
	return of
}

// A CategoryError refuses what a column of types, or of relations, holds.
type CategoryError struct {
	error
	Relations bool
}

// NoCategory returns an error of a column of types or relations.
func NoCategory(relations bool, format string, args ...any) error {
	return CategoryError{fmt.Errorf(format, args...), relations}
}

// noCategory is the error of a row without one.
func noCategory(kind tableKind) error {
	return NoCategory(kind == edgesTable, "there is nothing in the column of %s: write one in each row", kind.categories())
}

func (s *csvScan) addCategory(field []byte) error {
	switch {
	case len(field) == 0:
		return s.wrong("%w", noCategory(s.kind))
	case !utf8.Valid(field):
		return s.wrong("the text %s is not UTF-8: save the file as UTF-8", source.Shorten(field))
	}
	s.batch.categories.addText(field)
	return nil
}

func (t *columnTable) fillCategories(b *rowBatch, c *columnar.Values, first uint64) error {
	if len(c.Nulls) > 0 {
		return t.wrong(first+uint64(c.Nulls[0]), "%w", noCategory(t.kind))
	}
	for row := range c.Len() {
		text := c.Show(row)
		switch {
		case len(text) == 0:
			return t.wrong(first+uint64(row), "%w", noCategory(t.kind))
		case !utf8.Valid(text):
			return t.wrong(first+uint64(row), "the text %s is not UTF-8: write it as such", source.Shorten(text))
		}
		b.categories.addText(text)
	}
	return nil
}

// gapOf returns what stands for a feature that is no number: NaN for an empty cell, infinity of a
// word.
func gapOf(field []byte, err error) (float32, bool) {
	switch {
	case len(field) == 0 || strings.EqualFold(string(field), "nan"):
		return float32(math.NaN()), true
	case err != nil && !isNumber(string(field)):
		return float32(math.Inf(1)), true
	}
	return 0, false
}
