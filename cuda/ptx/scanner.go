package ptx

import (
	"fmt"
	"strings"
)

// scanner splits a text into words, signs and strings, without comments.
type scanner struct {
	text string
	line int
}

func (s *scanner) wrong(what string) error {
	return fmt.Errorf("%w: line %d: %s", ErrText, s.line, what)
}

// skip drops n bytes.
func (s *scanner) skip(n int) {
	s.line += strings.Count(s.text[:n], "\n")
	s.text = s.text[n:]
}

// next returns the next token, or "" at the end.
func (s *scanner) next() string {
	for s.text != "" {
		switch {
		case strings.ContainsRune(" \t\r\n", rune(s.text[0])):
			s.skip(1)
		case strings.HasPrefix(s.text, "//"):
			s.skip(until(s.text, "\n"))
		case strings.HasPrefix(s.text, "/*"):
			s.skip(2)
			s.skip(until(s.text, "*/"))
		default:
			n := length(s.text)
			token := s.text[:n]
			s.skip(n)
			return token
		}
	}
	return ""
}

// until returns the index after the first occurrence of end, or the text's length.
func until(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// length returns the length of the first token of text.
func length(text string) int {
	if text[0] == '"' {
		return 1 + until(text[1:], `"`)
	}
	for i := range len(text) {
		if !within(text[i]) && (i > 0 || text[i] != '.') {
			return max(i, 1)
		}
	}
	return len(text)
}

func within(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '$' || c == '%'
}

func identifier(token string) bool {
	return token != "" && within(token[0]) && (token[0] < '0' || token[0] > '9')
}
