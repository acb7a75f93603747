package tabular

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/records"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A csvTable reads a file of delimited lines, compressed by gzip or not.
type csvTable struct {
	path     string
	file     files.File
	kind     tableKind
	nodes    bool
	asked    []string // names of columns of labels
	category categoryColumn
	layout   csvLayout
	notes    []string
}

var _ table = (*csvTable)(nil)

func openCSVTable(ctx context.Context, path string, kind tableKind, nodes bool, labels []string, category categoryColumn) (table, error) {
	file, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	t := &csvTable{path: path, file: file, kind: kind, nodes: nodes, asked: labels, category: category}
	if err := t.look(ctx); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return t, nil
}

// look finds the columns.
func (t *csvTable) look(ctx context.Context) error {
	if t.file.Size() == 0 {
		return fmt.Errorf("%s is empty: write %s", t.name(), t.kind.wants())
	}
	l := t.lines(ctx, nil)
	defer l.Close()
	err := l.Fill(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if t.layout, err = layOut(t.name(), t.kind, t.nodes, t.asked, t.category, l.Cur, l.Last); err != nil {
		return err
	}
	t.notes = t.layout.notes(t.name(), t.kind)
	return nil
}

func (t *csvTable) lines(ctx context.Context, report func(uint64)) *source.Lines {
	return source.NewLines(ctx, t.name(), io.NewSectionReader(t.file, 0, t.file.Size()), t.bound(), report)
}

func (t *csvTable) name() string { return files.Base(t.path) }

func (t *csvTable) bound() int {
	if t.kind == featuresTable || t.kind == labelsTable || t.nodes {
		return source.MaxFeaturesLine
	}
	return source.MaxLine
}

func (t *csvTable) about() tableAbout {
	return tableAbout{name: t.name(), unit: "line", width: t.layout.width(), weighs: t.layout.weighs, text: t.layout.text, columns: t.layout.digest, id: t.layout.nodeID, labels: t.layout.labels, category: t.layout.category.name, features: t.layout.category.features, notes: t.notes}
}

func (t *csvTable) close() error { return t.file.Close() }

// scan reads the file from its beginning.
func (t *csvTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	l := t.lines(ctx, source.NewProgress(how.report, "reading "+t.name(), uint64(t.file.Size()), "bytes").At)
	defer l.Close()
	s := csvScan{csvTable: t, scanning: how, Lines: l, splitter: records.Splitter{Delimiter: t.layout.delimiter}, skip: t.layout.header}
	for {
		if err := l.Fill(ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		whole := l.Cur
		for len(l.Cur) > 0 {
			if s.fast() {
				s.fastEdges()
			}
			if len(l.Cur) > 0 && !s.batch.full() {
				if err := s.record(); errors.Is(err, records.ErrUnfinished) {
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
		if len(l.Cur) == 0 {
			l.Release(whole)
		}
	}
	if s.batch.n > 0 {
		return yield(&s.batch)
	}
	return nil
}

// csvScan is one pass over a file.
type csvScan struct {
	*csvTable
	scanning
	*source.Lines
	splitter records.Splitter
	skip     bool // the header comes next
	batch    rowBatch
}

// wrong returns an error about the current line.
func (s *csvScan) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: %w", s.about().at(s.Line), fmt.Errorf(format, args...))
}

// record reads one record of any layout.
func (s *csvScan) record() error {
	n, ends, err := s.splitter.Next(s.Cur, s.Last)
	switch {
	case errors.Is(err, records.ErrUnfinished):
		return err
	case errors.Is(err, records.ErrOpenQuote):
		return s.wrong("a quote is not closed: close it, or write a quote inside quotes twice")
	case errors.Is(err, records.ErrBareReturn):
		return s.wrong("there is a carriage return inside the line: end lines with a line feed, or with both")
	case errors.Is(err, records.ErrAfterQuote):
		return s.wrong("text follows a closing quote: write a quote inside quotes twice")
	case errors.Is(err, records.ErrMany):
		return s.wrong("%w", err)
	}
	if n > s.bound() {
		return s.TooLong()
	}
	if err == nil {
		if s.skip {
			s.skip = false
		} else if err := s.row(s.splitter.Fields); err != nil {
			return err
		}
	}
	s.Cur = s.Cur[n:]
	s.Line += uint64(ends)
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
		s.batch.rows = append(s.batch.rows, s.Line)
	}
	if s.categories {
		if err := s.addCategory(fields[l.category.column]); err != nil {
			return err
		}
	}
	if s.idsOnly {
		return nil
	}
	if l.masks != nil {
		part, err := maskedPart(l.masks, func(mask int) (bool, error) { return parseMask(fields[l.value[mask]]) })
		if err != nil {
			return s.wrong("%w", err)
		}
		s.batch.marks = append(s.batch.marks, part)
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
		v, ok := source.ParseID(field)
		if !ok {
			return errNotInteger
		}
		c.ints = append(c.ints, v)
		return nil
	}
	if !utf8.Valid(field) {
		return s.wrong("the id %s is not UTF-8: save the file as UTF-8", source.Shorten(field))
	}
	c.addText(field)
	return nil
}

// value reads the i-th value of a row.
func (s *csvScan) value(i int, field []byte) error {
	switch s.kind {
	case edgesTable, featuresTable:
		v, err := source.ParseFloat(field)
		if gap, ok := gapOf(field, err); ok && s.gaps {
			v, err = gap, nil
		}
		if err != nil {
			what := "weight"
			if s.kind == featuresTable || i > 0 || !s.layout.weighs {
				what = fmt.Sprintf("feature in column %d", s.layout.value[i]+1)
			}
			return s.wrong("%w", source.ExplainNumber(what, field, err))
		}
		s.batch.floats = append(s.batch.floats, v)
	case labelsTable:
		if s.targets {
			v, err := source.ParseTarget(field)
			if err != nil {
				return s.wrong("%w", source.ExplainTarget(labelName(s.layout.labels, i), field, err))
			}
			s.batch.floats = append(s.batch.floats, v)
			return nil
		}
		if s.words {
			s.batch.words.addText(field)
			return nil
		}
		v, err := source.ParseLabel(field)
		if errors.Is(err, source.ErrWord) {
			return errNotInteger
		} else if err != nil {
			return s.wrong("%w", err)
		}
		s.batch.labels = append(s.batch.labels, v)
	case splitsTable:
		m, err := source.ParseMark(field)
		if err != nil {
			return s.wrong("%w", err)
		}
		s.batch.marks = append(s.batch.marks, m)
	}
	return nil
}

// fast reports whether the edges that come next are plain enough for fastEdges: integers in the first two columns, and at most a weight behind them.
func (s *csvScan) fast() bool {
	l := &s.layout
	return s.kind == edgesTable && !s.text && !s.skip && l.id == [2]int{0, 1} && l.columns == 2+len(l.value) && len(l.value) <= 1
}

// fastEdges reads edges until the batch is full, the lines end, or a line is not
// plain. That line is left to record, which can explain what is wrong.
func (s *csvScan) fastEdges() {
	b, delimiter := s.Cur, s.layout.delimiter
	src, dst := s.batch.ids[0].ints, s.batch.ids[1].ints
	weighted := len(s.layout.value) == 1
	at := 0
	room := 1<<15 - s.batch.n
	for ; room > 0; room-- {
		v, i := source.PlainInteger(b, at)
		if i >= len(b) || b[i] != delimiter {
			break
		}
		w, i := source.PlainInteger(b, i+1)
		if i >= len(b) {
			break
		}
		if weighted {
			if b[i] != delimiter {
				break
			}
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				break
			}
			end += i
			field := bytes.TrimSuffix(b[i+1:end], []byte{'\r'})
			if !plainField(field, delimiter) {
				break
			}
			if !s.idsOnly {
				f, err := source.ParseFloat(field)
				if err != nil {
					break
				}
				s.batch.floats = append(s.batch.floats, f)
			}
			i = end
		} else if b[i] == '\r' {
			i++
		}
		if i >= len(b) || b[i] != '\n' {
			break
		}
		src, dst = append(src, v), append(dst, w)
		at = i + 1
		s.Line++
	}
	s.batch.ids[0].ints, s.batch.ids[1].ints = src, dst
	s.batch.n = len(src)
	s.Cur = b[at:]
}

// plainField reports whether field is the last of its line, and unquoted.
func plainField(field []byte, delimiter byte) bool {
	for _, c := range field {
		if c == delimiter || source.IsBlank(c) || c == '"' {
			return false
		}
	}
	return len(field) > 0
}
