package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Read reads a whole backup. It calls begin with the list, and open with each file of it, in order;
// what open returns is written and closed. An error of either ends the reading. Only when Read
// has returned is it known that what was written is what the backup was made of. The result has the
// SHA-256 of each file, in hex.
func Read(from io.Reader, begin func(List) error, open func(File) (io.WriteCloser, error)) (sums map[string]string, err error) {
	r := &reader{from: from, tar: tar.NewReader(from), sums: map[string]string{}}
	list, err := r.list()
	if err != nil {
		return nil, err
	}
	if err := begin(list); err != nil {
		return nil, err
	}
	for _, f := range list.Files {
		if err := r.file(f, open); err != nil {
			return nil, err
		}
	}
	if err := r.end(list); err != nil {
		return nil, err
	}
	return r.sums, nil
}

var errStranger = errors.New("it has")

type reader struct {
	from io.Reader
	tar  *tar.Reader
	sums map[string]string
}

// next goes on to the next file, which must have this name, and returns its length.
func (r *reader) next(name string) (int64, error) {
	h, err := r.tar.Next()
	if err != nil {
		return 0, misses(name, err)
	}
	plain := h.Typeflag == tar.TypeReg && h.Linkname == ""
	for key := range h.PAXRecords {
		plain = plain && key == "size" // of a file of 8 GiB or more
	}
	switch {
	case h.Name != name:
		return 0, fmt.Errorf("%w: %w %.80q where %s belongs", ErrDamaged, errStranger, h.Name, name)
	case !plain:
		return 0, fmt.Errorf("%w: %s is no plain file in it", ErrDamaged, name)
	}
	return h.Size, nil
}

// list reads the first file.
func (r *reader) list() (l List, err error) {
	size, err := r.next(listName)
	for _, other := range []error{io.EOF, io.ErrUnexpectedEOF, tar.ErrHeader, errStranger} {
		if errors.Is(err, other) {
			return l, fmt.Errorf("%w: it does not begin with a file %s", ErrForeign, listName)
		}
	}
	if err != nil {
		return l, err
	}
	if size > maxList {
		return l, fmt.Errorf("%w: its list has %d bytes, of at most %d", ErrDamaged, size, maxList)
	}
	var b bytes.Buffer
	if err := r.copy(&b, File{listName, size}); err != nil {
		return l, err
	}
	// The number is looked at first: the rest may mean something else in another format.
	var head struct {
		Format int `json:"format"`
	}
	err = json.Unmarshal(b.Bytes(), &head)
	if err == nil && head.Format == Format {
		err = json.Unmarshal(b.Bytes(), &l)
	}
	l.Format = head.Format
	if err != nil {
		return l, fmt.Errorf("%w: its list can't be read: %w", ErrDamaged, err)
	}
	return l, l.check()
}

func (r *reader) file(f File, open func(File) (io.WriteCloser, error)) error {
	size, err := r.next(f.Name)
	if err != nil {
		return err
	}
	if size != f.Bytes {
		return fmt.Errorf("%w: %s has %d bytes, and its list says %d", ErrDamaged, f.Name, size, f.Bytes)
	}
	to, err := open(f)
	if err != nil {
		return err
	}
	return errors.Join(r.copy(to, f), to.Close())
}

// copy reads the file that next has found.
func (r *reader) copy(to io.Writer, f File) error {
	h := sha256.New()
	out := &writer{to: to}
	n, err := io.Copy(io.MultiWriter(h, out), r.tar)
	switch {
	case out.err != nil:
		return out.err
	case err != nil || n != f.Bytes:
		return misses(f.Name, err)
	}
	r.sums[f.Name] = hex.EncodeToString(h.Sum(nil))
	return nil
}

// end reads the last file, and compares.
func (r *reader) end(l List) error {
	size, err := r.next(sumsName)
	if err != nil {
		return err
	}
	if size != l.sumsLength() {
		return fmt.Errorf("%w: %s has %d bytes, and %d files take %d", ErrDamaged, sumsName, size, len(l.Files), l.sumsLength())
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, r.tar); err != nil {
		return misses(sumsName, err)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	for i, f := range append([]File{{Name: listName}}, l.Files...) {
		if i >= len(lines) || lines[i] != sumLine(r.sums[f.Name], f.Name) {
			return fmt.Errorf("%w: %s has not the SHA-256 that it was written with", ErrDamaged, f.Name)
		}
	}
	if h, err := r.tar.Next(); err == nil {
		return fmt.Errorf("%w: it has %.80q after its end", ErrDamaged, h.Name)
	} else if !errors.Is(err, io.EOF) {
		return misses("its end", err)
	}
	if n, _ := io.ReadFull(r.from, make([]byte, 1)); n > 0 {
		return fmt.Errorf("%w: there is something after its end", ErrDamaged)
	}
	return nil
}

// writer remembers the error of writing.
type writer struct {
	to  io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = err
	return n, err
}
