package tensorboard

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// largest is more than any record that is written. A longer one is damaged.
const largest = 1 << 20

// A mark is what the event files of a model say of its last epoch. It is enough to see
// whether the plan's epochs continue it.
type mark struct {
	step       int // 0 before the first
	loss       float32
	generation uint64
}

// scan reads records as far as they are whole, and returns the last mark, or m if there is
// none. What a crash has cut off or spoilt ends the file for TensorBoard too.
func scan(from io.Reader, m mark) (mark, error) {
	r := bufio.NewReaderSize(from, 1<<16)
	var content []byte
	for {
		var err error
		content, err = readRecord(r, content)
		switch {
		case errors.Is(err, errDamaged), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return m, nil
		case err != nil:
			return m, err
		}
		if next, whole := markOf(content); whole {
			m = next
		}
	}
}

var errDamaged = errors.New("the record is damaged")

// readRecord returns the content of the next record, in the buffer if that is large enough.
func readRecord(r io.Reader, buffer []byte) ([]byte, error) {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(header[:8])
	if binary.LittleEndian.Uint32(header[8:]) != sum(header[:8]) || n > largest {
		return nil, errDamaged
	}
	if size := int(n) + trailerLen; cap(buffer) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:int(n)+trailerLen]
	if _, err := io.ReadFull(r, buffer); err != nil {
		return nil, err
	}
	content := buffer[:n]
	if binary.LittleEndian.Uint32(buffer[n:]) != sum(content) {
		return nil, errDamaged
	}
	return content, nil
}

// markOf returns the mark that an event leaves, if it has the values of an epoch.
func markOf(event []byte) (m mark, whole bool) {
	found := 0
	for f := range fields(event) {
		switch f.number {
		case eventStep:
			m.step = int(min(f.value, math.MaxInt32))
		case eventSummary:
			for v := range fields(f.content) {
				switch tag, x := numberOf(v.content); tag {
				case tagLoss:
					m.loss = x
					found++
				case tagGeneration:
					if x >= 0 && x < 1<<53 { // which NaN is not
						m.generation = uint64(x)
					}
					found++
				}
			}
		}
	}
	return m, found == 2 && m.step > 0
}

func numberOf(content []byte) (tag string, x float32) {
	for f := range fields(content) {
		switch f.number {
		case valueTag:
			tag = string(f.content)
		case valueNumber:
			x = math.Float32frombits(uint32(f.value))
		}
	}
	return tag, x
}

// A field is one field of a message: value or content, as its kind is.
type field struct {
	number  uint64
	value   uint64
	content []byte
}

// fields yields the fields of a message, as far as they can be read.
func fields(message []byte) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			key, n := binary.Uvarint(message)
			if n <= 0 {
				return
			}
			message = message[n:]
			f := field{number: key >> 3}
			switch key & 7 {
			case varint:
				if f.value, n = binary.Uvarint(message); n <= 0 {
					return
				}
			case fixed64:
				if n = 8; len(message) < n {
					return
				}
				f.value = binary.LittleEndian.Uint64(message)
			case fixed32:
				if n = 4; len(message) < n {
					return
				}
				f.value = uint64(binary.LittleEndian.Uint32(message))
			case bytes:
				length, head := binary.Uvarint(message)
				if head <= 0 || length > uint64(len(message)-head) {
					return
				}
				n = head + int(length)
				f.content = message[head:n]
			default:
				return
			}
			message = message[n:]
			if !yield(f) {
				return
			}
		}
	}
}
