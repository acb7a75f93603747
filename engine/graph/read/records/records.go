// Package records cuts text with delimiters into records, and these into fields, as RFC 4180 says.
package records

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Space separates fields by runs of spaces and tabs.
const Space = ' '

// What ends a record otherwise than a line does.
var (
	ErrOpenQuote  = errors.New("a quote is not closed")
	ErrAfterQuote = errors.New("text follows a closing quote")
	ErrBareReturn = errors.New("there is a carriage return inside a line")
	ErrUnfinished = errors.New("the record goes on behind what was read")
	ErrEmpty      = errors.New("an empty line or a comment")
	ErrMany       = fmt.Errorf("there are more than %d columns: make them fewer", MaxFields)
)

// MaxFields bounds the fields of a record. A byte of a file may be one, and each takes the memory of
// a slice.
const MaxFields = source.MaxDenseFeatures + 1<<13 // ids, labels and splits

// Splitter cuts records into fields, which are valid until the next record.
type Splitter struct {
	Delimiter byte
	begun     bool // behind the first record, # and % begin ids, not comments
	Fields    [][]byte
	unquoted  []byte
}

// Next cuts off the first record of b. It returns how many bytes and how many line
// ends it took. Quotes may hold line ends, so that ErrUnfinished asks for more of
// the file; last says that there is no more.
func (s *Splitter) Next(b []byte, last bool) (n, lineEnds int, err error) {
	line, n := source.CutLine(b)
	if len(bytes.TrimLeft(line, " \t")) == 0 || !s.begun && (line[0] == '#' || line[0] == '%') {
		return n, 1, ErrEmpty
	}
	s.begun = true
	s.Fields = s.Fields[:0]
	if bytes.IndexByte(line, '"') < 0 {
		if bytes.IndexByte(line, '\r') >= 0 {
			return n, 1, ErrBareReturn
		}
		return n, 1, s.split(line)
	}
	return s.splitQuoted(b, last)
}

func (s *Splitter) split(line []byte) error {
	if s.Delimiter == Space {
		for line = source.Trim(line); len(s.Fields) < MaxFields; {
			at := bytes.IndexAny(line, " \t")
			if at < 0 {
				s.Fields = append(s.Fields, line)
				return nil
			}
			s.Fields = append(s.Fields, line[:at])
			line = source.Trim(line[at:])
		}
		return ErrMany
	}
	for len(s.Fields) < MaxFields {
		at := bytes.IndexByte(line, s.Delimiter)
		if at < 0 {
			s.Fields = append(s.Fields, source.Trim(line))
			return nil
		}
		s.Fields = append(s.Fields, source.Trim(line[:at]))
		line = line[at+1:]
	}
	return ErrMany
}

// splitQuoted is RFC 4180: two quotes are one, and delimiters and line ends in
// quotes are text. A quote inside a field that does not begin with one is text too.
func (s *Splitter) splitQuoted(b []byte, last bool) (n, lineEnds int, err error) {
	s.unquoted = s.unquoted[:0]
	at := 0
	for {
		if len(s.Fields) == MaxFields {
			return 0, lineEnds, ErrMany
		}
		for at < len(b) && source.IsBlank(b[at]) && b[at] != s.Delimiter || at < len(b) && s.Delimiter == Space && source.IsBlank(b[at]) {
			at++
		}
		if at < len(b) && b[at] == '"' {
			from := len(s.unquoted)
			for at++; ; at++ {
				if at == len(b) {
					if last {
						return at, lineEnds + 1, ErrOpenQuote
					}
					return 0, 0, ErrUnfinished
				}
				if b[at] == '"' {
					if at+1 < len(b) && b[at+1] == '"' {
						at++
					} else {
						break
					}
				}
				if b[at] == '\n' {
					lineEnds++
				}
				s.unquoted = append(s.unquoted, b[at])
			}
			at++
			// A later field may move unquoted; this one keeps the old memory.
			s.Fields = append(s.Fields, s.unquoted[from:len(s.unquoted):len(s.unquoted)])
			for at < len(b) && source.IsBlank(b[at]) && b[at] != s.Delimiter && s.Delimiter != Space {
				at++
			}
		} else {
			from := at
			for at < len(b) && b[at] != '\n' && !s.ends(b[at]) {
				at++
			}
			field := source.Trim(b[from:at])
			if len(field) > 0 || s.Delimiter != Space {
				s.Fields = append(s.Fields, field)
			}
		}
		if at < len(b) && b[at] == '\r' && (at+1 == len(b) || b[at+1] == '\n') {
			at++
		}
		switch {
		case at >= len(b):
			return at, lineEnds + 1, nil
		case b[at] == '\n':
			return at + 1, lineEnds + 1, nil
		case s.ends(b[at]):
			at++
		default:
			return at, lineEnds + 1, ErrAfterQuote
		}
	}
}

func (s *Splitter) ends(c byte) bool {
	return c == s.Delimiter || s.Delimiter == Space && c == '\t'
}

// HeadRows is how many rows a file's head has at most.
const HeadRows = 50

// A Row is a record of a file's head, and its line.
type Row struct {
	Fields []string
	Line   uint64
}

// Head cuts the first records off a file that begins with b. A record that is cut off is left out,
// and rows end where their fields, together, are more than MaxFields.
func Head(b []byte, delimiter byte, last bool) (rows []Row, err error) {
	s := Splitter{Delimiter: delimiter}
	line, fields := uint64(1), 0
	for len(b) > 0 && len(rows) < HeadRows && fields < MaxFields {
		n, ends, err := s.Next(b, last)
		switch {
		case err == nil:
			r := Row{Line: line}
			for _, f := range s.Fields {
				r.Fields = append(r.Fields, string(f))
			}
			rows, fields = append(rows, r), fields+len(r.Fields)
		case errors.Is(err, ErrMany) && len(rows) == 0:
			return nil, fmt.Errorf("line %d: %w", line, err)
		case !errors.Is(err, ErrEmpty):
			return rows, nil
		}
		b, line = b[n:], line+uint64(ends)
	}
	return rows, nil
}
