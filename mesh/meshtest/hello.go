package meshtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/quic-go/quic-go/quicvarint"
)

// Hellos collects what clients say in the first packets of QUIC, which anybody who sees the packets
// can read: their keys follow from the packets themselves (RFC 9001, 5.2).
type Hellos struct {
	said map[string][]byte // by the connection id that the client chose
}

// Add takes one packet, of any kind.
func (h *Hellos) Add(packet []byte) {
	id, frames := openInitial(packet)
	if frames == nil {
		return
	}
	if h.said == nil {
		h.said = map[string][]byte{}
	}
	said := h.said[id]
	for len(frames) > 0 {
		kind := frames[0]
		frames = frames[1:]
		if kind <= 1 { // padding, ping
			continue
		}
		var at, size uint64
		if kind != 6 || !number(&frames, &at) || !number(&frames, &size) || uint64(len(frames)) < size || at > 1<<16 {
			break // only CRYPTO has words
		}
		if need := int(at + size); len(said) < need {
			said = append(said, make([]byte, need-len(said))...)
		}
		copy(said[at:], frames[:size])
		frames = frames[size:]
	}
	h.said[id] = said
}

// All returns what all clients said.
func (h *Hellos) All() (all [][]byte) {
	for _, b := range h.said {
		all = append(all, b)
	}
	return all
}

// number reads a number of QUIC's variable length.
func number(b *[]byte, n *uint64) bool {
	v, size, err := quicvarint.Parse(*b)
	if err != nil {
		return false
	}
	*n, *b = v, (*b)[size:]
	return true
}

// openInitial decrypts a client's first packets, and returns nil for all others.
func openInitial(packet []byte) (id string, frames []byte) {
	const version1 = 1
	if len(packet) < 7 || packet[0]&0xf0 != 0xc0 || binary.BigEndian.Uint32(packet[1:]) != version1 {
		return "", nil
	}
	rest := packet[5:]
	var ids [2][]byte
	for i := range ids {
		if len(rest) < 1 || len(rest) < 1+int(rest[0]) {
			return "", nil
		}
		ids[i], rest = rest[1:1+rest[0]], rest[1+rest[0]:]
	}
	var size uint64
	if !number(&rest, &size) || uint64(len(rest)) < size {
		return "", nil
	}
	rest = rest[size:] // a token
	if !number(&rest, &size) || uint64(len(rest)) < size || size < 20 {
		return "", nil
	}
	head := len(packet) - len(rest)
	packet = slices.Clone(packet[:head+int(size)])

	salt := []byte{0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a}
	first, err := hkdf.Extract(sha256.New, ids[0], salt)
	if err != nil {
		return "", nil
	}
	client := expand(first, "client in", 32)
	header, _ := aes.NewCipher(expand(client, "quic hp", 16))
	var mask [16]byte
	header.Encrypt(mask[:], packet[head+4:head+20])
	packet[0] ^= mask[0] & 0x0f
	length := int(packet[0]&3) + 1
	nonce := expand(client, "quic iv", 12)
	for i := range length {
		packet[head+i] ^= mask[1+i]
		nonce[12-length+i] ^= packet[head+i]
	}
	block, _ := aes.NewCipher(expand(client, "quic key", 16))
	sealed, err := cipher.NewGCM(block)
	if err != nil {
		return "", nil
	}
	frames, err = sealed.Open(nil, nonce, packet[head+length:], packet[:head+length])
	if err != nil {
		return "", nil
	}
	return string(ids[0]), frames
}

// expand is HKDF-Expand-Label of TLS 1.3.
func expand(secret []byte, label string, length int) []byte {
	info := append([]byte{0, byte(length), byte(len("tls13 " + label))}, "tls13 "+label+"\x00"...)
	key, err := hkdf.Expand(sha256.New, secret, string(info), length)
	if err != nil {
		panic(err) // the lengths are constants
	}
	return key
}
