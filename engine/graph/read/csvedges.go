package read

import "bytes"

// fast says whether what comes next are edges laid out plainly enough for
// fastEdges: integers in the first two columns, and at most a weight behind them.
func (s *csvScan) fast() bool {
	l := &s.layout
	return s.kind == edgesTable && !s.text && !s.skip && l.id == [2]int{0, 1} && l.columns == 2+len(l.value)
}

// fastEdges takes edges until the batch is full, the lines are at their end, or a
// line is not as plain as it expects; that one it leaves to record, which says what
// is wrong if something is.
func (s *csvScan) fastEdges() {
	b, delimiter := s.cur, s.layout.delimiter
	src, dst := s.batch.ids[0].ints, s.batch.ids[1].ints
	weighted := len(s.layout.value) == 1
	at := 0
	room := 1<<15 - s.batch.n
	for ; room > 0; room-- {
		v, i := plainInteger(b, at)
		if i >= len(b) || b[i] != delimiter {
			break
		}
		w, i := plainInteger(b, i+1)
		if i >= len(b) {
			break
		}
		if weighted {
			if b[i] != delimiter {
				break
			}
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				break
			}
			end += i
			field := bytes.TrimSuffix(b[i+1:end], []byte{'\r'})
			if !plainField(field, delimiter) {
				break
			}
			if !s.idsOnly {
				f, err := parseFloat(field)
				if err != nil {
					break
				}
				s.batch.floats = append(s.batch.floats, f)
			}
			i = end
		} else if b[i] == '\r' {
			i++
		}
		if i >= len(b) || b[i] != '\n' {
			break
		}
		src, dst = append(src, v), append(dst, w)
		at = i + 1
		s.line++
	}
	s.batch.ids[0].ints, s.batch.ids[1].ints = src, dst
	s.batch.n = len(src)
	s.cur = b[at:]
}

// plainInteger reads an integer of up to 18 digits that is written as parseID wants
// it, and returns where it ends. What is not one ends at len(b), where no delimiter
// follows.
func plainInteger(b []byte, at int) (int64, int) {
	from := at
	negative := at < len(b) && b[at] == '-'
	if negative {
		at++
		from++
	}
	var v int64
	for ; at < len(b); at++ {
		c := b[at] - '0'
		if c > 9 {
			break
		}
		v = v*10 + int64(c)
	}
	if n := at - from; n == 0 || n > 18 || b[from] == '0' && (n > 1 || negative) {
		return 0, len(b)
	}
	if negative {
		v = -v
	}
	return v, at
}

// plainField says whether a last field stands alone and unquoted.
func plainField(field []byte, delimiter byte) bool {
	for _, c := range field {
		if c == delimiter || blank(c) || c == '"' {
			return false
		}
	}
	return len(field) > 0
}
