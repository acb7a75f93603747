// Package checkpoint writes sections of numbers to files and reads them back, and keeps the
// last files of a run. It knows neither what was learnt nor by which recipe.
//
// A file is in the safetensors format: a tensor for each param of each section, and in its
// metadata what the caller says of them, beside a digest of all tensors.
package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

const (
	// digestName is the metadata's name for the digest of all tensors, one after the other.
	digestName = "tensors_sha256"
	// aboutName is that for the digest of everything else: the rest of the metadata, and the
	// tensors' names, types and shapes. Older files have none.
	aboutName = "about_sha256"
)

// aboutDigest returns the digest of what a file says of its numbers.
func aboutDigest(tensors []safetensors.Tensor, metadata map[string]string) (string, error) {
	about := maps.Clone(metadata)
	delete(about, aboutName)
	b, err := json.Marshal(struct { // it sorts the names
		Tensors  []safetensors.Tensor
		Metadata map[string]string
	}{tensors, about})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Section is one row of numbers, one for each weight of a model, which a file holds as a
// tensor per param. A tensor's name is the prefix followed by the param's.
type Section struct {
	Prefix string
	Read   func(to []float32) []float32 // returns the row, in to or elsewhere
	Params []nn.Param
	Here   bool // Read returns the row where it lies, and needs no room
	// Parts passes the row on in parts, in place of Read, where it is larger than memory. Such a
	// section has one param, and is read once for a file.
	Parts func(write func(some []float32) error) error
}

// Row is the section of a row that lies on a device.
func Row(prefix string, device tensor.Device, row tensor.Matrix, params []nn.Param) Section {
	return Section{Prefix: prefix, Read: func(to []float32) []float32 {
		to = slices.Grow(to[:0], row.Cols)[:row.Cols]
		device.Read32(to, row)
		return to
	}, Params: params}
}

// Extra is what a training method adds to the checkpoints of one model, beside weights and
// the optimizer's moments. All methods are given how many steps of an epoch are done.
type Extra interface {
	// Sections returns what a checkpoint holds.
	Sections(done int) []Section
	// Read returns the rows of a file's sections. It changes nothing.
	Read(f *File, done int) (rows [][]float32, err error)
	// Adopt goes on from rows that Read has returned.
	Adopt(rows [][]float32, done int)
	// MaxBytes is the size of all sections of a checkpoint, at most.
	MaxBytes() uint64
}

// Write writes a file: its header, with digests of all tensors and of what it says of them,
// then each param of each section. It adds the digests to the metadata.
func Write(w io.Writer, sections []Section, metadata map[string]string) error {
	tensors, numbers := tensorsOf(sections)
	digest := sha256.New()
	if err := writeNumbers(digest, sections, numbers); err != nil {
		return err
	}
	metadata[digestName] = hex.EncodeToString(digest.Sum(nil))
	var err error
	if metadata[aboutName], err = aboutDigest(tensors, metadata); err != nil {
		return err
	}
	layout, err := safetensors.NewLayout(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(layout.Header()); err != nil {
		return err
	}
	return writeNumbers(w, sections, numbers)
}

// tensorsOf lists the tensors of sections, and returns the length of the longest row that needs
// room.
func tensorsOf(sections []Section) (all []safetensors.Tensor, numbers int) {
	for _, s := range sections {
		n := 0
		for _, p := range s.Params {
			all = append(all, safetensors.Tensor{Name: s.Prefix + p.Name, DType: safetensors.F32, Shape: []int64{int64(p.Rows), int64(p.Cols)}})
			n = max(n, p.Offset+p.Rows*p.Cols)
		}
		if !s.Here {
			numbers = max(numbers, n)
		}
	}
	return all, numbers
}

func writeNumbers(w io.Writer, sections []Section, numbers int) error {
	buffer := make([]float32, numbers)
	for _, s := range sections {
		if s.Parts != nil {
			if err := writeParts(w, &s); err != nil {
				return err
			}
			continue
		}
		row := s.Read(buffer)
		for _, p := range s.Params {
			if _, err := w.Write(plain.Bytes(row[p.Offset:][:p.Rows*p.Cols])); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeParts writes a section that comes in parts.
func writeParts(w io.Writer, s *Section) error {
	left := s.Params[0].Rows * s.Params[0].Cols
	err := s.Parts(func(some []float32) error {
		left -= len(some)
		_, err := w.Write(plain.Bytes(some))
		return err
	})
	if err == nil && left != 0 {
		err = fmt.Errorf("%d numbers of the tensor %s%s are missing", left, s.Prefix, s.Params[0].Name)
	}
	return err
}

// writeOnce is Write that reads each section once: the header, which has digests of all numbers, comes
// last.
func writeOnce(file *os.File, sections []Section, metadata map[string]string) error {
	tensors, numbers := tensorsOf(sections)
	metadata[digestName] = strings.Repeat("0", 2*sha256.Size)
	metadata[aboutName] = metadata[digestName]
	layout, err := safetensors.NewLayout(tensors, metadata)
	if err != nil {
		return err
	}
	room := int64(len(layout.Header()))
	if _, err := file.Seek(room, io.SeekStart); err != nil {
		return err
	}
	digest := sha256.New()
	if err := writeNumbers(io.MultiWriter(file, digest), sections, numbers); err != nil {
		return err
	}
	metadata[digestName] = hex.EncodeToString(digest.Sum(nil))
	if metadata[aboutName], err = aboutDigest(tensors, metadata); err != nil {
		return err
	}
	if layout, err = safetensors.NewLayout(tensors, metadata); err != nil {
		return err
	}
	if int64(len(layout.Header())) != room {
		return errors.New("the header of a file has another length than before its numbers were known")
	}
	_, err = file.WriteAt(layout.Header(), 0)
	return err
}

// WriteFile writes a file whole or not at all. The fault function is asked once all numbers
// have been read: if it returns an error, they mean nothing, and the file at path stays as
// it was.
func WriteFile(path string, sections []Section, metadata map[string]string, fault func() error) (err error) {
	// The name is fixed, so that what a crash leaves is overwritten the next time.
	file, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	write := func() error { return Write(file, sections, metadata) }
	if slices.ContainsFunc(sections, func(s Section) bool { return s.Parts != nil }) {
		write = func() error { return writeOnce(file, sections, metadata) }
	}
	if err = write(); err == nil {
		err = file.Sync()
	}
	// One error says why; what follows it on a full disk says no more.
	closed, broken := file.Close(), fault()
	if err = cmp.Or(broken, err, closed); err != nil {
		return err
	}
	return replace(path)
}

// replace puts the temporary file beside a path in its place.
func replace(path string) error {
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
