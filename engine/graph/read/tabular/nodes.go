package tabular

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/records"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A table of nodes has all that is known of a vertex in one row, under a header line that
// says what the columns are. It is read as up to three tables: of features, which also
// names the vertices, of labels and of splits.

// The names that columns of nodes go by, in lower case.
var (
	nodeNames  = []string{"id", "node", "node_id", "nodeid", "vertex", "vertex_id", "vertexid", ":id"}
	classNames = []string{"label", "class", "y"}
	maskNames  = [...]string{graph.Train: "train_mask", graph.Validation: "val_mask", graph.Test: "test_mask"}
)

// A nodeColumn is a column of nodes, by what its first rows hold.
type nodeColumn struct {
	name   string
	number bool
	list   bool // of numbers
	word   bool
}

func columnNames(columns []nodeColumn) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// placeNodes finds what a table of nodes has for one kind of table. Without columns of
// that kind, value is empty. asked are the names of the columns of labels.
func placeNodes(file string, kind tableKind, columns []nodeColumn, asked []string) (p placed, err error) {
	names := columnNames(columns)
	p.id[0] = max(column(names, "id"), 0)
	if p.id[0] == 0 {
		p.id[0] = max(column(names, nodeNames...), 0)
	}
	labels := usualLabels(names, classNames...)
	if len(asked) > 0 {
		if labels, err = findLabels(file, names, asked); err != nil && kind == labelsTable {
			return p, err
		}
	}
	if err := tooMany(file, labels); err != nil {
		return p, err
	}
	splits := splitColumns(names)
	if len(asked) > 0 && slices.Contains(labels, p.id[0]) {
		return p, isID(names[p.id[0]], file)
	}
	if slices.Contains(labels, p.id[0]) || slices.Contains(splits, p.id[0]) || slices.Contains(maskNames[graph.Train:], strings.ToLower(names[p.id[0]])) {
		return p, fmt.Errorf("%s has no column called id among %s: call the column with the names of nodes so", file, source.Listed(names))
	}
	if a, b := twice(columns, labels, len(asked) > 0); b >= 0 {
		return p, fmt.Errorf("%s has both %s and %s: leave one of them, or give it another name", file, source.Printable(names[a]), source.Printable(names[b]))
	}
	var masks []int
	for _, mask := range maskNames[graph.Train:] {
		if i := column(names, mask); i >= 0 {
			masks = append(masks, i)
		}
	}
	if len(splits) > 0 && len(masks) > 0 {
		return p, fmt.Errorf("%s has both %s and %s: leave one of them", file, names[splits[0]], names[masks[0]])
	}
	if len(splits) > maxSplits {
		return p, tooManySplits(file, len(splits))
	}
	switch kind {
	case labelsTable:
		p.value = labels
	case splitsTable:
		if p.value = splits; len(masks) > 0 {
			p.value, p.masks = masks, true
		}
	case featuresTable:
		taken := marked(len(columns), p.id[:1], labels, splits, masks)
		for i, c := range columns {
			switch {
			case taken[i]:
			case isIndex(c.name): // not of the vertex, but of the row
			case isLabel(c.name): // another one than those that are asked for
				p.ignored = append(p.ignored, c.name)
			case c.number || c.list:
				p.value = append(p.value, i)
			default:
				p.ignored = append(p.ignored, c.name)
			}
		}
	}
	return p, nil
}

// isIndex reports whether a column has the numbers of rows that pandas adds, under no name
// in a file of lines.
func isIndex(name string) bool { return name == "" || name == pandasIndex }

// twice returns two columns of nodes that claim to be the same, of which one would be taken
// for a feature: the answer that a model is to find would be among what it is given. Where
// columns of labels are asked for, others are left out.
func twice(columns []nodeColumn, labels []int, asked bool) (a, b int) {
	first := make(map[string]int, len(columns))
	for i, c := range columns {
		if name := strings.ToLower(c.name); !isIndex(c.name) {
			if j, known := first[name]; known {
				return j, i
			}
			first[name] = i
		}
		if !asked && !slices.Contains(labels, i) && c.number && isLabel(c.name) {
			return labels[0], i
		}
	}
	return 0, -1
}

// nodeNotes says what the columns of nodes were taken for, once for all kinds of tables.
func nodeNotes(file string, kind tableKind, names []string, p placed) []string {
	var about string
	switch {
	case kind == featuresTable:
		about = fmt.Sprintf("%s: ids are in the column %s", file, source.Printable(names[p.id[0]]))
		if len(p.value) > 0 {
			about += ", features in " + source.Listed(namesOf(names, p.value))
		}
	case p.masks:
		about = file + ": the split is in the masks"
	default:
		about = fmt.Sprintf("%s: %s are in the %s", file, kind, inColumns(names, p.value))
	}
	notes := []string{about + "."}
	if len(p.ignored) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not taken as features: %s.", file, source.Listed(p.ignored)))
	}
	return notes
}

// isNodeHeader reports whether the first row of nodes names their columns.
func isNodeHeader(rows []records.Row) bool {
	first := rows[0].Fields
	if column(first, slices.Concat(nodeNames, classNames, maskNames[graph.Train:])...) >= 0 || len(numberedLabels(first)) > 0 || len(splitColumns(first)) > 0 {
		return true
	}
	return !integers(first[:1]) && !slices.ContainsFunc(first[1:], func(f string) bool { return f == "" || isNumber(f) })
}

// nodeColumns describes the columns of a file of lines by its first rows.
func nodeColumns(rows []records.Row) []nodeColumn {
	columns := make([]nodeColumn, len(rows[0].Fields))
	for i := range columns {
		columns[i] = nodeColumn{name: rows[0].Fields[i], number: len(rows) > 1}
		for _, r := range rows[1:] {
			columns[i].number = columns[i].number && i < len(r.Fields) && (r.Fields[i] == "" || isNumber(r.Fields[i]))
		}
		columns[i].word = !columns[i].number
	}
	return columns
}

// maskedPart returns the part of a split that a vertex is in by its masks. The names of
// the masks say which part each is.
func maskedPart(names []string, set func(mask int) (bool, error)) (part graph.Mark, err error) {
	for i, name := range names {
		in, err := set(i)
		if err != nil || !in {
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		if part != graph.Unmarked {
			return 0, fmt.Errorf("the node is in %s and in %s: take it out of one", maskNames[part], strings.ToLower(name))
		}
		for mark, mask := range maskNames {
			if strings.EqualFold(name, mask) {
				part = graph.Mark(mark)
			}
		}
	}
	return part, nil
}

// parseMask reads whether a vertex is in a mask.
func parseMask(b []byte) (bool, error) {
	switch strings.ToLower(string(b)) {
	case "true", "1", "1.0", "yes", "t":
		return true, nil
	case "", "false", "0", "0.0", "no", "f":
		return false, nil
	}
	return false, fmt.Errorf("%s is neither true nor false: write one of them", source.Shorten(b))
}
