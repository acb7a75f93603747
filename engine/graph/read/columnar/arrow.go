package columnar

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// arrowFile reads a file of Arrow record batches, or of Feather since version 2. One
// batch at a time is in memory.
type arrowFile struct {
	ctx     context.Context // of the import: a file may have any number of batches without rows
	f       files.File
	size    int64
	schema  *arrow.Schema
	batches []footers.Block
}

var _ File = (*arrowFile)(nil)

// OpenArrow opens a file of Arrow record batches.
func OpenArrow(ctx context.Context, path string) (File, error) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	a := &arrowFile{ctx: ctx, f: f, size: f.Size()}
	if err := a.readSchema(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is not a readable Arrow file (%w): write it again", files.Base(path), err)
	}
	return a, nil
}

func (a *arrowFile) readSchema() error {
	var err error
	if a.batches, err = footers.CheckArrow(a.f, a.size); err != nil {
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

func (a *arrowFile) Rows() uint64 { return 0 }
func (a *arrowFile) Close() error { return a.f.Close() }

func (a *arrowFile) Columns() []About {
	var out []About
	for _, f := range a.schema.Fields() {
		c := About{Name: source.Printable(f.Name)}
		of := f.Type
		switch t := of.(type) {
		case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
			of, c.List = t.(arrow.ListLikeType).Elem(), true
		}
		if t, ok := of.(*arrow.DictionaryType); ok && !c.List {
			of = t.ValueType
		}
		c.Kind, c.Unsigned = arrowKind(of)
		out = append(out, c)
	}
	return out
}

func arrowKind(t arrow.DataType) (kind Kind, unsigned bool) {
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return Ints, false
	case arrow.UINT64:
		return Ints, true
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return Floats, false
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return Text, false
	}
	return Others, false
}

// arrowRows goes through the record batches of a file.
type arrowRows struct {
	file   *arrowFile
	reader *ipc.FileReader
	wanted []int
	batch  int // the next one
	record arrow.RecordBatch
	at     int64
	values []*Values
}

func (a *arrowFile) Open(wanted []int) (Reader, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	rows := &arrowRows{file: a, reader: r, wanted: wanted}
	about := a.Columns()
	for _, column := range wanted {
		rows.values = append(rows.values, &Values{Kind: about[column].Kind})
	}
	return rows, nil
}

func (r *arrowRows) Close() {
	if r.record != nil {
		r.record.Release()
		r.record = nil
	}
	r.reader.Close()
}

func (r *arrowRows) Next(most int) (n int, columns []*Values, err error) {
	defer orderly(&err)
	for r.record == nil || r.at == r.record.NumRows() {
		if r.record != nil {
			r.record.Release()
			r.record = nil
		}
		if r.batch == r.reader.NumRecords() {
			return 0, nil, io.EOF
		}
		if err := r.file.ctx.Err(); err != nil {
			return 0, nil, err
		}
		if err := footers.CheckMessage(r.file.f, r.file.size, r.file.batches[r.batch]); err != nil {
			return 0, nil, err
		}
		if r.record, err = r.reader.RecordBatchAt(r.batch); err != nil {
			r.record = nil
			return 0, nil, damaged(err)
		}
		if r.record.NumRows() < 0 { // the library takes such lengths of some types
			return 0, nil, errDamaged
		}
		r.batch, r.at = r.batch+1, 0
	}
	n = int(min(int64(most), r.record.NumRows()-r.at))
	for _, column := range r.wanted {
		n = fewLists(r.record.Column(column), int(r.at), n)
	}
	for _, v := range r.values {
		v.reset()
	}
	done, most := 0, textStep(r.values)
	for done < n && textOf(r.values) < textEnough {
		step := min(n-done, most)
		for i, column := range r.wanted {
			if err := r.values[i].addArrow(r.record.Column(column), int(r.at), step); err != nil {
				return 0, nil, err
			}
		}
		r.at += int64(step)
		done += step
	}
	return done, r.values, nil
}

// fewLists returns how many of n rows have not too many values together: all, if they are no lists.
// Rows of one table may be of unlike lengths, so their number bounds nothing.
func fewLists(a arrow.Array, from, n int) int {
	lists, ok := a.(arrowarray.ListLike)
	if !ok || from+n > a.Len() {
		return n
	}
	values := int64(0)
	for i := range n {
		begin, end := lists.ValueOffsets(from + i)
		if values += end - begin; values > listEnough/2 && i > 0 {
			return i
		}
	}
	return n
}

// addArrow appends n values of an array, or n rows of lists.
func (c *Values) addArrow(a arrow.Array, from, n int) error {
	if from+n > a.Len() {
		return errDamaged
	}
	switch a := a.(type) {
	case arrowarray.ListLike:
		for i := from; i < from+n; i++ {
			if a.IsNull(i) {
				c.Lengths = append(c.Lengths, 0)
				continue
			}
			start, end := a.ValueOffsets(i)
			if start < 0 || end < start || end > int64(a.ListValues().Len()) {
				return errDamaged
			}
			if end-start > source.MaxDenseFeatures {
				return errLongList
			}
			row := len(c.Lengths)
			c.Lengths = append(c.Lengths, int(end-start))
			before := len(c.Nulls)
			if err := c.addArrow(a.ListValues(), int(start), int(end-start)); err != nil {
				return err
			}
			if len(c.Nulls) > before {
				c.Nulls = append(c.Nulls[:before], row)
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

func (c *Values) addOne(a arrow.Array, i int) bool {
	switch c.Kind {
	case Ints:
		v, ok := arrowInt(a, i)
		c.Ints = append(c.Ints, v)
		return ok
	case Floats:
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
		c.Floats = append(c.Floats, v)
		return true
	}
	a2, ok := a.(interface{ Value(int) string })
	if ok {
		// More is refused, and one value of a dictionary may stand in all rows.
		v := a2.Value(i)
		c.Text.Bytes = append(c.Text.Bytes, v[:min(len(v), source.MaxLine+1)]...)
		c.Text.Ends = append(c.Text.Ends, len(c.Text.Bytes))
	}
	return ok
}

func halfOf(n float16.Num) float32 { return source.Half(n.Uint16()) }

func arrowInt(a arrow.Array, i int) (int64, bool) {
	switch a := a.(type) {
	case *arrowarray.Boolean:
		if a.Value(i) {
			return 1, true
		}
		return 0, true
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
