package mesh

import (
	"encoding/binary"
	"fmt"
)

// headerSize is the length of a Header on the wire.
const headerSize = 32

const headerVersion = 1

// flagRefusal marks an answer that is a Refusal. It is reserved for this package.
const flagRefusal = 0x80

// Header precedes every payload on a bulk stream. The users of each kind agree on the
// meaning of Count, DType and Flags, except for the highest bit of Flags.
type Header struct {
	Kind       Kind
	DType      uint8
	Flags      uint8
	Step       uint32
	Generation uint64 // 0: not bound to a plan, never stale
	Count      uint64
	Length     uint64 // payload bytes that follow
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

// parseHeader checks whatever does not depend on the request. The payload's length must
// not be trusted before it is compared with the request's limit.
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
