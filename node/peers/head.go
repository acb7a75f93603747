package peers

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// headBytes is the number of bytes between the mesh's header and the body of a question.
// Together with the header they are peer.QueryFraming.
const headBytes = peer.QueryFraming - peer.AnswerFraming

// jobKey identifies a job: the eight hex digits of its key.
type jobKey [4]byte

// keyOf converts a key of the plan, which must be hex of fixed length.
func keyOf(key string) (k jobKey) {
	_, _ = hex.Decode(k[:], []byte(key[:min(2*len(k), len(key))]))
	return k
}

// head identifies what a question is about. On the wire, little-endian: the job's key (4
// bytes), the service (1), three zeros, the job's generation (8), epoch, step, part and
// the limit of the answer (4 each).
type head struct {
	job               jobKey
	service           peer.Service
	generation        uint64
	epoch, step, part uint32
	limit             uint32
}

func (h head) append(b []byte) []byte {
	b = append(b, h.job[:]...)
	b = append(b, byte(h.service), 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, h.generation)
	for _, n := range [...]uint32{h.epoch, h.step, h.part, h.limit} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

func parseHead(b *[headBytes]byte) (head, error) {
	if b[5]|b[6]|b[7] != 0 {
		return head{}, fmt.Errorf("%w: a question of a job with %x where zeros belong", mesh.ErrProtocol, b[5:8])
	}
	if s := peer.Service(b[4]); s == 0 || s >= services {
		return head{}, fmt.Errorf("%w: a question for service %d of a job", mesh.ErrProtocol, s)
	}
	return head{
		job: jobKey(b[:4]), service: peer.Service(b[4]),
		generation: binary.LittleEndian.Uint64(b[8:]),
		epoch:      binary.LittleEndian.Uint32(b[16:]),
		step:       binary.LittleEndian.Uint32(b[20:]),
		part:       binary.LittleEndian.Uint32(b[24:]),
		limit:      binary.LittleEndian.Uint32(b[28:]),
	}, nil
}

// services is one more than the highest possible number of a service.
const services = 16
