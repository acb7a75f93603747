package records

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// record is what Next makes of the front of a text.
type record struct {
	fields   []string
	n, lines int
	err      error
}

func next(s *Splitter, text string, last bool) (r record) {
	r.n, r.lines, r.err = s.Next([]byte(text), last)
	if r.err == nil {
		for _, f := range s.Fields {
			r.fields = append(r.fields, string(f))
		}
	}
	return r
}

// What fields are, with each delimiter.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		delimiter byte
		text      string
		want      []string
	}{
		{',', "1,2,3\nx", []string{"1", "2", "3"}},
		{',', " 1\t, 2 ,3 \r\nx", []string{"1", "2", "3"}},
		{',', ",,\nx", []string{"", "", ""}},
		{',', "1", []string{"1"}},
		{',', `"a,b","c ""d""", e f ` + "\nx", []string{"a,b", `c "d"`, "e f"}},
		{',', ` " a " ,b` + "\r\nx", []string{" a ", "b"}}, // blanks in quotes are text
		{',', `"",""` + "\nx", []string{"", ""}},
		{',', `"a",` + "\nx", []string{"a", ""}},
		{',', `say "yes",b` + "\nx", []string{`say "yes"`, "b"}}, // a field that begins with no quote
		{',', "\"a\nb\n\",c\nx", []string{"a\nb\n", "c"}},
		{',', `"1"`, []string{"1"}},
		{';', "1,5;2\nx", []string{"1,5", "2"}},
		{'\t', "a b\t\tc\nx", []string{"a b", "", "c"}},
		{'\t', "\"a\tb\"\t c\nx", []string{"a\tb", "c"}},
		{Space, "  1  2\t3 \nx", []string{"1", "2", "3"}},
		{Space, ` "a b" ` + "\t" + `c  "d"` + " \nx", []string{"a b", "c", "d"}},
	} {
		got := next(&Splitter{Delimiter: c.delimiter}, c.text, true)
		length, lines := strings.LastIndexByte(c.text, '\n')+1, max(1, strings.Count(c.text, "\n"))
		if length == 0 {
			length = len(c.text)
		}
		if got.err != nil || !slices.Equal(got.fields, c.want) || got.n != length || got.lines != lines {
			t.Errorf("%q is %q: %+v", c.text, c.want, got)
		}
	}
}

// Records that are wrong, and records whose end has not come yet.
func TestNoRecord(t *testing.T) {
	for _, c := range []struct {
		text     string
		last     bool
		err      error
		n, lines int
	}{
		{"\nx", true, ErrEmpty, 1, 1},
		{" \t\r\nx", true, ErrEmpty, 4, 1},
		{"# a,\"b\nx", true, ErrEmpty, 7, 1},
		{"% a\nx", true, ErrEmpty, 4, 1},
		{"a\rb,c\nx", true, ErrBareReturn, 6, 1},
		{"\"a\nb\n", true, ErrOpenQuote, 5, 3},
		{"\"a\nb\n", false, ErrUnfinished, 0, 0},
		{"\"a\"b,c\nx", true, ErrAfterQuote, 3, 1},
		{"\"a\nb\"c\nx", true, ErrAfterQuote, 5, 2},
	} {
		s := &Splitter{Delimiter: ','}
		if got := next(s, c.text, c.last); !errors.Is(got.err, c.err) || got.n != c.n || got.lines != c.lines {
			t.Errorf("%q: %+v, and not %v after %d bytes, %d lines", c.text, got, c.err, c.n, c.lines)
		}
	}
}

// A record has no more fields than may be kept, and what is read of a file's head not many more.
func TestManyFields(t *testing.T) {
	for _, delimiter := range []byte{',', Space} {
		for name, field := range map[string]string{"plain": "1", "quoted": `"1"`} {
			most := strings.Repeat(field+string(delimiter), MaxFields-1) + field
			s := &Splitter{Delimiter: delimiter}
			if got := next(s, most, true); got.err != nil || len(got.fields) != MaxFields {
				t.Errorf("%s, %q: %d fields, %v", name, delimiter, len(got.fields), got.err)
			}
			more := most + string(delimiter) + field
			if got := next(s, more, true); !errors.Is(got.err, ErrMany) || len(s.Fields) > MaxFields {
				t.Errorf("%s, %q: %d fields, %v", name, delimiter, len(s.Fields), got.err)
			}
			if _, err := Head([]byte(more), delimiter, true); !errors.Is(err, ErrMany) || err.Error() != "line 1: there are more than 1056768 columns: make them fewer" {
				t.Error(err)
			}
			if rows, err := Head([]byte(most+"\n"+most), delimiter, true); err != nil || len(rows) != 1 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		}
	}
}

