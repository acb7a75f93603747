package read

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"
)

// dtype is how NumPy stores a number: its kind as in descr (b, i, u or f) and its
// size in bytes.
type dtype struct {
	kind byte
	size int
	big  bool // most significant byte first
}

var errObjects = errors.New("it holds Python objects, which only Python can take apart")

// parseDType reads what NumPy calls descr or str, such as <f4.
func parseDType(descr string) (dtype, error) {
	var d dtype
	rest := descr
	if rest != "" {
		switch rest[0] {
		case '<', '=', '|':
			rest = rest[1:]
		case '>':
			d.big = true
			rest = rest[1:]
		}
	}
	if rest == "" {
		return d, errors.New("its header does not say what it holds")
	}
	d.kind = rest[0]
	switch d.kind {
	case 'O':
		return d, errObjects
	case '?':
		d.kind, rest = 'b', "b1"
	}
	size, err := strconv.Atoi(rest[1:])
	d.size = size
	switch {
	case err != nil:
	case d.kind == 'b' && size == 1, (d.kind == 'i' || d.kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8),
		d.kind == 'f' && (size == 2 || size == 4 || size == 8):
		return d, nil
	}
	if len(descr) > 16 {
		descr = descr[:16]
	}
	return d, fmt.Errorf("it holds %q, and only integers, booleans and floats of up to 64 bits can be taken", descr)
}

func (d dtype) String() string {
	switch d.kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*d.size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*d.size)
	}
	return fmt.Sprintf("float%d", 8*d.size)
}

func (d dtype) float() bool { return d.kind == 'f' }

var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bits reads the i-th number of b without saying what it means.
func (d dtype) bits(b []byte, i int) uint64 {
	b = b[i*d.size:]
	if d.big {
		switch d.size {
		case 2:
			return uint64(binary.BigEndian.Uint16(b))
		case 4:
			return uint64(binary.BigEndian.Uint32(b))
		case 8:
			return binary.BigEndian.Uint64(b)
		}
	}
	switch d.size {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return uint64(b[0])
}

// int reads the i-th number of integers or booleans. What no int64 holds becomes
// the largest one, which is out of every range there is.
func (d dtype) int(b []byte, i int) int64 {
	v := d.bits(b, i)
	switch {
	case d.kind == 'b' && v > 1:
		return 1
	case d.kind == 'i':
		unused := 64 - 8*d.size
		return int64(v<<unused) >> unused
	}
	return int64(min(v, math.MaxInt64))
}

// number reads the i-th number of any kind.
func (d dtype) number(b []byte, i int) float64 {
	if d.kind != 'f' {
		return float64(d.int(b, i))
	}
	v := d.bits(b, i)
	switch d.size {
	case 2:
		return float64(half(uint16(v)))
	case 4:
		return float64(math.Float32frombits(uint32(v)))
	}
	return math.Float64frombits(v)
}

// ints fills dst from integers or booleans.
func (d dtype) ints(dst []int64, b []byte) {
	if d.kind == 'i' && !d.big && d.size == 8 && nativeLittle {
		copy(bytesOf(dst), b)
		return
	}
	for i := range dst {
		dst[i] = d.int(b, i)
	}
}

// vertices fills dst with integers that are to be less than n. It returns the
// place of one that is not, or -1.
func (d dtype) vertices(dst []uint32, b []byte, n uint32) int {
	switch {
	case d.size == 8 && !d.big:
		b = b[:8*len(dst)]
		for i := range dst {
			v := binary.LittleEndian.Uint64(b[8*i:]) // negative ones are very large
			if v >= uint64(n) {
				return i
			}
			dst[i] = uint32(v)
		}
	case d.size == 4 && !d.big:
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
			v := d.int(b, i)
			if v < 0 || v >= int64(n) {
				return i
			}
			dst[i] = uint32(v)
		}
	}
	return -1
}

// floats fills dst from numbers of any kind. It returns the place of one that is
// not finite as a float32, or -1.
func (d dtype) floats(dst []float32, b []byte) int {
	if d.kind == 'f' && d.size == 4 && !d.big && nativeLittle {
		copy(bytesOf(dst), b)
		return notFinite(dst)
	}
	for i := range dst {
		dst[i] = float32(d.number(b, i))
	}
	return notFinite(dst)
}

// notFinite returns the place of the first infinity or NaN, or -1.
func notFinite(v []float32) int {
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
		b := bytesOf(part)
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

// bytesOf is the memory of numbers.
func bytesOf[T int64 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
