package npz

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
)

// An array is an array of an archive. Only its header is in memory.
type array struct {
	numpy.Header
	name string // for sentences: the file and the array
	key  string // the array
	size uint64 // how many numbers
	// open reads the array's numbers from the given one on.
	open func(from uint64) (io.ReadCloser, error)
}

// wrong returns an error about the array.
func (a *array) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %w", a.name, fmt.Errorf(format, args...))
}

// is reports whether the array has these sizes.
func (a *array) is(shape ...uint64) bool {
	if len(a.Shape) != len(shape) {
		return false
	}
	for i, n := range shape {
		if a.Shape[i] != n {
			return false
		}
	}
	return true
}

// shaped returns the shape as Python writes it.
func (a *array) shaped() string {
	var parts []string
	for _, n := range a.Shape {
		parts = append(parts, fmt.Sprint(n))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// rowByRow reports whether the numbers of a row lie side by side.
func (a *array) rowByRow() bool {
	return !a.Fortran || len(a.Shape) < 2 || a.Shape[0] <= 1 || a.size == a.Shape[0]
}

// numbers reads an array's numbers in order. The opener closes it.
type numbers struct {
	*array
	from io.ReadCloser
	at   uint64 // numbers taken
	raw  []byte
}

func (a *array) numbers(from uint64) (*numbers, error) {
	r, err := a.open(from)
	if err != nil {
		return nil, a.explain(err)
	}
	return &numbers{array: a, from: r, at: from}, nil
}

func (n *numbers) close() { n.from.Close() }

// take returns the bytes of the next numbers, valid until the next call. It never
// holds more than that.
func (n *numbers) take(count int) ([]byte, error) {
	if n.size-n.at < uint64(count) {
		return nil, n.explain(io.ErrUnexpectedEOF)
	}
	if need := count * n.DType.Size; cap(n.raw) < need {
		n.raw = make([]byte, need)
	}
	b := n.raw[:count*n.DType.Size]
	if _, err := io.ReadFull(n.from, b); err != nil {
		return nil, n.explain(numpy.CutShort(err))
	}
	n.at += uint64(count)
	return b, nil
}

// floats fills dst. It returns the index of a number that is not finite, or -1.
func (n *numbers) floats(dst []float32) (int, error) {
	if d := n.DType; d.Kind != 'f' || d.Size != 4 || d.Big || !numpy.NativeLittle {
		b, err := n.take(len(dst))
		if err != nil {
			return 0, err
		}
		return d.Floats(dst, b), nil
	}
	if n.size-n.at < uint64(len(dst)) {
		return 0, n.explain(io.ErrUnexpectedEOF)
	}
	n.at += uint64(len(dst))
	// In parts that stay in the processor's cache while they are checked.
	const part = 32 << 10
	for from := 0; from < len(dst); from += part {
		piece := dst[from:min(from+part, len(dst))]
		if _, err := io.ReadFull(n.from, numpy.BytesOf(piece)); err != nil {
			return 0, n.explain(numpy.CutShort(err))
		}
		if bad := numpy.NotFinite(piece); bad >= 0 {
			return from + bad, nil
		}
	}
	return -1, nil
}

// end returns an error if anything follows, or if the checksum is wrong.
func (n *numbers) end() error {
	var b [1]byte
	switch got, err := io.ReadFull(n.from, b[:]); {
	case got > 0:
		return n.wrong("more follows than its header says: save it again")
	case !errors.Is(err, io.EOF):
		return n.explain(err)
	}
	return nil
}

// numbersChunk is how many numbers are read at a time where each is checked alone.
const numbersChunk = 1 << 14

// each yields the bytes of all numbers, which are valid until yield returns.
func (a *array) each(ctx context.Context, yield func(first uint64, count int, b []byte) error) error {
	n, err := a.numbers(0)
	if err != nil {
		return err
	}
	defer n.close()
	for n.at < n.size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, count := n.at, int(min(n.size-n.at, numbersChunk))
		b, err := n.take(count)
		if err != nil {
			return err
		}
		if err := yield(first, count, b); err != nil {
			return err
		}
	}
	return n.end()
}

// explain returns an error that says what a failed read means.
func (a *array) explain(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF):
		return a.wrong("the archive ends before the place where it says that this array begins: copy the file again")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return a.wrong("it ends too early: copy the file again")
	case errors.Is(err, zip.ErrChecksum):
		return a.wrong("its checksum is wrong, so that it was damaged: copy the file again")
	case errors.As(err, &corrupt):
		return a.wrong("its compressed data is damaged: copy the file again")
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm):
		return a.wrong("the archive is damaged there: copy the file again")
	}
	return fmt.Errorf("read %s: %w", a.name, err)
}
