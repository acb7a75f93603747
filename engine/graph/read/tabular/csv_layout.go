package tabular

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/records"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A csvLayout describes the columns of a file of lines.
type csvLayout struct {
	delimiter byte
	header    bool
	columns   int // in each row
	id        [2]int
	value     []int // columns of the weight, features, label or splits
	weighs    bool  // the first is the weight of an edge
	text      bool  // an id in the file's head is not an integer
	first     string
	ignored   []string
	digest    string   // what columns is of a tableAbout
	labels    []string // names of the columns of labels
	masks     []string // names of the columns of value, if they are masks
	nodes     []string // notes on a table of nodes
	nodeID    string   // what its header calls the column of ids

	category categoryFound
}

// delimiters, the first of which that cuts each line of a file's head in the same
// way is its delimiter. A semicolon comes before the comma because files that use
// it often write decimal commas.
var delimiters = []byte{'\t', ';', ',', records.Space}

var delimiterNames = map[byte]string{'\t': "tabs", ';': "semicolons", ',': "commas", records.Space: "blanks"}

// layOut finds the layout of a file from its beginning.
func layOut(name string, kind tableKind, nodes bool, asked []string, c categoryColumn, b []byte, last bool) (csvLayout, error) {
	var rows []records.Row
	l := csvLayout{category: categoryFound{column: -1}}
	for _, d := range delimiters {
		if d == records.Space && kind == idsTable {
			continue // ids may have blanks
		}
		r, err := records.Head(b, d, last)
		if err != nil {
			return l, fmt.Errorf("%s, %w", name, err)
		}
		if len(r) == 0 {
			continue
		}
		same := len(r[0].Fields) > 1
		for _, other := range r {
			same = same && len(other.Fields) == len(r[0].Fields)
		}
		if same {
			rows, l.delimiter = r, d
			break
		}
		if len(r[0].Fields) > 1 && rows == nil { // ragged: the row that differs is refused later
			rows, l.delimiter = r, d
		}
	}
	if rows == nil && (nodes || kind == idsTable) {
		// Ids alone: no delimiter is needed.
		rows, _ = records.Head(b, ',', last)
		l.delimiter = ','
	}
	if rows == nil {
		if rows, _ = records.Head(b, ',', last); len(rows) == 0 {
			if last && len(bytes.TrimSpace(b)) > 0 && bytes.IndexByte(b, '"') >= 0 {
				return l, fmt.Errorf("%s: a quote is not closed: close it, or write a quote inside quotes twice", name)
			}
			if line, _ := source.CutLine(b); bytes.IndexByte(line, '\r') >= 0 {
				return l, fmt.Errorf("%s, line 1: there is a carriage return inside the line: end lines with a line feed, or with both", name)
			}
			return l, fmt.Errorf("%s holds no rows: write %s", name, kind.wants())
		}
		return l, fmt.Errorf("%s, line %d: there is only one column: write %s, with commas, tabs, semicolons or blanks between columns", name, rows[0].Line, kind.wants())
	}
	l.columns = len(rows[0].Fields)
	l.first = strings.Join(rows[0].Fields, ",")
	if nodes {
		if l.header = isNodeHeader(rows) || c.name != "" && column(rows[0].Fields, c.name) >= 0; !l.header {
			return l, fmt.Errorf("%s, line %d: there is no header line that says what the columns are: put a line such as id,label,split,age,height first", name, rows[0].Line)
		}
		p, err := c.place(name, kind, true, nodeColumns(rows), asked)
		if err != nil {
			return l, err
		}
		if len(p.value) == 0 && kind != featuresTable {
			return l, errNoColumns
		}
		l.put(kind, p, rows[0].Fields)
		l.nodeID = rows[0].Fields[p.id[0]]
		l.nodes = nodeNotes(name, kind, rows[0].Fields, p)
	} else {
		l.header = isHeader(kind, rows, asked)
		if err := l.place(name, kind, rows, asked, c); err != nil {
			return l, err
		}
	}
	if l.header {
		rows = rows[1:]
	}
	if len(rows) == 0 && last {
		return l, fmt.Errorf("%s holds no rows but its header line: write %s", name, kind.wants())
	}
	for _, r := range rows {
		for _, column := range l.id[:kind.ids()] {
			if column < len(r.Fields) {
				_, ok := source.ParseID([]byte(r.Fields[column]))
				l.text = l.text || !ok && r.Fields[column] != ""
			}
		}
	}
	return l, nil
}

