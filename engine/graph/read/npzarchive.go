package read

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An archive is a zip file of arrays, which is what NumPy's savez writes. Arrays
// are read from it as they are needed.
type archive struct {
	name    string // for sentences
	from    io.ReaderAt
	size    int64
	members map[string]*zip.File
	keys    []string // of members, in their order
	file    *os.File // nil if it is not a file
}

func openArchive(path string) (*archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	if info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s is a folder: give the path of an .npz file in it", path)
	}
	z, err := newArchive(filepath.Base(path), f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	z.file = f
	return z, nil
}

func newArchive(name string, r io.ReaderAt, size int64) (*archive, error) {
	z := &archive{name: name, from: r, size: size, members: map[string]*zip.File{}}
	list, err := zip.NewReader(r, size)
	if err != nil {
		var begin [6]byte
		if n, _ := r.ReadAt(begin[:], 0); n == len(begin) && string(begin[:]) == "\x93NUMPY" {
			return nil, fmt.Errorf("%s is a single array of NumPy (.npy), not an archive of them: save all arrays of the graph with numpy.savez", name)
		}
		return nil, fmt.Errorf("%s is no whole zip archive (%w), as NumPy's savez writes it: copy the file again", name, err)
	}
	for _, f := range list.File {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if z.members[key] != nil {
			return nil, fmt.Errorf("%s: %s: there are two arrays of this name: save the file again", name, shorten([]byte(key)))
		}
		z.members[key] = f
		z.keys = append(z.keys, key)
	}
	return z, nil
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

// maxInflation is how many times larger deflate can make what it packed.
const maxInflation = 1032

// array reads the header of an array, and refuses one that can't be as large as it
// says. It returns nil if there is none.
func (z *archive) array(key string) (*array, error) {
	f := z.members[key]
	if f == nil {
		return nil, nil
	}
	a := &array{name: z.name + ": " + key, key: key}
	switch packed, plain := f.CompressedSize64, f.UncompressedSize64; {
	case f.Flags&1 != 0:
		return nil, a.wrong("it is encrypted: save the file without a password")
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
	if a.npyHeader, err = readNPYHeader(r); err != nil {
		var failed failedRead
		switch {
		case errors.As(err, &failed):
			return nil, a.explain(failed.error)
		case errors.Is(err, errObjects):
			const line = `python3 -c "import numpy as np; z = dict(np.load('%s', allow_pickle=True)); z['%s'] = np.array(z['%s'].tolist()); np.savez('plain.npz', **z)"`
			return nil, a.wrong("%w: if you trust the file, convert it with "+line, err, z.name, key, key)
		}
		return nil, a.wrong("%w: save it again with numpy.savez", err)
	}
	a.size, _ = a.count()
	if bytes := uint64(a.length) + a.size*uint64(a.dtype.size); bytes != f.UncompressedSize64 {
		return nil, a.wrong("its header claims %s numbers of type %s, which is %d bytes, and it has %d: copy the file or save it again", a.shaped(), a.dtype, bytes, f.UncompressedSize64)
	}
	a.open = func(from uint64) (io.ReadCloser, error) { return z.openAt(f, a, from) }
	return a, nil
}

// openAt reads an array's numbers from the given one on. What is packed has to be
// unpacked from its beginning, which proves its checksum too; what is not packed is
// read from there, but with the header if it is read as a whole.
func (z *archive) openAt(f *zip.File, a *array, from uint64) (io.ReadCloser, error) {
	skip := int64(a.length) + int64(from)*int64(a.dtype.size)
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
	if _, err := io.CopyN(io.Discard, r, skip); err != nil {
		r.Close()
		return nil, cutShort(err)
	}
	if f.Method == zip.Store {
		return r, nil
	}
	return newAhead(r), nil
}

// unused lists the arrays that no one asked for.
func (z *archive) unused(used []string) []string {
	var rest []string
	for _, k := range z.keys {
		if !slices.Contains(used, k) {
			rest = append(rest, k)
		}
	}
	return rest
}
