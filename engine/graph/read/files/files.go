// Package files opens and lists what a graph is read from, by its name: a path of this
// machine, or an address that package web reads.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/web"
)

// A File is read at any offset.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Open opens a file. ctx must last until it is closed.
func Open(ctx context.Context, name string) (File, error) {
	if web.Is(name) {
		f, err := web.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	// To open a pipe waits for somebody who writes to it, and no context ends that.
	if info, err := os.Stat(name); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a file nor a folder: copy what it holds to a file first", Show(name))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder: give the path of a file in it", Base(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return local{f}, nil
}

type local struct{ *os.File }

// Size returns how large the file is now: if it grows while it is read, that is noticed.
func (l local) Size() int64 {
	info, err := l.Stat()
	if err != nil {
		return 0 // reads fail, too
	}
	return info.Size()
}

// What a name stands for.
type What int

// Other is neither a file nor a folder, such as a pipe.
const (
	Other What = iota
	Regular
	Folder
)

// Look returns what a name stands for. That something may be missing behind http is only
// found when it is opened.
func Look(ctx context.Context, name string) (What, error) {
	if web.Is(name) {
		is, err := web.IsFile(ctx, name)
		if err != nil || is {
			return Regular, err
		}
		entries, err := web.List(ctx, name)
		if err == nil && len(entries) == 0 {
			err = fmt.Errorf("there is neither a file nor a folder at %s: check the address", web.Show(name))
		}
		return Folder, err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return Other, err
	case info.IsDir():
		return Folder, nil
	case info.Mode().IsRegular():
		return Regular, nil
	}
	return Other, nil
}

// Check returns an error if name stands for neither a file nor a folder: a pipe or a device
// could hold the reader forever.
func Check(ctx context.Context, name string) error {
	if web.Is(name) {
		_, err := Look(ctx, name)
		return err
	}
	return source.Regular(name)
}

// List returns the names of what lies in a folder, in their order.
func List(ctx context.Context, name string) ([]string, error) {
	var names []string
	if web.Is(name) {
		entries, err := web.List(ctx, name)
		for _, e := range entries {
			names = append(names, e.Name)
		}
		return names, err
	}
	entries, err := os.ReadDir(name)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Base returns the last element of a name.
func Base(name string) string {
	if web.Is(name) {
		return web.Base(name)
	}
	return filepath.Base(name)
}

// Join returns the name of something in a folder.
func Join(folder, name string) string {
	if web.Is(folder) {
		return web.Join(folder, name)
	}
	return filepath.Join(folder, name)
}

// Show returns a name for a sentence.
func Show(name string) string {
	if web.Is(name) {
		return web.Show(name)
	}
	return name
}
