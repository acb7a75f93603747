package tabular

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	flatbuffers "github.com/google/flatbuffers/go"

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

var errNotArrow = errors.New("it does not begin and end as an Arrow file; streams and the first version of Feather are not known")

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
	if err := checkArrowFooter(a.f, a.size); err != nil {
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

// Places in the tables of Arrow's footer: a field's number, doubled, plus 4.
const (
	footerSchema       = 6
	footerDictionaries = 8
	footerBatches      = 10
	schemaFields       = 6
	schemaMetadata     = 8
	fieldChildren      = 14
	fieldMetadata      = 16
)

// checkArrowFooter looks at the lists in a footer before the library does, which
// takes memory for as many elements as a list claims to have.
func checkArrowFooter(f io.ReaderAt, size int64) (err error) {
	defer orderly(&err)
	const magic = "ARROW1"
	var head, tail [10]byte
	if size < 32 {
		return errNotArrow
	}
	if _, err := f.ReadAt(head[:6], 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(tail[:], size-10); err != nil {
		return err
	}
	if string(head[:6]) != magic || string(tail[4:]) != magic {
		return errNotArrow
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length < 8 || length > size-16 || length > maxFooter {
		return errDamaged
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-10-length); err != nil {
		return err
	}
	footer := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	c := arrowCheck{left: length}
	c.list(footer, footerDictionaries, 24, nil)
	c.list(footer, footerBatches, 24, nil)
	schema := flatbuffers.UOffsetT(footer.Offset(footerSchema))
	if schema == 0 {
		return errDamaged
	}
	c.schema(flatbuffers.Table{Bytes: b, Pos: footer.Indirect(schema + footer.Pos)})
	return nil
}

// arrowCheck panics, for orderly to catch, where lists have more elements than the
// footer has bytes for. left makes several lists in the same bytes impossible too.
type arrowCheck struct {
	left  int64
	depth int
}

// list checks one list and each table in it.
func (c *arrowCheck) list(t flatbuffers.Table, place flatbuffers.VOffsetT, size int64, each func(flatbuffers.Table)) {
	at := flatbuffers.UOffsetT(t.Offset(place))
	if at == 0 {
		return
	}
	n, first := t.VectorLen(at), t.Vector(at)
	if c.left -= int64(n) * size; n < 0 || c.left < 0 {
		panic(errClaims)
	}
	for i := range n {
		if each != nil {
			each(flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(i*4))})
		}
	}
}

func (c *arrowCheck) schema(t flatbuffers.Table) {
	c.list(t, schemaFields, 4, c.field)
	c.list(t, schemaMetadata, 4, nil)
}

func (c *arrowCheck) field(t flatbuffers.Table) {
	if c.depth++; c.depth > 32 {
		panic(errDamaged)
	}
	c.list(t, fieldChildren, 4, c.field)
	c.list(t, fieldMetadata, 4, nil)
	c.depth--
}
