// Package output shows results: text, tables, JSON, numbers, jobs, and progress.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// JSON prints a value as one indented JSON document.
func JSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// JSONLine prints a value as one line of JSON.
func JSONLine(w io.Writer, v any) error { return printJSON(w, v, "") }

func printJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	// The encoder escapes the control characters below the space and leaves the others, some
	// of which begin commands to a terminal. They can only be in strings.
	var out strings.Builder
	for _, r := range b.String() {
		if r >= 0x7f && r <= 0x9f {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Table prints rows of cells in aligned columns.
func Table(w io.Writer, rows ...[]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Cell(c)
		}
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Cell returns text without control characters, so that text of other machines can't control the
// terminal, and "-" for "".
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Lines is Cell for text of several lines.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = Cell(strings.ReplaceAll(l, "\t", "    "))
		}
	}
	return strings.Join(lines, "\n")
}

// Plain returns a writer to w of texts that come from elsewhere, as Lines. Each Write has whole
// characters.
func Plain(w io.Writer) io.Writer { return plain{w} }

type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, Lines(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sentence returns text with a capital and a full stop.
func Sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	first, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[n:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return Cell(s)
}

// YesNo returns yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Moment returns a time as text, and "never" for nil.
func Moment(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.RFC3339)
}
