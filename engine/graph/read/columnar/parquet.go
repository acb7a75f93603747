package columnar

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// parquetFile is a Parquet file, read by arrow-go's low-level reader. The library
// trusts what a file says of itself, so everything is checked before it acts on it:
// the footer here and in pages.go, as each page. What slips
// through makes it panic, which orderly turns into an error. It starts no goroutine.
type parquetFile struct {
	f      files.File
	size   int64
	limit  uint64 // bytes that open pages may take
	meta   *metadata.FileMetaData
	fields []parquetField
}

var _ File = (*parquetFile)(nil)

// A parquetField is a column of the table. leaf is -1 if it holds neither values nor
// lists of values.
type parquetField struct {
	About
	leaf int
	// repeated is the definition level from which on a list has an element.
	repeated int16
	// unsigned32 says that the integers are unsigned ones of up to 32 bits.
	unsigned32 bool
}

// Bounds of a file's parts.
const (
	// footerGrowth is how many bytes in memory one byte of a footer may become.
	footerGrowth = 24
	// openPages bounds the pages that are in memory at a time where nothing else does.
	openPages = 4 << 30
)

var errNotParquet = errors.New("it does not begin and end as a Parquet file does")

// OpenParquet opens a Parquet file, or a folder of part files. limit bounds the bytes
// that open pages may take; 0: some gigabytes.
func OpenParquet(ctx context.Context, path string, limit uint64) (File, error) {
	what, err := files.Look(ctx, path)
	if err != nil {
		return nil, err
	}
	if what == files.Folder {
		return openParts(ctx, path, limit)
	}
	return openParquetFile(ctx, path, limit)
}

func openParquetFile(ctx context.Context, path string, limit uint64) (*parquetFile, error) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	p := &parquetFile{f: f, size: f.Size(), limit: limit}
	if p.limit == 0 {
		p.limit = openPages
	}
	if err := p.readFooter(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is not a readable Parquet file (%w): write it again", files.Base(path), err)
	}
	return p, nil
}

