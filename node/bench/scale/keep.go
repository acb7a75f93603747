package scale

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A kept row is a finished cell: a line of the file of rows.
type row struct {
	Key     string `json:"key"`
	Name    string `json:"cell"`
	Program string `json:"program"` // digest of the binary
	Version string `json:"version"`
	Measured
}

// kept holds the finished cells, in a file of one JSON object per line.
type kept struct {
	file    string
	program string // rows of others are not taken; "": all are
	rows    map[string]row
}

// load reads the rows of a file, which need not exist. A last line that is cut off, as a
// killed run leaves it, is dropped.
func load(file, program string) (*kept, error) {
	k := &kept{file: file, program: program, rows: map[string]row{}}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the finished cells: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, mib)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err == nil && (program == "" || r.Program == program) {
			k.rows[r.Key] = r
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the finished cells: %w", err)
	}
	return k, nil
}

// of returns a cell's row, if it was measured with the same bound.
func (k *kept) of(c cell, bound uint64) (row, bool) {
	r, ok := k.rows[c.key()]
	return r, ok && r.Bound == bound
}

// add keeps a row.
func (k *kept) add(r row) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep a finished cell: %w", err)
	}
	f, err := os.OpenFile(k.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("keep a finished cell: %w", err)
	}
	// A line of its own, also after one that a killed run cut off.
	if _, err = f.Write(append(append([]byte("\n"), text...), '\n')); err != nil {
		return errors.Join(fmt.Errorf("keep a finished cell: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("keep a finished cell: %w", err)
	}
	k.rows[r.Key] = r
	return nil
}
