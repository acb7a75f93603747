package tabular

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// arrowFile reads a file of Arrow record batches, or of Feather since version 2. One
// batch at a time is in memory.
type arrowFile struct {
	f      *os.File
	size   int64
	schema *arrow.Schema
}

var _ columnFile = (*arrowFile)(nil)

func openArrowTable(path string, kind tableKind) (table, error) {
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
	a := &arrowFile{f: f, size: info.Size()}
	if err := a.readSchema(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is not a readable Arrow file (%w): write it again", name, err)
	}
	return newColumnTable(name, kind, a)
}

func (a *arrowFile) readSchema() error {
	if err := footers.CheckArrow(a.f, a.size); err != nil {
		return err
	}
	r, err := a.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	a.schema = r.Schema()
	return nil
}

func (a *arrowFile) reader() (r *ipc.FileReader, err error) {
	defer orderly(&err)
	return ipc.NewFileReader(io.NewSectionReader(a.f, 0, a.size), ipc.WithAllocator(&boundedAllocator{left: a.size*256 + 64<<20, err: errClaims}))
}

func (a *arrowFile) rows() uint64 { return 0 }
func (a *arrowFile) close() error { return a.f.Close() }

func (a *arrowFile) columns() []columnAbout {
	var out []columnAbout
	for _, f := range a.schema.Fields() {
		c := columnAbout{name: source.Printable(f.Name)}
		of := f.Type
		switch t := of.(type) {
		case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
			of, c.list = t.(arrow.ListLikeType).Elem(), true
		}
		if t, ok := of.(*arrow.DictionaryType); ok && !c.list {
			of = t.ValueType
		}
		c.kind, c.unsigned = arrowKind(of)
		out = append(out, c)
	}
	return out
}

func arrowKind(t arrow.DataType) (kind valueKind, unsigned bool) {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return intValues, false
	case arrow.UINT64:
		return intValues, true
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return floatValues, false
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return textValues, false
	}
	return otherValues, false
}

// arrowRows goes through the record batches of a file.
type arrowRows struct {
	reader *ipc.FileReader
	wanted []int
	batch  int // the next one
	record arrow.RecordBatch
	at     int64
	values []*columnValues
}

func (a *arrowFile) open(wanted []int) (columnReader, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	rows := &arrowRows{reader: r, wanted: wanted}
	about := a.columns()
	for _, column := range wanted {
		rows.values = append(rows.values, &columnValues{kind: about[column].kind})
	}
	return rows, nil
}

func (r *arrowRows) close() {
	if r.record != nil {
		r.record.Release()
		r.record = nil
	}
	r.reader.Close()
}

func (r *arrowRows) next(most int) (n int, columns []*columnValues, err error) {
	defer orderly(&err)
	for r.record == nil || r.at == r.record.NumRows() {
		if r.record != nil {
			r.record.Release()
			r.record = nil
		}
		if r.batch == r.reader.NumRecords() {
			return 0, nil, io.EOF
		}
		if r.record, err = r.reader.RecordBatchAt(r.batch); err != nil {
			r.record = nil
			return 0, nil, damaged(err)
		}
		r.batch, r.at = r.batch+1, 0
	}
	n = int(min(int64(most), r.record.NumRows()-r.at))
	for i, column := range r.wanted {
		r.values[i].reset()
		if err := r.values[i].addArrow(r.record.Column(column), int(r.at), n); err != nil {
			return 0, nil, err
		}
	}
	r.at += int64(n)
	return n, r.values, nil
}

// addArrow appends n values of an array, or n rows of lists.
func (c *columnValues) addArrow(a arrow.Array, from, n int) error {
	if from+n > a.Len() {
		return errDamaged
	}
	switch a := a.(type) {
	case arrowarray.ListLike:
		for i := from; i < from+n; i++ {
			if a.IsNull(i) {
				c.lengths = append(c.lengths, 0)
				continue
			}
			start, end := a.ValueOffsets(i)
			if start < 0 || end < start || end > int64(a.ListValues().Len()) {
				return errDamaged
			}
			row := len(c.lengths)
			c.lengths = append(c.lengths, int(end-start))
			before := len(c.nulls)
			if err := c.addArrow(a.ListValues(), int(start), int(end-start)); err != nil {
				return err
			}
			if len(c.nulls) > before {
				c.nulls = append(c.nulls[:before], row)
			}
		}
		return nil
	case *arrowarray.Dictionary:
		for i := from; i < from+n; i++ {
			if a.IsNull(i) {
				c.addNull()
			} else if err := c.addArrow(a.Dictionary(), a.GetValueIndex(i), 1); err != nil {
				return err
			}
		}
		return nil
	}
	for i := from; i < from+n; i++ {
		if a.IsNull(i) {
			c.addNull()
		} else if !c.addOne(a, i) {
			return fmt.Errorf("%w: a column is of type %s in one batch", errDamaged, a.DataType())
		}
	}
	return nil
}

func (c *columnValues) addOne(a arrow.Array, i int) bool {
	switch c.kind {
	case intValues:
		v, ok := arrowInt(a, i)
		c.ints = append(c.ints, v)
		return ok
	case floatValues:
		var v float64
		switch a := a.(type) {
		case *arrowarray.Float16:
			v = float64(halfOf(a.Value(i)))
		case *arrowarray.Float32:
			v = float64(a.Value(i))
		case *arrowarray.Float64:
			v = a.Value(i)
		default:
			return false
		}
		c.floats = append(c.floats, v)
		return true
	}
	a2, ok := a.(interface{ Value(int) string })
	if ok {
		c.text.bytes = append(c.text.bytes, a2.Value(i)...)
		c.text.ends = append(c.text.ends, len(c.text.bytes))
	}
	return ok
}

func halfOf(n float16.Num) float32 { return source.Half(n.Uint16()) }

func arrowInt(a arrow.Array, i int) (int64, bool) {
	switch a := a.(type) {
	case *arrowarray.Int8:
		return int64(a.Value(i)), true
	case *arrowarray.Int16:
		return int64(a.Value(i)), true
	case *arrowarray.Int32:
		return int64(a.Value(i)), true
	case *arrowarray.Int64:
		return a.Value(i), true
	case *arrowarray.Uint8:
		return int64(a.Value(i)), true
	case *arrowarray.Uint16:
		return int64(a.Value(i)), true
	case *arrowarray.Uint32:
		return int64(a.Value(i)), true
	case *arrowarray.Uint64:
		return int64(a.Value(i)), true
	}
	return 0, false
}
