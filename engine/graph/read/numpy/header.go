package numpy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"
)

// Header describes an array in NumPy's format. Its numbers begin after Length bytes.
type Header struct {
	DType
	Fortran bool // columns lie one after another
	Shape   []uint64
	Length  int
	descr   string
}

// maxNPYHeader bounds a header. That of a plain array has less than a hundred bytes.
const maxNPYHeader = 64 << 10

var errNPY = errors.New("it does not begin as NumPy's arrays do")

// ReadHeader reads the beginning of an array of numbers.
func ReadHeader(r io.Reader) (Header, error) {
	h, err := ReadAnyHeader(r)
	if err == nil && h.Text() {
		_, err = ParseDType(h.descr)
	}
	return h, err
}

// ReadAnyHeader is ReadHeader of an array of numbers or of text.
func ReadAnyHeader(r io.Reader) (Header, error) {
	var h Header
	var fixed [12]byte
	if _, err := io.ReadFull(r, fixed[:8]); err != nil {
		return h, ReadError{CutShort(err)}
	}
	if string(fixed[:6]) != "\x93NUMPY" {
		return h, errNPY
	}
	var size int
	switch major := fixed[6]; major {
	case 1:
		if _, err := io.ReadFull(r, fixed[8:10]); err != nil {
			return h, ReadError{CutShort(err)}
		}
		size = int(binary.LittleEndian.Uint16(fixed[8:]))
		h.Length = 10 + size
	case 2, 3:
		if _, err := io.ReadFull(r, fixed[8:12]); err != nil {
			return h, ReadError{CutShort(err)}
		}
		size = int(binary.LittleEndian.Uint32(fixed[8:]))
		h.Length = 12 + size
	default:
		return h, fmt.Errorf("its format has version %d, and 1, 2 and 3 are known", major)
	}
	if size > maxNPYHeader {
		return h, fmt.Errorf("its header claims %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, ReadError{CutShort(err)}
	}
	return h, h.parse(string(text))
}

// ReadError is an error in reading, not in what was read.
type ReadError struct{ error }

func (f ReadError) Unwrap() error { return f.error }

// CutShort turns io.EOF into io.ErrUnexpectedEOF.
func CutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parse reads the header's text, a literal dict of Python.
func (h *Header) parse(text string) error {
	l := literal{rest: strings.TrimRight(text, " \n\x00")}
	if !l.take('{') {
		return errNPYHeader
	}
	var descr, order, shape bool
	for !l.take('}') {
		key, ok := l.text()
		if !ok || !l.take(':') {
			return errNPYHeader
		}
		switch key {
		case "descr":
			if l.peek() == '[' {
				return errors.New("it holds records of several fields, and only plain numbers can be taken")
			}
			if h.descr, descr = l.text(); !descr {
				return errNPYHeader
			}
			var err error
			if h.DType, descr = parseText(h.descr); descr {
				break
			}
			descr = true
			if h.DType, err = ParseDType(h.descr); err != nil {
				return err
			}
		case "fortran_order":
			word := l.word()
			h.Fortran, order = word == "True", word == "True" || word == "False"
		case "shape":
			if h.Shape, shape = l.tuple(); !shape {
				return errNPYHeader
			}
		default:
			return errNPYHeader
		}
		if !l.take(',') && l.peek() != '}' {
			return errNPYHeader
		}
	}
	if !descr || !order || !shape || strings.TrimSpace(l.rest) != "" {
		return errNPYHeader
	}
	if n, ok := h.Count(); !ok || n > 1<<62/uint64(h.Size) {
		return errors.New("its header claims more numbers than there can be")
	}
	return nil
}

var errNPYHeader = errors.New("its header is damaged")

// Count returns how many numbers the array has, if that and their bytes fit in an
// int64.
func (h *Header) Count() (uint64, bool) {
	n := uint64(1)
	for _, d := range h.Shape {
		if d == 0 {
			return 0, true
		}
		high, low := bits.Mul64(n, d)
		if high != 0 || low > 1<<59 {
			return 0, false
		}
		n = low
	}
	return n, true
}

// literal parses Python's literals.
type literal struct{ rest string }

func (l *literal) peek() byte {
	l.rest = strings.TrimLeft(l.rest, " \n\t")
	if l.rest == "" {
		return 0
	}
	return l.rest[0]
}

func (l *literal) take(c byte) bool {
	if l.peek() != c {
		return false
	}
	l.rest = l.rest[1:]
	return true
}

// text reads a string without escapes.
func (l *literal) text() (string, bool) {
	quote := l.peek()
	if quote != '\'' && quote != '"' {
		return "", false
	}
	s, rest, ok := strings.Cut(l.rest[1:], string(quote))
	if !ok || strings.Contains(s, `\`) {
		return "", false
	}
	l.rest = rest
	return s, true
}

func (l *literal) word() string {
	l.peek()
	n := 0
	for n < len(l.rest) && (l.rest[n] >= 'a' && l.rest[n] <= 'z' || l.rest[n] >= 'A' && l.rest[n] <= 'Z' || l.rest[n] >= '0' && l.rest[n] <= '9') {
		n++
	}
	w := l.rest[:n]
	l.rest = l.rest[n:]
	return w
}

// tuple reads a tuple of sizes. Python 2 writes them as 3L.
func (l *literal) tuple() ([]uint64, bool) {
	const most = 32
	sizes := []uint64{}
	if !l.take('(') {
		return nil, false
	}
	for !l.take(')') {
		v, err := strconv.ParseUint(strings.TrimSuffix(l.word(), "L"), 10, 63)
		if err != nil || len(sizes) == most {
			return nil, false
		}
		sizes = append(sizes, v)
		if !l.take(',') && l.peek() != ')' {
			return nil, false
		}
	}
	return sizes, true
}
