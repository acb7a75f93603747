package member

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/mesh"
)

// Disk is the numbers of data directories that this program reads; it writes the highest.
// CONTRIBUTING.md says when to raise it.
var Disk = mesh.Range{Min: 1, Max: 1}

// format is the content of the file that says how the directory is kept. Directories from before
// there were numbers have no such file, and count as 1.
type format struct {
	Disk int `json:"disk"`
	// Check is made from the number, so that a flipped bit is not taken for another version.
	// Earlier versions and people write the number alone.
	Check string `json:"check,omitempty"`
}

func newFormat(disk int) format {
	sum := sha256.Sum256(fmt.Append(nil, "disk ", disk))
	return format{Disk: disk, Check: hex.EncodeToString(sum[:8])}
}

// parseFormat parses the file.
func parseFormat(b []byte) (f format, ok bool) {
	if len(b) > maxFormat || json.Unmarshal(b, &f) != nil || f.Disk < 1 {
		return f, false
	}
	if f.Check == "" { // then nothing else may stand there
		var is bytes.Buffer
		bare, err := json.Marshal(f)
		return f, err == nil && json.Compact(&is, b) == nil && bytes.Equal(is.Bytes(), bare)
	}
	return f, f == newFormat(f.Disk)
}

// maxFormat bounds what is read of that file.
const maxFormat = 4 << 10

func (d *Dir) formatFile() string { return filepath.Join(d.path, "format.json") }

// checkFormat returns an error unless this program reads the directory, and writes down what it
// keeps from now on.
func (d *Dir) checkFormat(reads mesh.Range) error {
	is, whole := format{Disk: 1}, true
	b, err := os.ReadFile(d.formatFile())
	if err == nil {
		is, whole = parseFormat(b)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the data directory: %w", err)
	case !whole:
		return fmt.Errorf("%s is damaged, so it is not known how %s is kept: write {\"disk\":%d} into it if this version of hopmesh ran there last, or restore it from a backup", d.formatFile(), d.path, reads.Max)
	}
	if _, ok := reads.Common(mesh.Range{Min: is.Disk, Max: is.Disk}); !ok {
		which := "a later"
		if is.Disk < reads.Min {
			which = "an earlier"
		}
		return fmt.Errorf("the data directory %s is kept by number %d, as %s version of hopmesh does, and this one reads %s: start that version again, or choose another directory with --data-dir", d.path, is.Disk, which, reads)
	}
	if is == newFormat(reads.Max) {
		return nil
	}
	if b, err = json.Marshal(newFormat(reads.Max)); err != nil {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return writeWhole(d.formatFile(), b)
}
