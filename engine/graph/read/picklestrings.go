package read

import (
	"strconv"
	"unicode/utf8"
)

// unquote reads a string as Python 2 prints it: in quotes, with escapes. It returns
// nil if it is none.
func unquote(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\r' || b[len(b)-1] == ' ') {
		b = b[:len(b)-1]
	}
	if len(b) < 2 || b[0] != '\'' && b[0] != '"' || b[len(b)-1] != b[0] {
		return nil
	}
	b = b[1 : len(b)-1]
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		if i++; i == len(b) {
			return nil
		}
		switch c := b[i]; c {
		case 'x':
			if i+2 >= len(b) {
				return nil
			}
			v, err := strconv.ParseUint(string(b[i+1:i+3]), 16, 8)
			if err != nil {
				return nil
			}
			out = append(out, byte(v))
			i += 2
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case '\\', '\'', '"':
			out = append(out, c)
		default:
			return nil
		}
	}
	return out
}

// unescapeText reads text as Python writes it in lines: Latin-1 with \u and \U.
func unescapeText(b []byte) (string, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		digits := 0
		if b[i] == '\\' && i+1 < len(b) {
			switch b[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits == 0 {
			out = utf8.AppendRune(out, rune(b[i]))
			continue
		}
		if i+2+digits > len(b) {
			return "", false
		}
		v, err := strconv.ParseUint(string(b[i+2:i+2+digits]), 16, 32)
		if err != nil || v > utf8.MaxRune {
			return "", false
		}
		out = utf8.AppendRune(out, rune(v))
		i += 1 + digits
	}
	return string(out), true
}

// latin1 turns text into the bytes that it stands for in Python 3's pickles for
// Python 2.
func latin1(s pyText) (pyBytes, bool) {
	out := make(pyBytes, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return nil, false
		}
		out = append(out, byte(r))
	}
	return out, true
}
