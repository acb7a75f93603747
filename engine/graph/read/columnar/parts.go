package columnar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
)

// partedFile is a table that lies in a folder of Parquet files, as Spark and Dask
// write it: part-00000-ID.parquet and so on, beside files such as _SUCCESS that hold
// no rows. One part is open at a time.
type partedFile struct {
	ctx   context.Context // of the import: parts are opened while rows are read
	paths []string
	limit uint64
	about []About
	total uint64
}

var _ File = (*partedFile)(nil)

// IsPart reports whether a file's name is that of a part.
func IsPart(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".parquet") && (strings.HasPrefix(name, "part-") || strings.HasPrefix(name, "part."))
}

// PartsIn returns the parts in a folder, in the order of their names.
func PartsIn(ctx context.Context, folder string) ([]string, error) {
	names, err := files.List(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", files.Show(folder), err)
	}
	var paths []string
	for _, name := range names {
		if !IsPart(name) {
			continue
		}
		path := files.Join(folder, name)
		if what, err := files.Look(ctx, path); err != nil {
			return nil, fmt.Errorf("look at %s: %w", files.Show(path), err)
		} else if what != files.Regular {
			return nil, fmt.Errorf("%s is not a regular file: put the part itself there", files.Show(path))
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// openParts opens a folder's parts one after another, to compare their columns.
func openParts(ctx context.Context, folder string, limit uint64) (*partedFile, error) {
	paths, err := PartsIn(ctx, folder)
	if err != nil {
		return nil, err
	}
	p := &partedFile{ctx: ctx, paths: paths, limit: limit}
	for i, path := range paths {
		f, err := openParquetFile(ctx, path, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files.Base(folder), err)
		}
		about, rows := f.Columns(), f.Rows()
		f.Close()
		if i == 0 {
			p.about = about
		} else if !slices.Equal(about, p.about) {
			return nil, fmt.Errorf("%s: %s has other columns than %s: write all parts of a table with the same columns", files.Base(folder), files.Base(path), files.Base(paths[0]))
		}
		p.total += rows
	}
	return p, nil
}

func (p *partedFile) Columns() []About { return p.about }
func (p *partedFile) Rows() uint64     { return p.total }
func (p *partedFile) Close() error     { return nil }

func (p *partedFile) Open(wanted []int) (Reader, error) {
	return &partedRows{parts: p, wanted: wanted}, nil
}

// partedRows goes through the parts.
type partedRows struct {
	parts  *partedFile
	wanted []int
	part   int // the next one
	file   *parquetFile
	rows   Reader
}

func (r *partedRows) Close() {
	if r.file != nil {
		r.rows.Close()
		r.file.Close()
		r.file = nil
	}
}

func (r *partedRows) Next(most int) (n int, columns []*Values, err error) {
	for {
		if r.file == nil {
			if r.part == len(r.parts.paths) {
				return 0, nil, io.EOF
			}
			if r.file, err = openParquetFile(r.parts.ctx, r.parts.paths[r.part], r.parts.limit); err != nil {
				return 0, nil, err
			}
			if !slices.Equal(r.file.Columns(), r.parts.about) {
				return 0, nil, fmt.Errorf("%s was changed while it was read: import it again when nothing writes to it", files.Base(r.parts.paths[r.part]))
			}
			r.part++
			if r.rows, err = r.file.Open(r.wanted); err != nil {
				return 0, nil, err
			}
		}
		n, columns, err := r.rows.Next(most)
		if errors.Is(err, io.EOF) {
			r.Close()
			continue
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", files.Base(r.parts.paths[r.part-1]), err)
		}
		return n, columns, err
	}
}
