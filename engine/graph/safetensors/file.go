package safetensors

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"golang.org/x/sys/unix"
)

// A File is a memory-mapped file. What View returns lies in the mapping: it must not be
// written to, nor used after Close.
type File struct {
	path     string
	mapping  []byte
	data     []byte // after the header
	places   map[string]place
	order    []Tensor
	metadata map[string]string
	info     os.FileInfo     // as Open found the file
	in       *mapped.Mapping // nil: it is not mapped
}

// Open maps the file and checks its header.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func open(path string) (*File, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("this machine is big-endian, and the file is not")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the file
	}
	defer file.Close() // the mapping outlives it
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size < 8 || size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes are no safetensors file", size)
	}
	mapping, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes into memory: %w", size, err)
	}
	in := mapped.Add(path, mapping)
	f, err := guarded(mapping)
	if err != nil {
		in.Remove()
		return nil, errors.Join(err, unix.Munmap(mapping))
	}
	f.path, f.in, f.info = path, in, info
	return f, nil
}

// Parse reads a whole file in memory as Open reads one on disk; errors use the given
// name. What View returns lies in b, or in a copy if b is not aligned to 8 bytes.
func Parse(name string, b []byte) (*File, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("this machine is big-endian, and the file is not")
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 != 0 {
		b = append(make([]byte, 0, max(64, len(b))), b...) // so large that it is aligned
	}
	f, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	f.path = name
	return f, nil
}

// parse reads the header of a whole file in memory.
func parse(mapping []byte) (*File, error) {
	if len(mapping) < 8 {
		return nil, fmt.Errorf("%d bytes are no safetensors file", len(mapping))
	}
	length := binary.LittleEndian.Uint64(mapping)
	if length > maxHeader || length > uint64(len(mapping)-8) {
		return nil, fmt.Errorf("it claims a header of %d bytes in a file of %d: it is cut off, or no safetensors file", length, len(mapping))
	}
	data := mapping[8+length:]
	places, metadata, err := parseHeader(mapping[8:8+length], int64(len(data)))
	if err != nil {
		return nil, err
	}
	f := &File{mapping: mapping, data: data, places: make(map[string]place, len(places)), metadata: metadata}
	for _, p := range places {
		f.places[p.Name] = p
		f.order = append(f.order, p.Tensor)
	}
	return f, nil
}

// guarded is parse of a mapped file, which may be cut short meanwhile.
func guarded(mapping []byte) (f *File, err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.Caught(&err)
	return parse(mapping)
}

// Close unmaps the file, which invalidates every view. A file from Parse is released.
func (f *File) Close() error {
	mapping := f.mapping
	f.mapping, f.data, f.places = nil, nil, nil
	if mapping == nil || f.in == nil {
		return nil
	}
	f.in.Remove()
	if err := unix.Munmap(mapping); err != nil {
		return fmt.Errorf("unmap %s: %w", f.path, err)
	}
	return nil
}

// Tensors lists the tensors in file order.
func (f *File) Tensors() []Tensor { return f.order }

// Metadata returns the file's metadata strings; nil if there are none.
func (f *File) Metadata() map[string]string { return f.metadata }

// Info describes the file as it was when it was opened; nil after Parse.
func (f *File) Info() os.FileInfo { return f.info }

// Broken reports whether reading the mapped file has failed: see package mapped.
func (f *File) Broken() bool { return f.in.Broken() }

// SHA256 returns the digest of the whole file, as it is mapped.
func (f *File) SHA256() (digest string, err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.Caught(&err)
	sum := sha256.Sum256(f.mapping)
	return hex.EncodeToString(sum[:]), nil
}

// Stream passes the whole file, as it is mapped, to a function, in order and in pieces.
func (f *File) Stream(ctx context.Context, each func(piece []byte)) error {
	return mapped.Stream(ctx, f.mapping, each)
}

// Size returns the length of the file.
func (f *File) Size() int64 { return int64(len(f.mapping)) }

// Has reports whether the file has a tensor of that name.
func (f *File) Has(name string) bool {
	_, ok := f.places[name]
	return ok
}

// An Element is the Go type of a tensor's elements. BF16 is held as its bits.
type Element interface {
	float32 | int64 | int32 | uint16 | uint8
}

func dtypeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case float32:
		return F32
	case int64:
		return I64
	case int32:
		return I32
	case uint16:
		return BF16
	}
	return U8
}

// View returns a tensor's elements, in place in the mapping, and its shape.
func View[T Element](f *File, name string) ([]T, []int64, error) {
	p, ok := f.places[name]
	if !ok {
		return nil, nil, fmt.Errorf("%s has no tensor %q", f.path, name)
	}
	if want := dtypeOf[T](); p.DType != want {
		return nil, nil, fmt.Errorf("tensor %q of %s holds %s where %s was expected", name, f.path, p.DType, want)
	}
	b := f.data[p.begin:p.end]
	if len(b) == 0 {
		return []T{}, p.Shape, nil
	}
	start := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(start)%unsafe.Alignof(*new(T)) != 0 {
		return nil, nil, fmt.Errorf("tensor %q of %s starts at a byte that is not a multiple of its elements", name, f.path)
	}
	n := len(b) / int(unsafe.Sizeof(*new(T)))
	return unsafe.Slice((*T)(start), n), p.Shape, nil
}
