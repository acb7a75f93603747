// Package direct writes files bypassing the page cache. Filling the cache costs as much
// as hashing the bytes, or half of the cost of receiving them from the network, for bytes
// that are not read again soon.
package direct

import (
	"os"
	"unsafe"
)

// Unit is the alignment that the offset, the length and the memory of a direct write need
// on any disk.
const Unit = 4096

// A Writer writes directly to a file that is also open in the ordinary way. It is not
// safe for concurrent use. The zero Writer writes nothing.
type Writer struct{ file *os.File }

// Open opens the named file for direct writes. It returns the zero Writer if the file
// system does not support them.
func Open(path string) Writer { return Writer{open(path)} }

// WriteAt reports whether it has written b. If not, for whatever reason, the caller
// writes b through the ordinary file, which reports the error.
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

// Close may be called again. Errors show up on the ordinary file descriptor.
func (w *Writer) Close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// Buffer allocates memory suitable for direct writes.
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

// huge is the size of a huge page. Writing from one, the kernel looks up one page instead
// of hundreds.
const huge = 2 << 20