// The names that columns go by, in lower case.
var (
	sourceNames = []string{"src", "source", "from", "u", "src_id", "source_id", "from_id", ":start_id"}
	targetNames = []string{"dst", "target", "to", "v", "dst_id", "target_id", "to_id", ":end_id"}
)

// column returns the first column with one of the names, or -1.
func column(header []string, names ...string) int {
	for i, f := range header {
		for _, name := range names {
			if strings.EqualFold(f, name) {
				return i
			}
		}
	}
	return -1
}

func isNumber(s string) bool {
	_, err := source.ParseFloat([]byte(s))
	return !errors.Is(err, source.ErrNotANumber)
}

// isHeader reports whether the first row names the columns.
func isHeader(kind tableKind, rows []records.Row, asked []string) bool {
	first := rows[0].Fields
	switch kind {
	case edgesTable:
		return column(first, sourceNames...) >= 0 && column(first, targetNames...) >= 0
	case idsTable:
		return column(first, "id") >= 0
	case splitsTable:
		return column(first, "id") >= 0 || len(splitColumns(first)) > 0
	case labelsTable:
		return column(first, "label", "id") >= 0 || column(first, asked...) >= 0 || len(numberedLabels(first)) > 0 || first[0] == "" || namesColumns(rows)
	}
	if column(first, "id") >= 0 || first[0] == "" {
		return true
	}
	for _, f := range first[1:] {
		if f == "" || isNumber(f) {
			return false
		}
	}
	return true
}

// namesColumns reports whether the first row of labels is unlike the others. A word may be
// the name of a class.
func namesColumns(rows []records.Row) bool {
	unlike := func(column int, number func(string) bool) (unlike, known bool) {
		if column >= len(rows[0].Fields) || number(rows[0].Fields[column]) || rows[0].Fields[column] == "" {
			return false, true
		}
		for _, r := range rows[1:] {
			if column < len(r.Fields) && r.Fields[column] != "" {
				if known = true; !number(r.Fields[column]) {
					return false, true
				}
			}
		}
		return true, known
	}
	ids, _ := unlike(0, func(s string) bool { return integers([]string{s}) })
	labels, known := unlike(1, isNumber)
	return ids || labels && known
}

// splitColumns are those called split or split_0, split_1 and so on.
func splitColumns(header []string) []int {
	var found []int
	for i, f := range header {
		if strings.EqualFold(f, "split") || isNumbered(f, "split") {
			found = append(found, i)
		}
	}
	return found
}

