package npz

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// An archive is a zip file of arrays, as NumPy's savez writes it.
type archive struct {
	name    string // for sentences
	from    io.ReaderAt
	size    int64
	ctx     context.Context // until it is closed; nil: no end
	members map[string]*zip.File
	keys    []string  // of members, in their order
	file    io.Closer // nil if it is not a file
}

func openArchive(ctx context.Context, path string) (*archive, error) {
	if what, err := files.Look(ctx, path); err == nil && what == files.Folder {
		return nil, fmt.Errorf("%s is a folder: give the path of an .npz file in it", files.Show(path))
	}
	f, err := files.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	z, err := newArchive(files.Base(path), f, f.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	z.file, z.ctx = f, ctx
	return z, nil
}

func newArchive(name string, r io.ReaderAt, size int64) (*archive, error) {
	z := &archive{name: name, from: r, size: size, members: map[string]*zip.File{}}
	if size == 0 {
		return nil, fmt.Errorf("%s is empty: save the graph again, or copy the file again", name)
	}
	list, err := List(name, r, size)
	if errors.Is(err, ErrTooMany) {
		return nil, err
	}
	if err != nil {
		var begin [6]byte
		if n, _ := r.ReadAt(begin[:], 0); n == len(begin) && string(begin[:]) == "\x93NUMPY" {
			return nil, fmt.Errorf("%s is a single array of NumPy (.npy), not an archive of them: save all arrays of the graph with numpy.savez", name)
		}
		if string(begin[:1]) == "\x80" { // a pickle of protocol 2 or later
			return nil, Pickled(name)
		}
		return nil, fmt.Errorf("%s is not a complete zip archive (%w), as NumPy's savez writes it: copy the file again", name, err)
	}
	if isTorch(list) {
		return nil, Pickled(name)
	}
	for _, f := range list {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if z.members[key] != nil {
			return nil, fmt.Errorf("%s: %s: there are two arrays of this name: save the file again", name, source.Shorten([]byte(key)))
		}
		z.members[key] = f
		z.keys = append(z.keys, key)
	}
	return z, nil
}

// ErrTooMany is wrapped by errors of archives whose list of members is larger than any graph's.
var ErrTooMany = errors.New("save the graph again, or copy the file again")

// List returns the members of a zip archive. Little memory is taken for what it claims alone.
func List(name string, r io.ReaderAt, size int64) ([]*zip.File, error) {
	bounded := &directory{ReaderAt: r, left: maxDirectory}
	list, err := zip.NewReader(bounded, size)
	if bounded.claims > 0 {
		return nil, fmt.Errorf("%s claims to hold %d arrays, of at most %d: %w", name, bounded.claims, maxMembers, ErrTooMany)
	}
	if bounded.left < 0 {
		return nil, fmt.Errorf("%s: the list of its members takes more than %d MiB: %w", name, maxDirectory>>20, ErrTooMany)
	}
	bounded.left = math.MaxInt64
	if err != nil {
		return nil, err
	}
	return list.File, nil
}

// maxMembers is more than a graph has arrays.
const maxMembers = 1 << 20

// maxDirectory bounds what is read to list an archive's members: a server may never end to name
// more.
const maxDirectory = 32 << 20

// directory counts what is read of an archive. It is used by one goroutine until its bound goes.
//
// Package zip takes memory for as many members as an archive claims and its size has room for, and
// of a file on a server the size is a claim, too. Only the records of large archives can claim more
// than 65535. They are looked at as package zip reads them, since a server may send something else
// the next time.
type directory struct {
	io.ReaderAt
	left   int64
	claims uint64 // members, where these are too many
}

func (d *directory) ReadAt(p []byte, off int64) (int, error) {
	if d.left == math.MaxInt64 {
		return d.ReaderAt.ReadAt(p, off)
	}
	if d.left -= int64(len(p)); d.left < 0 {
		return 0, io.EOF
	}
	n, err := d.ReaderAt.ReadAt(p, off)
	if many, is := claimed(p[:n]); is && many > maxMembers {
		d.claims = many
		return 0, io.EOF
	}
	return n, err
}

// claimed returns how many members a record of a large archive claims, if this is one.
func claimed(b []byte) (many uint64, is bool) {
	const record, size = "PK\x06\x06", 56
	if len(b) != size || string(b[:4]) != record {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[32:]), true
}

func (z *archive) close() error {
	if z.file == nil {
		return nil
	}
	return z.file.Close()
}

func (z *archive) has(keys ...string) bool {
	for _, k := range keys {
		if z.members[k] == nil {
			return false
		}
	}
	return true
}

// maxInflation is how many times larger than its packed bytes a member can be.
const maxInflation = 1032

// words are the arrays that may hold text.
var words = []string{"y", "labels", "class_names"}

// array reads the header of an array, and refuses one that can't be as large as it
// claims. It returns nil if there is none.
func (z *archive) array(key string) (*array, error) {
	f := z.members[key]
	if f == nil {
		return nil, nil
	}
	a := &array{name: z.name + ": " + key, key: key}
	switch packed, plain := f.CompressedSize64, f.UncompressedSize64; {
	case f.Flags&1 != 0:
		return nil, a.wrong("it is encrypted: save the file without a password")
	case plain == 0:
		return nil, a.wrong("it is empty, without even the header that says what it holds: save the array again")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, a.wrong("it is packed by method %d, and only what numpy.savez and numpy.savez_compressed write can be read: save it with one of them", f.Method)
	case packed > uint64(z.size), f.Method == zip.Store && packed != plain, plain > math.MaxInt64, (plain-min(plain, 64))/maxInflation > packed:
		return nil, a.wrong("the archive says it has %d bytes, which it can't have: copy the file again", plain)
	}
	r, err := f.Open()
	if err != nil {
		return nil, a.explain(err)
	}
	defer r.Close()
	head := numpy.ReadHeader
	if slices.Contains(words, key) {
		head = numpy.ReadAnyHeader
	}
	if a.Header, err = head(r); err != nil {
		var failed numpy.ReadError
		switch {
		case errors.As(err, &failed):
			return nil, a.explain(failed.Unwrap())
		case errors.Is(err, numpy.ErrObjects):
			const line = `python3 -c "import numpy as np; z = dict(np.load('%s', allow_pickle=True)); z['%s'] = np.array(z['%s'].tolist()); np.savez('plain.npz', **z)"`
			return nil, a.wrong("%w: if you trust the file, convert it with "+line, err, z.name, key, key)
		}
		return nil, a.wrong("%w: save it again with numpy.savez", err)
	}
	a.size, _ = a.Count()
	if bytes := uint64(a.Length) + a.size*uint64(a.DType.Size); bytes != f.UncompressedSize64 {
		return nil, a.wrong("its header claims %s numbers of type %s, which is %d bytes, and it has %d: copy the file or save it again", a.shaped(), a.DType, bytes, f.UncompressedSize64)
	}
	a.open = func(from uint64) (io.ReadCloser, error) { return z.openAt(f, a, from) }
	return a, nil
}

// openAt reads an array's numbers from the given one on. What is packed has to be
// unpacked from its beginning, which checks its checksum, too; what is not packed is
// read from there, but with the header if it is read as a whole.
func (z *archive) openAt(f *zip.File, a *array, from uint64) (io.ReadCloser, error) {
	skip := int64(a.Length) + int64(from)*int64(a.DType.Size)
	var r io.ReadCloser
	if f.Method == zip.Store {
		offset, err := f.DataOffset()
		if err != nil {
			return nil, err
		}
		plain := int64(f.UncompressedSize64)
		if offset > z.size-plain {
			return nil, io.ErrUnexpectedEOF
		}
		s := &stored{want: f.CRC32}
		if from > 0 {
			s.begin, skip = skip, 0
		}
		s.from = io.NewSectionReader(z.from, offset+s.begin, plain-s.begin)
		r = s
	} else {
		var err error
		if r, err = f.Open(); err != nil {
			return nil, err
		}
	}
	var in io.Reader = r
	if z.ctx != nil {
		in = stopping{z.ctx, r}
	}
	if _, err := io.CopyN(io.Discard, in, skip); err != nil {
		r.Close()
		return nil, numpy.CutShort(err)
	}
	if f.Method == zip.Store {
		return r, nil
	}
	return newAhead(r), nil
}

// stopping reads until a context ends.
type stopping struct {
	ctx context.Context
	io.Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Reader.Read(p)
}

// unused lists the arrays that are not in used.
func (z *archive) unused(used []string) []string {
	var rest []string
	for _, k := range z.keys {
		if !slices.Contains(used, k) {
			rest = append(rest, k)
		}
	}
	return rest
}

// ahead unpacks in a goroutine of its own while what came before is used. Close
// waits for it.
type ahead struct {
	from io.ReadCloser
	full chan aheadBlock
	free chan []byte
	stop chan struct{}
	done sync.WaitGroup
	cur  []byte
	whom []byte // what cur is of
	err  error
}

type aheadBlock struct {
	bytes []byte
	err   error
}

func newAhead(r io.ReadCloser) *ahead {
	const blocks, size = 3, 128 << 10
	a := &ahead{from: r, full: make(chan aheadBlock, blocks), free: make(chan []byte, blocks), stop: make(chan struct{})}
	for range blocks {
		a.free <- make([]byte, size)
	}
	a.done.Go(a.run)
	return a
}

func (a *ahead) run() {
	for {
		var b []byte
		select {
		case b = <-a.free:
		case <-a.stop:
			return
		}
		n, err := readUp(a.from, b)
		a.full <- aheadBlock{b[:n], err} // there is room for all blocks
		if err != nil {
			return
		}
	}
}

// readUp fills b, or returns an error.
func readUp(r io.Reader, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		got, err := r.Read(b[n:])
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (a *ahead) Read(b []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.whom != nil {
			a.free <- a.whom[:cap(a.whom)]
			a.whom = nil
		}
		block := <-a.full
		a.cur, a.whom, a.err = block.bytes, block.bytes, block.err
	}
	n := copy(b, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

func (a *ahead) Close() error {
	close(a.stop)
	a.done.Wait()
	return a.from.Close()
}

// stored reads a member that is not packed from byte begin on. Its checksum is
// checked at its end if it was read from its beginning, else by whole.
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

// whole checks the checksum of a member that two readers have read: the first one
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
