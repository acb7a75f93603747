package train

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A head comes before a model that travels, and says which one it is: of a job, after a
// slot of a step. It is the same in all generations of the job.
type head struct {
	job                            [sha256.Size]byte
	epoch, step, slot, model, rows uint32
	updates, length                uint64 // length is of what follows, in bytes
}

// headSize is how many bytes a head takes, with a checksum of all others at its end:
// a multiple of 8, so that numbers after it lie where numbers may.
const headSize = sha256.Size + 5*4 + 2*8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal writes the head of a frame whose model is there.
func (h *head) seal(frame []byte) {
	to := append(frame[:0], h.job[:]...)
	for _, n := range []uint32{h.epoch, h.step, h.slot, h.model, h.rows} {
		to = binary.LittleEndian.AppendUint32(to, n)
	}
	to = binary.LittleEndian.AppendUint64(to, h.updates)
	to = binary.LittleEndian.AppendUint64(to, h.length)
	binary.LittleEndian.AppendUint32(to, checksum(frame))
}

func checksum(frame []byte) uint32 {
	sum := crc32.Checksum(frame[:headSize-4], castagnoli)
	return crc32.Update(sum, castagnoli, frame[headSize:])
}

// openFrame reads the head of a frame that has come from another node, and says what
// keeps it from being the one that is wanted. How many updates it is of only its sender
// knows.
func openFrame(frame []byte, want head) (h head, err error) {
	if len(frame) < headSize {
		return h, fmt.Errorf("%d bytes are no model", len(frame))
	}
	if binary.LittleEndian.Uint32(frame[headSize-4:]) != checksum(frame) {
		return h, errors.New("the model that came is not the one that was sent: it was damaged on its way")
	}
	rest := frame[copy(h.job[:], frame):]
	for _, to := range []*uint32{&h.epoch, &h.step, &h.slot, &h.model, &h.rows} {
		*to, rest = binary.LittleEndian.Uint32(rest), rest[4:]
	}
	h.updates, h.length = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
	want.updates = h.updates
	switch {
	case h.job != want.job:
		return h, errors.New("a model of another job came")
	case h.length != uint64(len(frame)-headSize):
		return h, fmt.Errorf("a model of %d bytes came in %d", h.length, len(frame)-headSize)
	case h.updates > mostUpdates:
		return h, fmt.Errorf("a model of %d updates came", h.updates)
	case h != want:
		return h, fmt.Errorf("model %d came as it was after slot %d of step %d of epoch %d, with %d rows in %d bytes, in place of model %d after slot %d of step %d of epoch %d, with %d rows in %d bytes",
			h.model, h.slot, h.step+1, h.epoch, h.rows, h.length, want.model, want.slot, want.step+1, want.epoch, want.rows, want.length)
	}
	return h, nil
}

// mostUpdates is more than any model has had.
const mostUpdates = 1 << 48
