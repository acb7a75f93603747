package tabular

import (
	"bytes"
	"errors"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// space separates fields by runs of spaces and tabs.
const space = ' '

var (
	errOpenQuote   = errors.New("a quote is not closed")
	errAfterQuote  = errors.New("text follows a closing quote")
	errBareReturn  = errors.New("there is a carriage return inside a line")
	errUnfinished  = errors.New("the record goes on behind what was read")
	errEmptyRecord = errors.New("an empty line or a comment")
)

// fieldSplitter cuts records into fields, which are valid until the next record.
type fieldSplitter struct {
	delimiter byte
	begun     bool // behind the first record, # and % begin ids, not comments
	fields    [][]byte
	unquoted  []byte
}

// next cuts off the first record of b. It returns how many bytes and how many line
// ends it took. Quotes may hold line ends, so that errUnfinished asks for more of
// the file; last says that there is no more.
func (s *fieldSplitter) next(b []byte, last bool) (n, lineEnds int, err error) {
	line, n := source.CutLine(b)
	if len(bytes.TrimLeft(line, " \t")) == 0 || !s.begun && (line[0] == '#' || line[0] == '%') {
		return n, 1, errEmptyRecord
	}
	s.begun = true
	s.fields = s.fields[:0]
	if bytes.IndexByte(line, '"') < 0 {
		if bytes.IndexByte(line, '\r') >= 0 {
			return n, 1, errBareReturn
		}
		s.split(line)
		return n, 1, nil
	}
	return s.splitQuoted(b, last)
}

func (s *fieldSplitter) split(line []byte) {
	if s.delimiter == space {
		for line = source.Trim(line); ; {
			at := bytes.IndexAny(line, " \t")
			if at < 0 {
				s.fields = append(s.fields, line)
				return
			}
			s.fields = append(s.fields, line[:at])
			line = source.Trim(line[at:])
		}
	}
	for {
		at := bytes.IndexByte(line, s.delimiter)
		if at < 0 {
			s.fields = append(s.fields, source.Trim(line))
			return
		}
		s.fields = append(s.fields, source.Trim(line[:at]))
		line = line[at+1:]
	}
}

// splitQuoted is RFC 4180: two quotes are one, and delimiters and line ends in
// quotes are text. A quote inside a field that does not begin with one is text too.
func (s *fieldSplitter) splitQuoted(b []byte, last bool) (n, lineEnds int, err error) {
	s.unquoted = s.unquoted[:0]
	at := 0
	for {
		for at < len(b) && source.IsBlank(b[at]) && b[at] != s.delimiter || at < len(b) && s.delimiter == space && source.IsBlank(b[at]) {
			at++
		}
		if at < len(b) && b[at] == '"' {
			from := len(s.unquoted)
			for at++; ; at++ {
				if at == len(b) {
					if last {
						return at, lineEnds + 1, errOpenQuote
					}
					return 0, 0, errUnfinished
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
			s.fields = append(s.fields, s.unquoted[from:len(s.unquoted):len(s.unquoted)])
			for at < len(b) && source.IsBlank(b[at]) && b[at] != s.delimiter && s.delimiter != space {
				at++
			}
		} else {
			from := at
			for at < len(b) && b[at] != '\n' && !s.ends(b[at]) {
				at++
			}
			field := source.Trim(b[from:at])
			if len(field) > 0 || s.delimiter != space {
				s.fields = append(s.fields, field)
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
			return at, lineEnds + 1, errAfterQuote
		}
	}
}

func (s *fieldSplitter) ends(c byte) bool {
	return c == s.delimiter || s.delimiter == space && c == '\t'
}