// Lines that begin as comments do are records behind the first one.
func TestCommentsStandInFront(t *testing.T) {
	s := &Splitter{Delimiter: ','}
	for _, c := range []struct {
		text string
		want []string
	}{{"# one\n", nil}, {"\n", nil}, {"a,b\n", []string{"a", "b"}}, {"#1,2\n", []string{"#1", "2"}}, {"%,3\n", []string{"%", "3"}}, {"\n", nil}} {
		got := next(s, c.text, true)
		if (c.want == nil) != errors.Is(got.err, ErrEmpty) || !slices.Equal(got.fields, c.want) {
			t.Errorf("%q is %+v", c.text, got)
		}
	}
}

// Text comes back as it was written, however much of the file is read at a time.
func TestWrittenTextComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, delimiter := range []byte{',', ';', '\t', Space} {
		var all [][]string
		var text bytes.Buffer
		for range 500 {
			var fields []string
			for i := range 1 + r.IntN(5) {
				field := make([]byte, r.IntN(6))
				for j := range field {
					field[j] = "ab\"\n,; \t#"[r.IntN(9)]
				}
				if fields = append(fields, string(field)); i > 0 {
					text.WriteByte(delimiter)
				}
				text.WriteString(`"` + strings.ReplaceAll(string(field), `"`, `""`) + `"`)
			}
			text.WriteByte('\n')
			all = append(all, fields)
		}
		s, rest, lines := &Splitter{Delimiter: delimiter}, text.Bytes(), 0
		for i, want := range all {
			// As many lines more each time, until the record ends.
			end, got := 0, record{err: ErrUnfinished}
			for errors.Is(got.err, ErrUnfinished) {
				end += bytes.IndexByte(rest[end:], '\n') + 1
				got = next(s, string(rest[:end]), end == len(rest))
			}
			if got.err != nil || got.n != end || !slices.Equal(got.fields, want) {
				t.Fatalf("%q, record %d: %q of %d bytes (%v), and not %q of %d", delimiter, i, got.fields, got.n, got.err, want, end)
			}
			rest, lines = rest[end:], lines+got.lines
		}
		if want := bytes.Count(text.Bytes(), []byte{'\n'}); len(rest) > 0 || lines != want {
			t.Errorf("%q: %d bytes are left, and %d lines were counted of %d", delimiter, len(rest), lines, want)
		}
	}
}

// Records are cut in the memory of earlier ones.
func TestRecordsTakeNoMemory(t *testing.T) {
	for name, text := range map[string]string{"plain": "12,34,56\n", "quoted": "\"1\"\"2\",34,\"5\n6\"\n"} {
		b, s := []byte(text), &Splitter{Delimiter: ','}
		cut := func() {
			if n, _, err := s.Next(b, true); err != nil || n != len(b) {
				t.Fatalf("%s: %d bytes, %v", name, n, err)
			}
		}
		if cut(); testing.AllocsPerRun(100, cut) != 0 {
			t.Errorf("%s: a record allocates memory", name)
		}
	}
}

// FuzzRecords holds that each record takes some of the text, that fields are no longer than it, and
// that more text behind a record does not change it.
func FuzzRecords(f *testing.F) {
	for _, text := range []string{"a,b\n\"c\n\",d\n", "\"a\"b\n", "#x\n1 2\r\n", "\"\"\"\"\n\"", "a\rb\n\r\n,\n"} {
		f.Add([]byte(text), byte(','))
		f.Add([]byte(text), byte(Space))
	}
	f.Fuzz(func(t *testing.T, text []byte, delimiter byte) {
		if !slices.Contains([]byte{',', ';', '\t', Space}, delimiter) {
			return
		}
		s, again := &Splitter{Delimiter: delimiter}, &Splitter{Delimiter: delimiter}
		for rest := text; len(rest) > 0; {
			again.begun = s.begun
			got := next(s, string(rest), true)
			size := 0
			for _, field := range got.fields {
				size += len(field)
			}
			if got.n < 1 || got.n > len(rest) || got.lines < 1 || size > got.n {
				t.Fatalf("%q: %+v", rest, got)
			}
			if part := rest[:got.n]; got.err == nil && part[len(part)-1] == '\n' {
				alone := next(again, string(part), false)
				if alone.err != nil || alone.n != got.n || alone.lines != got.lines || !slices.Equal(alone.fields, got.fields) {
					t.Fatalf("%q alone is %+v, and else %+v", part, alone, got)
				}
			}
			rest = rest[got.n:]
		}
	})
}