// isNumbered reports whether a name is a stem and a number, such as split_0.
func isNumbered(name, stem string) bool {
	digits, ok := strings.CutPrefix(strings.ToLower(name), stem+"_")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func (l *csvLayout) put(kind tableKind, p placed, names []string) {
	l.id, l.value, l.ignored, l.weighs = p.id, p.value, p.ignored, p.weighs
	l.digest, l.labels = digestOf(kind, names, p), labelsOf(kind, names, p)
	if l.category = (categoryFound{column: p.category, hint: p.hint}); p.category >= 0 {
		l.category.name, l.category.features = names[p.category], namesOf(names, p.value)
	}
	if p.masks {
		l.masks = namesOf(names, p.value)
	}
}

// place finds the columns that a table of this kind needs.
func (l *csvLayout) place(name string, kind tableKind, rows []records.Row, asked []string, c categoryColumn) error {
	first := rows[0].Fields
	if l.header {
		if kind != edgesTable { // a row of features may be long
			rows = rows[:1]
		}
		places, err := c.place(name, kind, false, nodeColumns(rows), asked)
		l.put(kind, places, first)
		return err
	}
	l.id = [2]int{0, 1}
	switch kind {
	case idsTable:
		if l.columns > 1 {
			return notOneColumn(fmt.Sprintf("%s, line %d", name, rows[0].Line), l.columns)
		}
	case edgesTable:
		if c.name != "" {
			return fmt.Errorf("%s, line %d: there is no header line that names the columns, and {dataset.relation_column} asks for %s: put a line such as src,dst,%s first", name, rows[0].Line, source.Printable(c.name), source.Printable(c.name))
		}
		if len(asked) > 0 {
			return fmt.Errorf("%s, line %d: there is no header line that names the columns, and {dataset.edge_features} asks for some: put a line such as src,dst,weight,%s first", name, rows[0].Line, source.Printable(asked[0]))
		}
		if l.columns > 3 {
			return fmt.Errorf("%s, line %d: there are %d columns and no header line says what they are: put a line such as src,dst,weight first", name, rows[0].Line, l.columns)
		}
		if len(rows) > 1 && len(rows[1].Fields) > 1 && !integers(first[:2]) && integers(rows[1].Fields[:2]) && !integers(first[:1]) && !integers(first[1:2]) {
			return fmt.Errorf("%s, line %d: the line seems to name columns, but not src and dst: call the columns with the edges' two ends src and dst", name, rows[0].Line)
		}
		if l.columns == 3 {
			l.value, l.weighs = []int{2}, true
		}
	case labelsTable:
		if len(asked) > 0 {
			return fmt.Errorf("%s, line %d: there is no header line that names the columns, and {dataset.label_columns} asks for %s: put a line such as id,%s first", name, rows[0].Line, source.Listed(asked), source.Printable(asked[0]))
		}
		if l.columns > 2 {
			return fmt.Errorf("%s, line %d: there are %d columns and no header line says which are the ids and the labels: put a line with id and label first", name, rows[0].Line, l.columns)
		}
		l.value = []int{1}
	case featuresTable, splitsTable:
		for i := 1; i < l.columns; i++ {
			l.value = append(l.value, i)
		}
	}
	return nil
}

func integers(fields []string) bool {
	for _, f := range fields {
		if _, ok := source.ParseID([]byte(f)); !ok {
			return false
		}
	}
	return true
}

// width returns how many features or splits a row has.
func (l *csvLayout) width() int {
	if l.masks != nil {
		return 1
	}
	return len(l.value)
}

// notes describe how the file was read.
func (l *csvLayout) notes(name string, kind tableKind) []string {
	if l.nodes != nil {
		return append(l.nodes, categoryNotes(name, kind, l.category.name, l.category.hint)...)
	}
	header := "no header line"
	if l.header {
		header = "a header line"
	}
	notes := []string{fmt.Sprintf("%s: %s between columns, %s.", name, delimiterNames[l.delimiter], header)}
	if kind == edgesTable && !l.header && l.text {
		notes = append(notes, fmt.Sprintf("%s: the first row, %s, is taken as an edge; name its columns src and dst if it is a header.", name, source.Shorten([]byte(l.first))))
	}
	if kind == edgesTable && !l.header && len(l.value) == 1 {
		notes = append(notes, fmt.Sprintf("%s: the third column is taken as weights.", name))
	}
	if kind == labelsTable && len(l.value) > 1 {
		notes = append(notes, fmt.Sprintf("%s: labels are in the columns %s.", name, source.Listed(l.labels)))
	}
	notes = append(notes, categoryNotes(name, kind, l.category.name, l.category.hint)...)
	if len(l.ignored) > 0 {
		notes = append(notes, fmt.Sprintf("%s: left out: %s.", name, source.Listed(l.ignored)))
	}
	return notes
}
