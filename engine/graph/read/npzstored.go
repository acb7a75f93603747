package read

import (
	"archive/zip"
	"errors"
	"hash/crc32"
	"io"
)

// stored reads a member that is not packed from byte begin on. Its checksum is
// proven at its end if it was read from its beginning, else by whole.
type stored struct {
	from  *io.SectionReader
	begin int64
	at    int64 // bytes read
	sum   uint32
	want  uint32 // 0: not known
}

func (s *stored) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	s.at += int64(n)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, b[:n])
	if errors.Is(err, io.EOF) && s.begin == 0 && s.at == s.from.Size() && s.want != 0 && s.sum != s.want {
		return n, zip.ErrChecksum
	}
	return n, err
}

func (s *stored) Close() error { return nil }

// whole proves the checksum of a member that two readers have read: the first one
// from its beginning to where the second one began.
func whole(first, second io.Reader) error {
	a, ok := first.(*stored)
	if !ok {
		return nil // the second one has unpacked it all
	}
	b, ok := second.(*stored)
	if !ok || a.begin+a.at != b.begin {
		return io.ErrUnexpectedEOF
	}
	if b.want != 0 && joinSums(a.sum, b.sum, b.at) != b.want {
		return zip.ErrChecksum
	}
	return nil
}

// joinSums is the checksum of bytes of which those with the second one, of the
// given length, follow those with the first. A checksum is a polynomial's
// remainder: zeros behind it multiply it by a power of x, the rest is a sum.
func joinSums(first, second uint32, length int64) uint32 {
	power := uint32(1) << 23 // x to the 8, the highest coefficient is the last bit
	for ; length > 0; length >>= 1 {
		if length&1 != 0 {
			first = multiplySums(first, power)
		}
		power = multiplySums(power, power)
	}
	return first ^ second
}

// multiplySums multiplies two polynomials modulo that of CRC-32.
func multiplySums(a, b uint32) uint32 {
	var product uint32
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		low := b & 1
		b >>= 1
		if low != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
