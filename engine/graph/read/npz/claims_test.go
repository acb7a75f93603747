package npz

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// vast is a file on a server that claims to be vast, and makes up what is read of it.
type vast struct {
	size int64
	tail string
	body string // it repeats before that
}

func (v vast) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for i := range p {
		if v.body != "" {
			p[i] = v.body[(off+int64(i))%int64(len(v.body))]
		}
		if at := off + int64(i) - (v.size - int64(len(v.tail))); at >= 0 && at < int64(len(v.tail)) {
			p[i] = v.tail[at]
		}
	}
	if off+int64(len(p)) > v.size {
		return int(v.size - off), io.EOF
	}
	return len(p), nil
}

// claiming is the end of an archive that is as large as that, and claims so many members.
func claiming(many uint64, size int64) string {
	le := binary.LittleEndian
	record := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	le.PutUint64(record[24:], many)
	le.PutUint64(record[32:], many)
	locator := append([]byte("PK\x06\x07"), make([]byte, 16)...)
	le.PutUint64(locator[8:], uint64(size-22-20-56))
	le.PutUint32(locator[16:], 1)
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	for at := 8; at < 20; at++ {
		end[at] = 0xff
	}
	return string(record) + string(locator) + string(end)
}

// Before its check, this ended the process: no memory is that large.
func TestArchiveThatClaimsManyMembers(t *testing.T) {
	const size, many = 1 << 50, 1 << 44
	_, err := newArchive("g.npz", vast{size: size, tail: claiming(many, size)}, size)
	if err == nil || !strings.Contains(err.Error(), "g.npz claims to hold 17592186044416 arrays, of at most 1048576") {
		t.Error(err)
	}
}

// A server may never end to name arrays.
func TestArchiveThatNeverEndsToNameArrays(t *testing.T) {
	const size, length = 1 << 40, 60_000
	entry := append([]byte("PK\x01\x02"), make([]byte, 42+length)...)
	binary.LittleEndian.PutUint16(entry[28:], length)
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	end[10] = 100 // of its members
	_, err := newArchive("g.npz", vast{size: size, tail: string(end), body: string(entry)}, size)
	if err == nil || !strings.Contains(err.Error(), "g.npz: the list of its members takes more than 32 MiB") {
		t.Error(err)
	}
}
