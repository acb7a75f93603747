package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// openCSV reads tables of text: an edge file, or a folder of edges and optionally
// features, labels and splits. A folder may mix them with Parquet and Arrow files.
//
// Fields lie between tabs, semicolons, commas or blanks; quotes are RFC 4180's, and
// lines that begin with # or % are comments. Of edges the columns src, dst and
// weight are taken (or source, from, u and target, to, v), without a header line the
// first, second and third. Features are all columns but id, which is the first if
// none is called so. Labels are id and label; empty, -1 and nan are missing. Splits
// are id and split, or split_0, split_1 and so on, without a header line each column
// behind the first: train, val (valid, validation) or test, or empty.
func openCSV(ctx context.Context, path string, o Options) (graph.Source, error) {
	return openTables(ctx, path, "csv", csvFiles, o)
}

// Bounds of a line. A row of features may have very many columns.
const (
	maxLine         = 64 << 10
	maxFeaturesLine = 64 << 20
)

// A csvTable is a file of lines with delimiters, packed by gzip or not.
type csvTable struct {
	path   string
	size   uint64
	kind   tableKind
	layout csvLayout
	notes  []string
}

var _ table = (*csvTable)(nil)

func openCSVTable(ctx context.Context, path string, kind tableKind) (table, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	t := &csvTable{path: path, size: uint64(info.Size()), kind: kind}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s is empty: write %s", t.name(), kind.wants())
	}
	l, err := openLines(ctx, path, t.bound(), nil)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.fill(ctx); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if t.layout, err = layOut(t.name(), kind, l.cur, l.last); err != nil {
		return nil, err
	}
	t.notes = t.layout.notes(t.name(), kind)
	return t, nil
}

func (t *csvTable) name() string { return filepath.Base(t.path) }

func (t *csvTable) bound() int {
	if t.kind == featuresTable {
		return maxFeaturesLine
	}
	return maxLine
}

func (t *csvTable) about() tableAbout {
	return tableAbout{name: t.name(), unit: "line", width: len(t.layout.value), text: t.layout.text, notes: t.notes}
}

func (t *csvTable) close() error { return nil }

// scan reads the file from its beginning.
func (t *csvTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	l, err := openLines(ctx, t.path, t.bound(), t.progress(how))
	if err != nil {
		return err
	}
	defer l.close()
	s := csvScan{csvTable: t, scanning: how, lineReader: l, splitter: fieldSplitter{delimiter: t.layout.delimiter}, skip: t.layout.header}
	for {
		if err := l.fill(ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		whole := l.cur
		for len(l.cur) > 0 {
			if s.fast() {
				s.fastEdges()
			}
			if len(l.cur) > 0 && !s.batch.full() {
				if err := s.record(); errors.Is(err, errUnfinished) {
					break
				} else if err != nil {
					return err
				}
			}
			if s.batch.full() {
				if err := yield(&s.batch); err != nil {
					return err
				}
				s.batch.reset()
			}
		}
		if len(l.cur) == 0 {
			l.release(whole)
		}
	}
	if s.batch.n > 0 {
		return yield(&s.batch)
	}
	return nil
}

// progress turns the bytes read into reports, ten a second at most.
func (t *csvTable) progress(how scanning) func(uint64) {
	if how.tell == nil {
		return nil
	}
	var told time.Time
	return func(read uint64) {
		if now := time.Now(); now.Sub(told) >= 100*time.Millisecond || read == t.size {
			told = now
			how.tell(graph.Progress{Stage: "reading " + t.name(), Done: read, Total: max(read, t.size), Unit: "bytes"})
		}
	}
}

// csvScan is one way through a file.
type csvScan struct {
	*csvTable
	scanning
	*lineReader
	splitter fieldSplitter
	skip     bool // the header is still to come
	batch    rowBatch
}

// wrong is an error in the line that is being read.
func (s *csvScan) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %w", s.about().at(s.line), fmt.Errorf(format, args...))
}

// record takes one record, in whichever layout.
func (s *csvScan) record() error {
	n, ends, err := s.splitter.next(s.cur, s.last)
	switch {
	case errors.Is(err, errUnfinished):
		return err
	case errors.Is(err, errOpenQuote):
		return s.wrong("a quote is not closed: close it, or write a quote inside quotes twice")
	case errors.Is(err, errBareReturn):
		return s.wrong("a carriage return stands inside the line: end lines with a line feed, or with both")
	case errors.Is(err, errAfterQuote):
		return s.wrong("text stands behind a closing quote: write a quote inside quotes twice")
	}
	if n > s.bound() {
		return s.explain(errLongLine)
	}
	if err == nil {
		if s.skip {
			s.skip = false
		} else if err := s.row(s.splitter.fields); err != nil {
			return err
		}
	}
	s.cur = s.cur[n:]
	s.line += uint64(ends)
	return nil
}

func (s *csvScan) row(fields [][]byte) error {
	l := &s.layout
	if len(fields) != l.columns {
		return s.wrong("there are %d columns and the first row has %d: write %s", len(fields), l.columns, s.kind.wants())
	}
	for i, column := range l.id[:s.kind.ids()] {
		if err := s.id(&s.batch.ids[i], fields[column]); err != nil {
			return err
		}
	}
	s.batch.n++
	if s.kind != edgesTable {
		s.batch.rows = append(s.batch.rows, s.line)
	}
	if s.idsOnly {
		return nil
	}
	for i, column := range l.value {
		if err := s.value(i, fields[column]); err != nil {
			return err
		}
	}
	return nil
}

func (s *csvScan) id(c *idColumn, field []byte) error {
	if len(field) == 0 {
		return s.wrong("an id is empty: write %s", s.kind.wants())
	}
	if !s.text {
		v, ok := parseID(field)
		if !ok {
			return errNotInteger
		}
		c.ints = append(c.ints, v)
		return nil
	}
	if !utf8.Valid(field) {
		return s.wrong("the id %s is not UTF-8: save the file as UTF-8", shorten(field))
	}
	c.addText(field)
	return nil
}

// value takes the i-th value of a row.
func (s *csvScan) value(i int, field []byte) error {
	switch s.kind {
	case edgesTable, featuresTable:
		v, err := parseFloat(field)
		if err != nil {
			what := "weight"
			if s.kind == featuresTable {
				what = fmt.Sprintf("feature in column %d", s.layout.value[i]+1)
			}
			return s.wrong("%w", explainNumber(what, field, err))
		}
		s.batch.floats = append(s.batch.floats, v)
	case labelsTable:
		v, err := parseLabel(field)
		if err != nil {
			return s.wrong("%w", err)
		}
		s.batch.labels = append(s.batch.labels, v)
	case splitsTable:
		m, err := parseMark(field)
		if err != nil {
			return s.wrong("%w", err)
		}
		s.batch.marks = append(s.batch.marks, m)
	}
	return nil
}
