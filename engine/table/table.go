// Package table writes tables of numbers in formats that other programs read: NPY and
// Parquet.
package table

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A Header describes the table to be written.
type Header struct {
	Rows    int
	Columns []string // names, for Parquet
	// Names reports whether ids are strings, not integers. NPY holds no ids.
	Names bool
	// Answers describes the columns if they are scores of classes; nil: they are not. NPY
	// holds the scores alone.
	Answers *Answers
}

// A Writer writes rows in order. Close returns an error if rows are missing.
type Writer interface {
	// Write appends rows: len(Columns) numbers for each id.
	Write(ids [][]byte, rows []float32) error
	Close() error
}

// Formats lists the file name extensions that New supports.
var Formats = []string{".npy", ".parquet"}

// Format returns the element of Formats that a file's name ends in.
func Format(file string) (string, error) {
	format := strings.ToLower(filepath.Ext(file))
	if !slices.Contains(Formats, format) {
		return "", fmt.Errorf("%s ends in none of %s: the name says what is written", file, strings.Join(Formats, ", "))
	}
	return format, nil
}

// New returns a writer to w in one of Formats.
func New(w io.Writer, format string, h Header) (Writer, error) {
	switch format {
	case ".npy":
		return newNPY(w, h)
	case ".parquet":
		return newParquet(w, h)
	}
	return nil, fmt.Errorf("there is no format %q", format)
}

// Memory returns how much memory a writer takes at most, if it is given no more than 1024
// rows at a time.
func Memory(format string, h Header) uint64 {
	const atOnce, others, answerColumns = 1024, 1 << 20, 4
	buffers := others + 8*atOnce*uint64(len(h.Columns)+answerColumns)
	if format == ".parquet" {
		buffers += parquetMemory(h)
	}
	return buffers
}

var errRows = errors.New("more rows than were announced, or fewer")

// tally checks the rows written against the announced number.
type tally struct {
	columns, left int
}

func (t *tally) take(ids [][]byte, rows []float32) error {
	t.left -= len(ids)
	if t.left < 0 || len(rows) != len(ids)*t.columns {
		return errRows
	}
	return nil
}

func (t *tally) end() error {
	if t.left != 0 {
		return errRows
	}
	return nil
}
