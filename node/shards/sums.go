package shards

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A file that was read and has its SHA-256 is given sums in an extended attribute. They are
// checked five times as fast, after the next start. Only the SHA-256 says that a file is damaged:
// where the attribute is missing, or does not match, the file is read once more for it.
const (
	sumsName  = "user.hopmesh.sums"
	sumsBytes = 1 + 32 + 8 + 4
	// sumsForm is the first byte of the attribute.
	sumsForm = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums are two checks of a file, of different polynomials.
type sums struct{ castagnoli, ieee uint32 }

func (s *sums) add(b []byte) {
	s.castagnoli, s.ieee = crc32.Update(s.castagnoli, castagnoli, b), crc32.Update(s.ieee, crc32.IEEETable, b)
}

// encode returns the attribute of a file with these sums and this SHA-256; nil if that is none.
func (s sums) encode(digest string) []byte {
	d, err := hex.DecodeString(digest)
	if err != nil || len(d) != 32 {
		return nil
	}
	b := append([]byte{sumsForm}, d...)
	b = binary.LittleEndian.AppendUint32(b, s.castagnoli)
	b = binary.LittleEndian.AppendUint32(b, s.ieee)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseSums reads an attribute. It returns false unless it is one of a file with this SHA-256.
func parseSums(b []byte, digest string) (s sums, ok bool) {
	if len(b) != sumsBytes || b[0] != sumsForm || hex.EncodeToString(b[1:33]) != digest {
		return s, false
	}
	if binary.LittleEndian.Uint32(b[41:]) != crc32.Checksum(b[:41], castagnoli) {
		return s, false
	}
	return sums{binary.LittleEndian.Uint32(b[33:]), binary.LittleEndian.Uint32(b[37:])}, true
}

// sumUp reads a file. It returns an error if it was written meanwhile.
func sumUp(ctx context.Context, path string, piece func(b []byte)) (as stamp, err error) {
	f, err := os.Open(path)
	if err != nil {
		return stamp{}, err
	}
	defer f.Close()
	before, err := stampOn(f)
	if err != nil {
		return stamp{}, err
	}
	b := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return stamp{}, context.Cause(ctx)
		}
		n, err := f.Read(b)
		piece(b[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return stamp{}, err
		}
	}
	after, err := stampOn(f)
	if err == nil && after != before {
		err = errors.New("it is being written")
	}
	return before, err
}

// recognise reports whether a file has the sums that it had when it had this SHA-256.
func recognise(ctx context.Context, path, digest string) (as stamp, ok bool) {
	var b [2 * sumsBytes]byte
	n, err := unix.Getxattr(path, sumsName, b[:])
	if err != nil || n > len(b) {
		return as, false
	}
	want, ok := parseSums(b[:n], digest)
	if !ok {
		return as, false
	}
	var got sums
	as, err = sumUp(ctx, path, got.add)
	return as, err == nil && got == want
}

// mark gives a file its sums, after it was found to have this SHA-256, and returns its stamp, of
// which they change a part. Where a file can have no attributes, nothing changes.
func mark(path, digest string, s sums, was stamp) stamp {
	if unix.Setxattr(path, sumsName, s.encode(digest), 0) != nil {
		return was
	}
	now, there := stampAt(path)
	same := now
	same.changed = was.changed
	if !there || same != was {
		return was // it is another file, and this one's stamp will not be found again
	}
	return now
}
