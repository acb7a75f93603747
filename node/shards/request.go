package shards

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// A request asks for a piece of a shard's file. On the wire: the dataset's id (8
// bytes), the shard (4), offset and length (8 each), little-endian.
type request struct {
	key
	offset, length uint64
}

const (
	idBytes      = 8
	requestBytes = idBytes + 4 + 8 + 8
)

var errBadRequest = errors.New("the request for a piece of a shard makes no sense")

// append needs an id of the plan's, which is hex of fixed length.
func (r request) append(b []byte) []byte {
	var id [idBytes]byte
	_, _ = hex.Decode(id[:], []byte(r.dataset[:min(2*idBytes, len(r.dataset))]))
	b = append(b, id[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.shard))
	b = binary.LittleEndian.AppendUint64(b, r.offset)
	return binary.LittleEndian.AppendUint64(b, r.length)
}

func parseRequest(b []byte) (request, error) {
	if len(b) != requestBytes {
		return request{}, fmt.Errorf("%w: %d bytes", errBadRequest, len(b))
	}
	r := request{
		key:    key{hex.EncodeToString(b[:idBytes]), int(binary.LittleEndian.Uint32(b[idBytes:]))},
		offset: binary.LittleEndian.Uint64(b[idBytes+4:]),
		length: binary.LittleEndian.Uint64(b[idBytes+12:]),
	}
	if r.length == 0 || r.length > pieceBytes {
		return request{}, fmt.Errorf("%w: a piece of %d bytes", errBadRequest, r.length)
	}
	return r, nil
}
