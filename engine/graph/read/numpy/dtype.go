// Package numpy reads NumPy's numbers and the headers of its arrays, as they lie in
// .npy files and in pickles. It allocates nothing that a header claims.
package numpy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// DType describes how NumPy stores an element: its kind as in descr (b, i, u or f; of
// text, U or S) and its size in bytes.
type DType struct {
	Kind byte
	Size int
	Big  bool // most significant byte first
}

var ErrObjects = errors.New("it holds Python objects, which only Python can take apart")

// parseText reads descr of text, such as <U12. Such elements have no number.
func parseText(descr string) (DType, bool) {
	d := DType{Big: strings.HasPrefix(descr, ">")}
	descr = strings.TrimLeft(descr, "<>=|")
	if descr == "" || descr[0] != 'U' && descr[0] != 'S' {
		return d, false
	}
	size, err := strconv.Atoi(descr[1:])
	if d.Kind, d.Size = descr[0], size; d.Kind == 'U' {
		d.Size *= 4
	}
	return d, err == nil && size > 0 && size <= maxText
}

// maxText bounds the characters of an element of text.
const maxText = 1024

// Text reports whether elements are text.
func (d DType) Text() bool { return d.Kind == 'U' || d.Kind == 'S' }

// Append appends the text of the i-th element of b as UTF-8, if its characters are some.
func (d DType) Append(to, b []byte, i int) []byte {
	b = b[i*d.Size : (i+1)*d.Size]
	if d.Kind == 'S' {
		return append(to, bytes.TrimRight(b, "\x00")...)
	}
	from := len(to)
	for ; len(b) > 0; b = b[4:] {
		c := binary.LittleEndian.Uint32(b)
		if d.Big {
			c = binary.BigEndian.Uint32(b)
		}
		to = utf8.AppendRune(to, rune(min(c, utf8.MaxRune+1)))
	}
	return append(to[:from], bytes.TrimRight(to[from:], "\x00")...)
}

// ParseDType reads what NumPy calls descr or str, such as <f4.
func ParseDType(descr string) (DType, error) {
	var d DType
	rest := descr
	if rest != "" {
		switch rest[0] {
		case '<', '=', '|':
			rest = rest[1:]
		case '>':
			d.Big = true
			rest = rest[1:]
		}
	}
	if rest == "" {
		return d, errors.New("its header does not say what it holds")
	}
	d.Kind = rest[0]
	switch d.Kind {
	case 'O':
		return d, ErrObjects
	case '?':
		d.Kind, rest = 'b', "b1"
	}
	size, err := strconv.Atoi(rest[1:])
	d.Size = size
	switch {
	case err != nil:
	case d.Kind == 'b' && size == 1, (d.Kind == 'i' || d.Kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8),
		d.Kind == 'f' && (size == 2 || size == 4 || size == 8):
		return d, nil
	}
	if len(descr) > 16 {
		descr = descr[:16]
	}
	return d, fmt.Errorf("it holds %q, and only integers, booleans and floats of up to 64 bits can be taken", descr)
}

func (d DType) String() string {
	switch d.Kind {
	case 'U', 'S':
		return "text"
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*d.Size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*d.Size)
	}
	return fmt.Sprintf("float%d", 8*d.Size)
}

func (d DType) Float() bool { return d.Kind == 'f' }

var NativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bits reads the bits of the i-th number of b.
func (d DType) bits(b []byte, i int) uint64 {
	b = b[i*d.Size:]
	if d.Big {
		switch d.Size {
		case 2:
			return uint64(binary.BigEndian.Uint16(b))
		case 4:
			return uint64(binary.BigEndian.Uint32(b))
		case 8:
			return binary.BigEndian.Uint64(b)
		}
	}
	switch d.Size {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return uint64(b[0])
}

// Int reads the i-th of integers or booleans. A number that does not fit in an int64
// becomes the largest one, which is out of every range.
func (d DType) Int(b []byte, i int) int64 {
	v := d.bits(b, i)
	switch {
	case d.Kind == 'b' && v > 1:
		return 1
	case d.Kind == 'i':
		unused := 64 - 8*d.Size
		return int64(v<<unused) >> unused
	}
	return int64(min(v, math.MaxInt64))
}

// Number reads the i-th number of any kind.
func (d DType) Number(b []byte, i int) float64 {
	if d.Kind != 'f' {
		return float64(d.Int(b, i))
	}
	v := d.bits(b, i)
	switch d.Size {
	case 2:
		return float64(source.Half(uint16(v)))
	case 4:
		return float64(math.Float32frombits(uint32(v)))
	}
	return math.Float64frombits(v)
}

// Ints fills dst from integers or booleans.
func (d DType) Ints(dst []int64, b []byte) {
	if d.Kind == 'i' && !d.Big && d.Size == 8 && NativeLittle {
		copy(BytesOf(dst), b)
		return
	}
	for i := range dst {
		dst[i] = d.Int(b, i)
	}
}

// Vertices fills dst with integers that must be less than n. It returns the index of
// one that is not, or -1.
func (d DType) Vertices(dst []uint32, b []byte, n uint32) int {
	switch {
	case d.Size == 8 && !d.Big:
		b = b[:8*len(dst)]
		for i := range dst {
			v := binary.LittleEndian.Uint64(b[8*i:]) // negative ones are very large
			if v >= uint64(n) {
				return i
			}
			dst[i] = uint32(v)
		}
	case d.Size == 4 && !d.Big:
		b = b[:4*len(dst)]
		for i := range dst {
			v := binary.LittleEndian.Uint32(b[4*i:])
			if v >= n { // no graph has as many vertices as a negative one would need
				return i
			}
			dst[i] = v
		}
	default:
		for i := range dst {
			v := d.Int(b, i)
			if v < 0 || v >= int64(n) {
				return i
			}
			dst[i] = uint32(v)
		}
	}
	return -1
}

// Floats fills dst from numbers of any kind. It returns the index of one that is not
// finite as a float32, or -1.
func (d DType) Floats(dst []float32, b []byte) int {
	if d.Kind == 'f' && d.Size == 4 && !d.Big && NativeLittle {
		copy(BytesOf(dst), b)
		return NotFinite(dst)
	}
	for i := range dst {
		dst[i] = float32(d.Number(b, i))
	}
	return NotFinite(dst)
}

// NotFinite returns the index of the first infinity or NaN, or -1.
func NotFinite(v []float32) int {
	const (
		block    = 1024
		unsigned = 0x7fffffff7fffffff
		one      = 0x0080000000800000
	)
	for from := 0; from < len(v); from += block {
		part := v[from:min(from+block, len(v))]
		// Two numbers at a time: all ones in the exponent, and only they, carry into
		// the sign's bit, and nothing carries beyond it.
		var carries uint64
		b := BytesOf(part)
		for ; len(b) >= 32; b = b[32:] {
			carries |= (binary.NativeEndian.Uint64(b)&unsigned + one) | (binary.NativeEndian.Uint64(b[8:])&unsigned + one) |
				(binary.NativeEndian.Uint64(b[16:])&unsigned + one) | (binary.NativeEndian.Uint64(b[24:])&unsigned + one)
		}
		for ; len(b) > 0; b = b[4:] {
			carries |= uint64(binary.NativeEndian.Uint32(b)&0x7fffffff + 0x00800000)
		}
		if carries&0x8000000080000000 == 0 {
			continue
		}
		for i, f := range part {
			if math.Float32bits(f)&0x7f800000 == 0x7f800000 {
				return from + i
			}
		}
	}
	return -1
}

// BytesOf returns the memory of numbers.
func BytesOf[T int64 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// SortRow sorts a sparse row by its columns.
func SortRow(indices []uint32, values []float32) {
	both := make([]uint64, len(indices))
	for i, c := range indices {
		both[i] = uint64(c)<<32 | uint64(math.Float32bits(values[i]))
	}
	slices.Sort(both)
	for i, v := range both {
		indices[i], values[i] = uint32(v>>32), math.Float32frombits(uint32(v))
	}
}
