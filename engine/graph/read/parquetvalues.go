package read

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

var errValues = errors.New("a page ends before its values do")

// hybrid reads numbers of a few bits, in runs of one number and of packed ones:
// levels and places in a dictionary. It never holds more than was asked for.
type hybrid struct {
	b      []byte
	width  uint
	run    uint64 // numbers left of a run
	value  uint32
	packed bool
	bit    uint64 // of the packed numbers in b
}

func newHybrid(b []byte, width uint) (*hybrid, error) {
	if width > 32 {
		return nil, errThrift
	}
	return &hybrid{b: b, width: width}, nil
}

// read appends n numbers.
func (h *hybrid) read(out []uint32, n int) ([]uint32, error) {
	for n > 0 {
		if h.run == 0 {
			if err := h.head(); err != nil {
				return out, err
			}
			continue
		}
		take := int(min(uint64(n), h.run))
		h.run -= uint64(take)
		n -= take
		if !h.packed {
			for range take {
				out = append(out, h.value)
			}
			continue
		}
		mask := uint64(1)<<h.width - 1
		for range take {
			at, shift := h.bit/8, h.bit%8
			var word uint64
			if at+8 <= uint64(len(h.b)) {
				word = binary.LittleEndian.Uint64(h.b[at:])
			} else {
				for i := at; i < uint64(len(h.b)); i++ {
					word |= uint64(h.b[i]) << (8 * (i - at))
				}
			}
			out = append(out, uint32(word>>shift&mask))
			h.bit += uint64(h.width)
		}
		if h.run == 0 {
			h.b = h.b[min(h.bit/8, uint64(len(h.b))):]
		}
	}
	return out, nil
}

func (h *hybrid) head() error {
	head, n := binary.Uvarint(h.b)
	if n <= 0 {
		return errValues
	}
	h.b = h.b[n:]
	count := head >> 1
	if h.packed = head&1 == 1; h.packed {
		// Groups of eight; the last may lack bytes that hold no number.
		if h.width == 0 {
			return errThrift
		}
		fit := uint64(len(h.b)) * 8 / uint64(h.width)
		if count == 0 || fit == 0 || count > uint64(len(h.b)) {
			return errValues
		}
		h.run, h.bit = min(count*8, fit), 0
		return nil
	}
	size := int(h.width+7) / 8
	if len(h.b) < size || count == 0 {
		return errValues
	}
	h.value = 0
	for i := range size {
		h.value |= uint32(h.b[i]) << (8 * i)
	}
	h.b = h.b[size:]
	h.run = count
	return nil
}

// A valueReader appends n values of a page to a column.
type valueReader interface {
	read(c *columnValues, n int) error
}

// plain reads values that lie one after another.
type plain struct {
	leaf *parquetLeaf
	b    []byte
}

func (l *parquetLeaf) size() int {
	switch l.physical {
	case parquetInt32, parquetFloat:
		return 4
	case parquetInt64, parquetDouble:
		return 8
	}
	return l.length
}

func (p *plain) read(c *columnValues, n int) error {
	if p.leaf.physical == parquetBytes {
		for range n {
			if len(p.b) < 4 {
				return errValues
			}
			size := uint64(binary.LittleEndian.Uint32(p.b))
			if size > uint64(len(p.b)-4) {
				return errValues
			}
			c.text.addText(p.b[4 : 4+size])
			p.b = p.b[4+size:]
		}
		return nil
	}
	size := p.leaf.size()
	if size == 0 || n > len(p.b)/size {
		return errValues
	}
	for i := range n {
		p.leaf.add(c, p.b[i*size:])
	}
	p.b = p.b[n*size:]
	return nil
}

// add appends the number that b begins with.
func (l *parquetLeaf) add(c *columnValues, b []byte) {
	switch l.physical {
	case parquetInt32:
		l.addInt(c, int64(int32(binary.LittleEndian.Uint32(b))))
	case parquetInt64:
		c.ints = append(c.ints, int64(binary.LittleEndian.Uint64(b)))
	case parquetFloat:
		c.floats = append(c.floats, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case parquetDouble:
		c.floats = append(c.floats, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	default:
		c.floats = append(c.floats, float64(half(binary.LittleEndian.Uint16(b))))
	}
}

func (l *parquetLeaf) addInt(c *columnValues, v int64) {
	if l.physical == parquetInt32 {
		if v = int64(int32(v)); l.unsigned {
			v = int64(uint32(v))
		}
	}
	c.ints = append(c.ints, v)
}

// half is a floating number of 16 bits.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch {
	case exponent == 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	case exponent == 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// indexed reads places in a dictionary.
type indexed struct {
	places     *hybrid
	dictionary *columnValues
	buffer     []uint32
}

func (x *indexed) read(c *columnValues, n int) error {
	var err error
	if x.buffer, err = x.places.read(x.buffer[:0], n); err != nil {
		return err
	}
	for _, place := range x.buffer {
		if int(place) >= x.dictionary.len() {
			return fmt.Errorf("%w: a place outside the dictionary", errThrift)
		}
		switch c.kind {
		case intValues:
			c.ints = append(c.ints, x.dictionary.ints[place])
		case floatValues:
			c.floats = append(c.floats, x.dictionary.floats[place])
		case textValues:
			c.text.addText(x.dictionary.text.at(int(place)))
		}
	}
	return nil
}

// levelWidth is how many bits a level takes.
func levelWidth(most int) uint { return uint(bits.Len(uint(most))) }
