package read

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// openParquet reads tables in Parquet or Arrow (Feather) files: an edge file, or a
// folder of edges and optionally features, labels and splits.
func openParquet(ctx context.Context, path string, o Options) (graph.Source, error) {
	return openTables(ctx, path, "parquet", parquetFiles, o)
}

// parquetFile is read with a decoder of this package's own, because those there are
// take memory by what a file claims, in its footer, its pages and its runs. It knows
// what pyarrow, pandas, polars, DuckDB and Spark write unless told otherwise.
type parquetFile struct {
	f    *os.File
	meta *parquetMeta
}

var _ columnFile = (*parquetFile)(nil)

func openParquetTable(path string, kind tableKind) (table, error) {
	name := filepath.Base(path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	meta, err := readParquetMeta(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is no Parquet file that can be read (%w): write it again", name, err)
	}
	return newColumnTable(name, kind, &parquetFile{f: f, meta: meta})
}

func (p *parquetFile) rows() uint64 { return uint64(p.meta.rows) }
func (p *parquetFile) close() error { return p.f.Close() }

func (p *parquetFile) columns() []columnAbout {
	var out []columnAbout
	for _, f := range p.meta.fields {
		c := columnAbout{name: f.name}
		if f.leaf >= 0 {
			l := &p.meta.leaves[f.leaf]
			c.kind, c.list, c.unsigned = l.kind, l.list, l.unsigned && l.physical == parquetInt64
		}
		out = append(out, c)
	}
	return out
}

// parquetRows goes through the row groups of a file.
type parquetRows struct {
	file   *parquetFile
	leaves []int
	group  int   // the next one
	left   int64 // rows of the one that is open
	open   []*parquetColumn
	values []*columnValues
}

func (p *parquetFile) open(wanted []int) (columnReader, error) {
	r := &parquetRows{file: p}
	for _, field := range wanted {
		leaf := p.meta.fields[field].leaf
		r.leaves = append(r.leaves, leaf)
		r.values = append(r.values, &columnValues{kind: p.meta.leaves[leaf].kind})
	}
	return r, nil
}

func (r *parquetRows) close() {
	for _, c := range r.open {
		c.pages.close()
	}
	r.open = nil
}

func (r *parquetRows) next(most int) (int, []*columnValues, error) {
	for r.left == 0 {
		r.close()
		if r.group == len(r.file.meta.groups) {
			return 0, nil, io.EOF
		}
		g := &r.file.meta.groups[r.group]
		r.group++
		r.left = g.rows
		for _, leaf := range r.leaves {
			c := &g.chunks[leaf]
			r.open = append(r.open, &parquetColumn{leaf: &r.file.meta.leaves[leaf], pages: newPages(r.file.f, c), most: c.values})
		}
	}
	n := int(min(int64(most), r.left))
	for i, c := range r.open {
		r.values[i].reset()
		if err := c.read(r.values[i], n); err != nil {
			return 0, nil, fmt.Errorf("column %s: %w", r.file.meta.fields[c.leaf.field].name, err)
		}
	}
	r.left -= int64(n)
	return n, r.values, nil
}
