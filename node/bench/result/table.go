package result

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// A Table is rows of cells below a head.
type Table struct {
	Title string // a heading above it, or ""
	Head  []string
	Rows  [][]string
}

// Add appends a row. Cells that are no strings are written as fmt.Sprint does.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.Rows = append(t.Rows, row)
}

// Text prints the table for a terminal: aligned columns, the head in capitals.
func (t *Table) Text(to io.Writer) error {
	var s strings.Builder
	if t.Title != "" {
		s.WriteString(t.Title + ":\n\n")
	}
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.ToUpper(strings.Join(t.Head, "\t")))
	for _, row := range t.Rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a builder takes everything
	for line := range strings.Lines(s.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Markdown prints the table for a document. Columns are padded, so that the source can
// be read too.
func (t *Table) Markdown(to io.Writer) error {
	if t.Title != "" {
		if _, err := fmt.Fprintf(to, "## %s\n\n", t.Title); err != nil {
			return err
		}
	}
	return t.markdownRows(to)
}

// markdownRows prints the table without its title.
func (t *Table) markdownRows(to io.Writer) error {
	wide := make([]int, len(t.Head))
	rows := append([][]string{t.Head}, t.Rows...)
	for r, row := range rows {
		rows[r] = make([]string, len(wide))
		for c := range min(len(row), len(wide)) {
			rows[r][c] = strings.ReplaceAll(row[c], "|", `\|`)
			wide[c] = max(wide[c], utf8.RuneCountInString(rows[r][c]))
		}
	}
	var s strings.Builder
	for r, row := range rows {
		s.WriteByte('|')
		for c, cell := range row {
			s.WriteString(" " + cell + strings.Repeat(" ", wide[c]-utf8.RuneCountInString(cell)) + " |")
		}
		s.WriteByte('\n')
		if r == 0 {
			s.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	_, err := io.WriteString(to, s.String())
	return err
}
