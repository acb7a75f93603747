package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"syscall"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"golang.org/x/sys/unix"
)

// File is a file that was opened, whose tensors and metadata are those that were written. What
// they mean is not trusted: older files have no digest of their metadata.
type File struct {
	tensors *safetensors.File
}

// Open maps a file and compares its tensors with their digest.
func Open(path string) (*File, error) {
	tensors, err := safetensors.Open(path)
	return open(path, tensors, err)
}

// Parse is Open of a whole file that lies in memory. Errors call it by the name.
func Parse(name string, b []byte) (*File, error) {
	tensors, err := safetensors.Parse(name, b)
	return open(name, tensors, err)
}

// ErrDamaged marks errors of a file that is not what was written. That there is no memory for
// it, or that it may not be read, is none.
var ErrDamaged = errors.New("damaged")

// damage marks an error as ErrDamaged, and leaves its words as they are.
type damage struct{ error }

func (d damage) Unwrap() []error { return []error{d.error, ErrDamaged} }

// Damage marks an error of reading a file as ErrDamaged, unless the system is to blame.
func Damage(err error) error {
	errno, is := errors.AsType[syscall.Errno](err)
	if is && errno != unix.EIO {
		return err
	}
	return damage{err}
}

func open(name string, tensors *safetensors.File, err error) (*File, error) {
	if err != nil {
		return nil, Damage(err)
	}
	f := &File{tensors}
	if err := f.tryVerify(); err != nil {
		return nil, errors.Join(fmt.Errorf("verify %s: %w", name, Damage(err)), tensors.Close())
	}
	return f, nil
}

// tryVerify is verify of a file that may be cut short meanwhile.
func (f *File) tryVerify() (err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.Caught(&err)
	return f.verify()
}

// verify returns an error unless the file has the digests that the metadata names.
func (f *File) verify() error {
	if f.tensors.Metadata()[digestName] == "" {
		return errors.New("it is neither a checkpoint nor a model that hopmesh wrote")
	}
	digest := sha256.New()
	for _, t := range f.tensors.Tensors() {
		numbers, _, err := safetensors.View[float32](f.tensors, t.Name)
		if err != nil {
			return err
		}
		digest.Write(plain.Bytes(numbers))
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != f.tensors.Metadata()[digestName] {
		return errors.New("its numbers are not those that were written: the file is damaged")
	}
	want := f.tensors.Metadata()[aboutName]
	if want == "" {
		return nil // of a version that wrote none
	}
	got, err := aboutDigest(f.tensors.Tensors(), f.tensors.Metadata())
	if err != nil {
		return err
	}
	if got != want {
		return errors.New("what it says of its numbers is not what was written: the file is damaged")
	}
	return nil
}

// Close unmaps the file.
func (f *File) Close() error { return f.tensors.Close() }

// Digest is the digest of all tensors.
func (f *File) Digest() (d [sha256.Size]byte) {
	_, _ = hex.Decode(d[:], []byte(f.tensors.Metadata()[digestName])) // verify has compared it
	return d
}

// Has reports whether there is a tensor of that name.
func (f *File) Has(name string) bool { return f.tensors.Has(name) }

// Height returns the number of rows of a two-dimensional tensor, or 0 if the file lacks it.
func (f *File) Height(name string) int {
	_, shape, err := safetensors.View[float32](f.tensors, name)
	if err != nil || len(shape) != 2 {
		return 0
	}
	return int(shape[0])
}

// Metadata returns all fields but the digests, which are written anew.
func (f *File) Metadata() map[string]string {
	m := maps.Clone(f.tensors.Metadata())
	delete(m, digestName)
	delete(m, aboutName)
	return m
}

// Text is a field of the metadata; "" if there is none of that name.
func (f *File) Text(name string) string { return f.tensors.Metadata()[name] }

// Uint reads a field of the metadata that is a number of at most so many.
func (f *File) Uint(name string, most uint64) (uint64, error) {
	text := f.Text(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("its metadata has %q for %s, which is no number up to %d", text, name, most)
	}
	return n, nil
}

// JSON reads a field of the metadata that is JSON.
func (f *File) JSON(name string, to any) error {
	if crowded(f.Text(name)) {
		return fmt.Errorf("its %s has lists of so little that it is no JSON of ours", name)
	}
	if err := json.Unmarshal([]byte(f.Text(name)), to); err != nil {
		return fmt.Errorf("its %s is not the JSON expected: %w", name, err)
	}
	return nil
}

// crowded reports whether lists have so many short elements that they would take much more memory
// than the text: an empty object in a list may become hundreds of bytes. Of ours each says something.
func crowded(text string) bool {
	const least, free = 64, 1 << 10 // bytes of an element, and elements that may be shorter
	elements, quoted := 0, false
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[' || c == 'n':
			if len(open) > 0 && open[len(open)-1] == '[' {
				elements++
			}
			if c != 'n' {
				open = append(open, c)
			}
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	return elements > free+len(text)/least
}

// Row reads the section of a prefix into one row of so many numbers, and returns an error
// unless each param is there, in its shape, and finite. Nothing is allocated before that is
// known.
func (f *File) Row(prefix string, params []nn.Param, size int) ([]float32, error) {
	views := make([][]float32, len(params))
	for i := range params {
		var err error
		if views[i], err = f.View(prefix, &params[i]); err != nil {
			return nil, err
		}
	}
	row := make([]float32, size)
	for i, p := range params {
		copy(row[p.Offset:], views[i])
	}
	return row, nil
}

// View returns the numbers of one param of a section where they lie, as long as the file is open.
// They are checked as Row does.
func (f *File) View(prefix string, p *nn.Param) ([]float32, error) {
	name := prefix + p.Name
	numbers, shape, err := safetensors.View[float32](f.tensors, name)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(shape, []int64{int64(p.Rows), int64(p.Cols)}) {
		return nil, fmt.Errorf("its tensor %q has the shape %v, and the model's is [%d %d]: it is of another model", name, shape, p.Rows, p.Cols)
	}
	if !finite(numbers) {
		return nil, fmt.Errorf("its tensor %q has numbers that are not finite", name)
	}
	return numbers, nil
}

// finite reports whether all numbers are.
func finite(numbers []float32) bool {
	for _, x := range numbers {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}
