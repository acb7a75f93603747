package footers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// TestListsBeyondTheFooter gives lists and trees that no footer has room for.
func TestListsBeyondTheFooter(t *testing.T) {
	for name, footer := range map[string][]byte{
		"nothing":                   nil,
		"a list of 2^26":            binary.AppendUvarint([]byte{0x29, 0xfc}, 1<<26),
		"structures a hundred deep": bytes.Repeat([]byte{0x1c}, 100),
		"lists 20 million deep":     bytes.Repeat([]byte{0x19}, 20<<20),
	} {
		if err := CheckParquet(footer); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := func(length uint32, footer []byte) []byte {
		b := append([]byte("ARROW1\x00\x00"), footer...)
		return append(binary.LittleEndian.AppendUint32(b, length), "ARROW1"...)
	}
	for name, b := range map[string][]byte{
		"no Arrow":           make([]byte, 100),
		"a footer too long":  file(1<<30, make([]byte, 64)),
		"a footer of noise":  file(64, bytes.Repeat([]byte{0xfe}, 64)),
		"a footer of zeros":  file(64, make([]byte, 64)),
		"a file of no bytes": nil,
	} {
		if _, err := CheckArrow(bytes.NewReader(b), int64(len(b))); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzFooters(f *testing.F) {
	f.Add([]byte{0x29, 0xfc, 100, 0x55, 2, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = CheckParquet(b)
		file := append(append([]byte("ARROW1\x00\x00"), b...), binary.LittleEndian.AppendUint32(nil, uint32(len(b)))...)
		file = append(file, "ARROW1"...)
		_, _ = CheckArrow(bytes.NewReader(file), int64(len(file)))
	})
}

// FuzzMessage looks at what may be the description of a batch, wherever it is said to lie.
func FuzzMessage(f *testing.F) {
	f.Add(int64(0), int32(64), bytes.Repeat([]byte{0xff}, 64))
	f.Add(int64(8), int32(16), make([]byte, 24))
	f.Add(int64(-8), int32(1<<30), []byte{1})
	f.Fuzz(func(_ *testing.T, offset int64, length int32, b []byte) {
		_ = CheckMessage(bytes.NewReader(b), int64(len(b)), Block{Offset: offset, Length: length})
	})
}
