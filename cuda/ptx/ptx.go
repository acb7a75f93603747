// Package ptx reads from PTX, the text that a GPU's driver compiles, what a launch needs
// and the driver does not check: the names of the kernels, and the size of each of their
// parameters.
package ptx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrText means that a text is not valid PTX.
var ErrText = errors.New("this is no PTX")

// sizes holds the sizes of PTX's types in bytes.
var sizes = map[string]int{
	".b8": 1, ".u8": 1, ".s8": 1,
	".b16": 2, ".u16": 2, ".s16": 2, ".f16": 2,
	".b32": 4, ".u32": 4, ".s32": 4, ".f32": 4, ".f16x2": 4,
	".b64": 8, ".u64": 8, ".s64": 8, ".f64": 8,
}

// Kernels returns the sizes of the parameters of each kernel in the text.
func Kernels(text string) (map[string][]int, error) {
	if strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("%w: it has a zero byte, where the driver would stop reading", ErrText)
	}
	s := scanner{text: text, line: 1}
	kernels := map[string][]int{}
	version := false
	for {
		switch token := s.next(); token {
		case "":
			if !version {
				return nil, fmt.Errorf("%w: it has no .version", ErrText)
			}
			return kernels, nil
		case ".version":
			version = true
		case ".entry":
			name := s.next()
			if !identifier(name) {
				return nil, s.wrong("an .entry without a name")
			}
			if _, twice := kernels[name]; twice {
				return nil, s.wrong("a second .entry " + name)
			}
			list, err := s.parameters()
			if err != nil {
				return nil, fmt.Errorf("kernel %s: %w", name, err)
			}
			kernels[name] = list
		}
	}
}

// parameters reads the list in parentheses after a kernel's name. A kernel without
// parameters may have none.
func (s *scanner) parameters() ([]int, error) {
	before := *s
	if s.next() != "(" {
		*s = before
		return nil, nil
	}
	list := []int{}
	for {
		switch token := s.next(); {
		case token == ")" && len(list) == 0:
			return list, nil
		case token != ".param":
			return nil, s.wrong("a list of parameters with " + strconv.Quote(token) + " in it")
		}
		bytes, err := s.parameter()
		if err != nil {
			return nil, err
		}
		list = append(list, bytes)
		switch s.next() {
		case ",":
		case ")":
			return list, nil
		default:
			return nil, s.wrong("a parameter without an end")
		}
	}
}

// parameter reads what follows .param: attributes, a type, a name, and the length of an
// array.
func (s *scanner) parameter() (int, error) {
	bytes := 0
	for {
		token := s.next()
		switch size, isType := sizes[token]; {
		case isType:
			bytes = size
		case token == ".align":
			s.next()
		case strings.HasPrefix(token, ".") && len(token) > 1: // such as .ptr or .global
		case identifier(token) && bytes > 0:
			before := *s
			if s.next() != "[" {
				*s = before
				return bytes, nil
			}
			n, err := strconv.ParseUint(s.next(), 0, 16)
			if err != nil || s.next() != "]" {
				return 0, s.wrong("an array without a length")
			}
			return bytes * int(n), nil
		default:
			return 0, s.wrong("a parameter without type or name")
		}
	}
}
