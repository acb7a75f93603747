// Package kept holds what a program has measured in a file of one JSON object per line, so that it
// goes on where it was stopped.
package kept

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File is such a file and what is in it. One goroutine may use it at a time.
type File[T any] struct {
	Items []T
	name  string
	text  []byte // the file's whole lines
}

// Load reads a file, which need not exist. A line that was cut off when the program was stopped is
// left out.
func Load[T any](name string) (*File[T], error) {
	k := &File[T]{name: name}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return k, nil // and nothing, or half a line
		}
		if err != nil {
			return nil, err
		}
		var item T
		if err := json.Unmarshal(line, &item); err != nil {
			return nil, fmt.Errorf("%s has a line that is no run: remove it: %w", name, err)
		}
		k.Items, k.text = append(k.Items, item), append(k.text, line...)
	}
}

// Add writes the file with one more item at once.
func (k *File[T]) Add(item T) error {
	line, err := json.Marshal(item)
	if err != nil {
		return err
	}
	k.Items, k.text = append(k.Items, item), append(append(k.text, line...), '\n')
	beside := k.name + ".new"
	if err := os.WriteFile(beside, k.text, 0o600); err != nil {
		return err
	}
	return os.Rename(beside, k.name)
}
