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
)

var errShrunk = errors.New("it became shorter while it was read: make the backup again")

// Writer writes a backup.
type Writer struct {
	tar  *tar.Writer
	list List
	next int
	sums bytes.Buffer
}

// NewWriter begins a backup with its list.
func NewWriter(to io.Writer, list List) (*Writer, error) {
	list.Format = Format
	if err := list.check(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("write the list of the backup: %w", err)
	}
	if len(b) > maxList {
		return nil, fmt.Errorf("the list of the backup takes %d bytes, of at most %d: leave datasets out", len(b), maxList)
	}
	w := &Writer{tar: tar.NewWriter(to), list: list}
	_, err = w.put(File{listName, int64(len(b))}, bytes.NewReader(b))
	return w, err
}

// Add writes the next file of the list, and returns its SHA-256 in hex. It returns an error if
// from has fewer bytes than the list says; what it has beyond them is not read.
func (w *Writer) Add(from io.Reader) (sum string, err error) {
	f := w.list.Files[w.next]
	w.next++
	return w.put(f, from)
}

// Close writes the end, once all files of the list are written. It does not close what the backup
// is written to.
func (w *Writer) Close() error {
	if w.next < len(w.list.Files) {
		return fmt.Errorf("the backup lacks %d files of its list", len(w.list.Files)-w.next)
	}
	sums := bytes.Clone(w.sums.Bytes())
	if _, err := w.put(File{sumsName, int64(len(sums))}, bytes.NewReader(sums)); err != nil {
		return err
	}
	return w.tar.Close()
}

func (w *Writer) put(f File, from io.Reader) (sum string, err error) {
	err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: f.Bytes, Mode: 0o600, ModTime: w.list.Made})
	if err != nil {
		return "", fmt.Errorf("write %s of the backup: %w", f.Name, err)
	}
	h := sha256.New()
	_, err = io.CopyN(io.MultiWriter(w.tar, h), from, f.Bytes)
	if errors.Is(err, io.EOF) {
		err = errShrunk
	}
	if err != nil {
		return "", fmt.Errorf("write %s of the backup: %w", f.Name, err)
	}
	sum = hex.EncodeToString(h.Sum(nil))
	w.sums.WriteString(sumLine(sum, f.Name))
	return sum, nil
}
