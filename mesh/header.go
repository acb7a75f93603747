package mesh

import (
	"encoding/binary"
	"fmt"
)

// headerSize is the length of a Header on the wire.
const headerSize = 32

const headerVersion = 1

// flagRefusal marks an answer that says no. It is the mesh's own.
const flagRefusal = 0x80

// A Header precedes every payload on a bulk stream. What Count counts, and what
// DType and Flags say, is agreed between the kind's users, but for the highest bit of
// Flags.
type Header struct {
	Kind       Kind
	DType      uint8
	Flags      uint8
	Step       uint32
	Generation uint64 // 0: bound to no plan, never stale
	Count      uint64
	Length     uint64 // bytes of payload that follow
}

// The layout, little-endian: version, kind, dtype, flags (a byte each), step
// (4), generation, count, length (8 each).
func (h Header) append(b []byte) []byte {
	b = append(b, headerVersion, byte(h.Kind), h.DType, h.Flags)
	b = binary.LittleEndian.AppendUint32(b, h.Step)
	b = binary.LittleEndian.AppendUint64(b, h.Generation)
	b = binary.LittleEndian.AppendUint64(b, h.Count)
	return binary.LittleEndian.AppendUint64(b, h.Length)
}

// parseHeader checks what can be checked without knowing what was asked. The
// payload's length is not to be believed before it is compared with that.
func parseHeader(b *[headerSize]byte) (Header, error) {
	if b[0] != headerVersion {
		return Header{}, fmt.Errorf("%w: stream version %d, this node speaks %d", ErrProtocol, b[0], headerVersion)
	}
	h := Header{
		Kind: Kind(b[1]), DType: b[2], Flags: b[3],
		Step:       binary.LittleEndian.Uint32(b[4:]),
		Generation: binary.LittleEndian.Uint64(b[8:]),
		Count:      binary.LittleEndian.Uint64(b[16:]),
		Length:     binary.LittleEndian.Uint64(b[24:]),
	}
	if h.Kind >= kinds {
		return Header{}, fmt.Errorf("%w: stream kind %d", ErrProtocol, b[1])
	}
	return h, nil
}