func (p *parquetFile) readFooter() (err error) {
	defer orderly(&err)
	var head, tail [8]byte
	if p.size < 12 {
		return footers.Short(p.size)
	}
	if _, err := p.f.ReadAt(head[:4], 0); err != nil {
		return err
	}
	if _, err := p.f.ReadAt(tail[:], p.size-8); err != nil {
		return err
	}
	if string(tail[4:]) == "PARE" {
		return errors.New("it is encrypted")
	}
	if string(head[:4]) != "PAR1" || string(tail[4:]) != "PAR1" {
		return errNotParquet
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > p.size-12 || length > footers.MaxFooter {
		return fmt.Errorf("its footer would have %d bytes", length)
	}
	if uint64(length)*footerGrowth > p.limit {
		return fmt.Errorf("its footer of %d bytes needs more memory than is allowed", length)
	}
	footer := make([]byte, length)
	if _, err := p.f.ReadAt(footer, p.size-8-length); err != nil {
		return err
	}
	if err := footers.CheckParquet(footer); err != nil {
		return err
	}
	if p.meta, err = metadata.NewFileMetaData(footer, nil); err != nil {
		return damaged(err)
	}
	p.meta.SetSourceFileSize(p.size)
	p.arrange()
	return p.checkChunks(p.size - 8 - length)
}

// arrange finds the table's columns in the tree of the schema.
func (p *parquetFile) arrange() {
	root := p.meta.Schema.Root()
	at := map[schema.Node]int{}
	for i := range root.NumFields() {
		at[root.Field(i)] = i
		p.fields = append(p.fields, parquetField{About: About{Name: source.Printable(root.Field(i).Name())}, leaf: -1})
	}
	leaves := make([]int, len(p.fields))
	for i := range p.meta.Schema.NumColumns() {
		of := at[p.meta.Schema.ColumnRoot(i)]
		column := p.meta.Schema.Column(i)
		if leaves[of]++; leaves[of] > 1 || column.MaxRepetitionLevel() > 1 {
			p.fields[of] = parquetField{About: About{Name: p.fields[of].Name}, leaf: -1}
			continue
		}
		f := &p.fields[of]
		f.leaf, f.List = i, column.MaxRepetitionLevel() == 1
		var unsigned bool
		f.Kind, unsigned = parquetKind(column)
		f.Unsigned = unsigned && column.PhysicalType() == parquet.Types.Int64
		f.unsigned32 = unsigned && !f.Unsigned
		f.repeated = elementLevel(column)
	}
}

// elementLevel returns the definition level from which on a list has an element.
func elementLevel(column *schema.Column) int16 {
	level := column.MaxDefinitionLevel()
	for n := column.SchemaNode(); n != nil && n.RepetitionType() != parquet.Repetitions.Repeated; n = n.Parent() {
		if n.RepetitionType() == parquet.Repetitions.Optional {
			level--
		}
	}
	return level
}

// parquetKind returns what a column's values are taken as. Dates, decimals and the
// like are stored as integers, but mean something else.
func parquetKind(column *schema.Column) (kind Kind, unsigned bool) {
	switch column.PhysicalType() {
	case parquet.Types.Boolean:
		return Ints, false
	case parquet.Types.Int32, parquet.Types.Int64:
		switch t := column.LogicalType().(type) {
		case schema.IntLogicalType:
			return Ints, !t.IsSigned()
		case schema.NoLogicalType, nil:
			return Ints, false
		}
	case parquet.Types.Float, parquet.Types.Double:
		return Floats, false
	case parquet.Types.ByteArray:
		switch column.LogicalType().(type) {
		case schema.StringLogicalType, schema.EnumLogicalType, schema.NoLogicalType, nil: // some writers leave the type of text away
			return Text, false
		}
	case parquet.Types.FixedLenByteArray:
		if _, short := column.LogicalType().(schema.Float16LogicalType); short && column.TypeLength() == 2 {
			return Floats, false
		}
	}
	return Others, false
}

func (p *parquetFile) Rows() uint64 { return uint64(p.meta.NumRows) }
func (p *parquetFile) Close() error { return p.f.Close() }

func (p *parquetFile) Columns() []About {
	out := make([]About, len(p.fields))
	for i, f := range p.fields {
		out[i] = f.About
	}
	return out
}

func (p *parquetFile) Open(wanted []int) (Reader, error) {
	r := &parquetRows{file: p, list: -1, memory: &boundedAllocator{left: int64(min(p.limit, 1<<62)), err: errPages}}
	for i, column := range wanted {
		f := &p.fields[column]
		r.fields = append(r.fields, f)
		r.values = append(r.values, &Values{Kind: f.Kind})
		if f.List {
			r.list = i
		}
	}
	r.step = textStep(r.values)
	return r, nil
}

// parquetRows goes through the row groups of a file.
type parquetRows struct {
	file   *parquetFile
	memory *boundedAllocator
	fields []*parquetField
	list   int // which of the fields is a list, or -1
	step   int // how many rows are read in one go
	group  int // the next one
	left   int64
	open   []*parquetColumn
	values []*Values
}

func (r *parquetRows) Close() {
	for _, c := range r.open {
		c.close()
	}
	r.open = nil
}

func (r *parquetRows) Next(most int) (n int, columns []*Values, err error) {
	if err := r.advance(); err != nil {
		return 0, nil, err
	}
	for _, v := range r.values {
		v.reset()
	}
	for n < most && r.left > 0 && !r.full() {
		step := int(min(int64(min(most-n, r.step)), r.left))
		if r.list >= 0 { // it may end early, and all columns have as many rows
			if step, err = r.open[r.list].readLists(r.values[r.list], step); err != nil {
				return 0, nil, r.open[r.list].wrong(err)
			}
		}
		for i, c := range r.open {
			if i == r.list {
				continue
			}
			if err := c.read(r.values[i], step); err != nil {
				return 0, nil, c.wrong(err)
			}
		}
		n, r.left = n+step, r.left-int64(step)
	}
	return n, r.values, nil
}

// Text and lists are read until there is enough of them, whatever the number of
// rows: a few bytes in a file may stand for any number of equal ones.
const (
	textRows   = 256 // values of text that are read in one go
	textEnough = 4 << 20
	listEnough = 1 << 21
)

// errLongList is the error of a list that is too long to be the features of a vertex.
var errLongList = Refusal{fmt.Errorf("a row has more than the %d features that can be taken: make the features fewer", source.MaxDenseFeatures)}

// textStep returns how many rows are read before their text is counted.
func textStep(values []*Values) int {
	columns := 0
	for _, v := range values {
		if v.Kind == Text {
			columns++
		}
	}
	if columns == 0 {
		return math.MaxInt
	}
	return max(1, textRows/columns)
}

// textOf returns how many bytes of text there are.
func textOf(values []*Values) (text int) {
	for _, v := range values {
		text += len(v.Text.Bytes)
	}
	return text
}

func (r *parquetRows) full() bool {
	return textOf(r.values) >= textEnough || r.list >= 0 && r.values[r.list].Len() >= listEnough
}

// advance opens the next row group if the last one is at its end.
func (r *parquetRows) advance() error {
	for r.left == 0 {
		r.Close()
		if r.group == len(r.file.meta.RowGroups) {
			return io.EOF
		}
		if r.file.meta.RowGroups[r.group].NumRows == 0 { // it may have no pages
			r.group++
			continue
		}
		for _, f := range r.fields {
			c, err := r.file.openChunk(f, r.group, r.memory)
			if err != nil {
				return f.wrong(err)
			}
			r.open = append(r.open, c)
		}
		r.left = r.file.meta.RowGroups[r.group].NumRows
		r.group++
	}
	return nil
}
