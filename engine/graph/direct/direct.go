// Package direct writes files past the page cache. Filling the cache costs as much
// as hashing the bytes or half of their way through the network, for bytes that
// nobody reads soon.
package direct

import (
	"os"
	"unsafe"
)

// Unit is what the place, the length and the memory of a direct write must be a
// multiple of, on any disk.
const Unit = 4096

// A Writer is a second way into a file that is open already. It is not safe for
// concurrent use, and the zero Writer writes nothing.
type Writer struct{ file *os.File }

// Open finds the way into the file of this name, if the file system has one.
func Open(path string) Writer { return Writer{open(path)} }

// WriteAt says whether it has written b. What doesn't go this way, for whatever
// reason, is to go the ordinary one, which says what is wrong.
func (w *Writer) WriteAt(b []byte, at int64) bool {
	if w.file == nil || at%Unit != 0 || len(b)%Unit != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%Unit != 0 {
		return false
	}
	if _, err := w.file.WriteAt(b, at); err != nil {
		w.Close()
		return false
	}
	return true
}

// Close may be called again. Whatever went wrong, the file's own descriptor says.
func (w *Writer) Close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// Buffer makes memory that can be written directly.
func Buffer(n int) []byte {
	unit := Unit
	if n >= huge {
		unit = huge
	}
	b := make([]byte, n+unit-1)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (unit - 1)
	b = b[skip : skip+n : skip+n]
	if n >= huge {
		inHugePages(b[:n/huge*huge])
	}
	return b
}

// huge is the size of a large page. To write from one, the kernel needs to look up
// one page instead of hundreds.
const huge = 2 << 20
