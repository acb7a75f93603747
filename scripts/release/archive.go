package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or with a name that ends in a slash a folder.
type entry struct {
	name string
	from string // a file, unless data is set
	data []byte
	mode int64
}

// writeArchive writes a compressed tar file. What it holds depends on nothing but the
// entries' names, contents and modes, and the date.
func writeArchive(to string, entries []entry, date time.Time) (err error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// A gzip header without a name and a date.
	z, err := gzip.NewWriterLevel(f, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		if err := e.write(t, date); err != nil {
			return fmt.Errorf("pack %s into %s: %w", e.name, filepath.Base(to), err)
		}
	}
	return errors.Join(t.Close(), z.Close(), f.Chmod(0o644))
}

func (e entry) write(t *tar.Writer, date time.Time) error {
	h := &tar.Header{Name: e.name, Mode: e.mode, ModTime: date, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if strings.HasSuffix(e.name, "/") {
		h.Typeflag = tar.TypeDir
		return t.WriteHeader(h)
	}
	data := e.data
	if data == nil {
		var err error
		if data, err = os.ReadFile(e.from); err != nil {
			return err
		}
	}
	h.Size = int64(len(data))
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(data)
	return err
}

// below returns an entry for each file of a folder, named from prefix on.
func below(dir, prefix string) ([]entry, error) {
	var list []entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		list = append(list, entry{name: path.Join(prefix, filepath.ToSlash(name)), from: file, mode: 0o644})
		return err
	})
	return list, err
}

// compressAll writes each file of a pattern into a folder, as NAME.gz without a date.
func compressAll(pattern, into string) error {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no files %s", pattern)
	}
	if err = errors.Join(err, os.MkdirAll(into, 0o700)); err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		_, err = z.Write(data)
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(file)+".gz"), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}
