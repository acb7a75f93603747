package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Bounds of what a page may claim. Writers aim at pages of a megabyte; some make one
// page of a whole row group.
const (
	maxPage       = 128 << 20
	maxPageHeader = 1 << 20 // statistics may lie in it
	pageBuffer    = 16 << 10
	maxMiniblock  = 1 << 16 // values; writers have 32 or 64
	maxDeltaTexts = 1 << 24 // values of a page of text that is written as differences
)

var (
	errValues = errors.New("a page ends before its values do")
	errPages  = Refusal{errors.New("its pages need more memory than is allowed: allow more, or write it with smaller pages")}
)

// entriesAhead is how many entries of a column are decoded in one go.
const entriesAhead = 4096

// A parquetColumn reads the rows of one column chunk, page by page.
type parquetColumn struct {
	*parquetField
	reader file.ColumnChunkReader
	pages  *checkedPages

	maxDef, maxRep int16
	defs, reps     []int16
	// Of what was decoded last: how many entries and values there are, and the first
	// of them that were not taken.
	entries, values int
	entry, value    int

	decoded
}

// decoded holds values of a page, in the slice of their type.
type decoded struct {
	bools    []bool
	ints32   []int32
	ints64   []int64
	floats32 []float32
	floats64 []float64
	texts    []parquet.ByteArray
	halves   []parquet.FixedLenByteArray
}

// openChunk opens a column of a row group. Its pages count against memory.
func (p *parquetFile) openChunk(f *parquetField, group int, memory *boundedAllocator) (c *parquetColumn, err error) {
	defer orderly(&err)
	about, err := p.meta.RowGroup(group).ColumnChunk(f.leaf)
	if err != nil {
		return nil, err
	}
	most, err := checkPacking(about.Compression(), about.TotalCompressedSize())
	if err != nil {
		return nil, err
	}
	props := parquet.NewReaderProperties(&pageAllocator{boundedAllocator: memory, most: most})
	props.BufferedStreamEnabled, props.BufferSize = true, pageBuffer
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = maxPage, maxPage
	r, err := file.NewParquetReader(io.NewSectionReader(p.f, 0, p.size), file.WithMetadata(p.meta), file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	from, err := r.RowGroup(group).GetColumnPageReader(f.leaf)
	if err != nil {
		return nil, err
	}
	from.SetMaxPageHeaderSize(maxPageHeader)
	column := p.meta.Schema.Column(f.leaf)
	c = &parquetColumn{parquetField: f, maxDef: column.MaxDefinitionLevel(), maxRep: column.MaxRepetitionLevel()}
	c.pages = &checkedPages{PageReader: from, column: c, left: about.NumValues(), physical: column.PhysicalType()}
	c.reader = file.NewColumnReader(column, c.pages, props.Allocator(), r.BufferPool()) //nolint:staticcheck // RowGroupReader.Column does the same and lets nobody look at a page before it is decoded
	return c, nil
}

func (c *parquetColumn) close() {
	var err error
	defer orderly(&err) // it was only read
	c.reader.Close()
}

// wrong returns an error about the field's column. An io.EOF in it would be taken for
// the end of the rows.
func (f *parquetField) wrong(err error) error {
	if errors.Is(err, io.EOF) {
		err = errValues
	}
	return fmt.Errorf("column %s: %w", f.Name, err)
}

// read appends the next rows of a column that is no list.
func (c *parquetColumn) read(out *Values, rows int) (err error) {
	defer orderly(&err)
	for rows > 0 {
		if err := c.decode(min(rows, entriesAhead)); err != nil {
			return err
		}
		rows -= c.entries
		if c.maxDef == 0 {
			c.take(out, c.values)
			continue
		}
		for defs := c.defs[:c.entries]; len(defs) > 0; {
			run := 0
			for run < len(defs) && defs[run] == c.maxDef {
				run++
			}
			c.take(out, run)
			for ; run < len(defs) && defs[run] != c.maxDef; run++ {
				out.addNull()
			}
			defs = defs[run:]
		}
	}
	return nil
}

// readLists appends whole lists, and returns how many: fewer than rows if they are
// long. Where one ends, only the next one's beginning says.
func (c *parquetColumn) readLists(out *Values, rows int) (started int, err error) {
	defer orderly(&err)
	long := 0 // how many entries the last list has, nulls included
	for {
		if c.entry == c.entries {
			if err := c.decode(entriesAhead); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return 0, err
			}
		}
		values, stop := 0, false
		for ; c.entry < c.entries; c.entry++ {
			if c.reps[c.entry] == 0 {
				if stop = started == rows || started > 0 && out.Len()+values >= listEnough; stop {
					break
				}
				started++
				out.Lengths = append(out.Lengths, 0)
				long = 0
			} else if started == 0 {
				return 0, errDamaged
			}
			if long++; long > source.MaxDenseFeatures {
				return 0, errLongList
			}
			row := len(out.Lengths) - 1
			switch def := c.defs[c.entry]; {
			case def == c.maxDef:
				values++
				out.Lengths[row]++
			case def >= c.repeated:
				out.addNullIn(row)
			}
		}
		c.take(out, values)
		if stop {
			break
		}
	}
	if started == 0 {
		return 0, errValues
	}
	return started, nil
}

// decode decodes up to most entries, all of one page, when those before have been
// taken. It returns io.EOF at the end of the chunk.
func (c *parquetColumn) decode(most int) error {
	for !c.reader.HasNext() {
		if err := c.reader.Err(); err != nil {
			return damaged(err)
		}
		if !c.pages.empty {
			return io.EOF
		}
	}
	n := min(most, c.pages.batch)
	if c.maxDef > 0 {
		c.defs = source.RoomFor(c.defs, n)
	}
	if c.maxRep > 0 {
		c.reps = source.RoomFor(c.reps, n)
	}
	var entries int64
	var err error
	switch r := c.reader.(type) {
	case *file.BooleanColumnChunkReader:
		c.bools = source.RoomFor(c.bools, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.bools, c.defs, c.reps)
	case *file.Int32ColumnChunkReader:
		c.ints32 = source.RoomFor(c.ints32, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.ints32, c.defs, c.reps)
	case *file.Int64ColumnChunkReader:
		c.ints64 = source.RoomFor(c.ints64, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.ints64, c.defs, c.reps)
	case *file.Float32ColumnChunkReader:
		c.floats32 = source.RoomFor(c.floats32, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.floats32, c.defs, c.reps)
	case *file.Float64ColumnChunkReader:
		c.floats64 = source.RoomFor(c.floats64, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.floats64, c.defs, c.reps)
	case *file.ByteArrayColumnChunkReader:
		c.texts = source.RoomFor(c.texts, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.texts, c.defs, c.reps)
	case *file.FixedLenByteArrayColumnChunkReader:
		c.halves = source.RoomFor(c.halves, n)
		entries, c.values, err = r.ReadBatchInPage(int64(n), c.halves, c.defs, c.reps)
	}
	if err != nil {
		return damaged(err)
	}
	c.entries, c.entry, c.value = int(entries), 0, 0
	whole := c.entries
	if c.maxDef > 0 {
		whole = 0
		for _, def := range c.defs[:c.entries] {
			if def == c.maxDef {
				whole++
			}
		}
	}
	if c.entries == 0 || c.entries > n || c.values != whole {
		return errValues
	}
	return nil
}

// take appends the next n of the values that were decoded.
func (c *parquetColumn) take(out *Values, n int) {
	from, to := c.value, c.value+n
	c.value = to
	switch c.pages.physical {
	case parquet.Types.Boolean:
		for _, v := range c.bools[from:to] {
			if v {
				out.Ints = append(out.Ints, 1)
			} else {
				out.Ints = append(out.Ints, 0)
			}
		}
	case parquet.Types.Int32:
		for _, v := range c.ints32[from:to] {
			if c.unsigned32 {
				out.Ints = append(out.Ints, int64(uint32(v)))
			} else {
				out.Ints = append(out.Ints, int64(v))
			}
		}
	case parquet.Types.Int64:
		out.Ints = append(out.Ints, c.ints64[from:to]...)
	case parquet.Types.Float:
		for _, v := range c.floats32[from:to] {
			out.Floats = append(out.Floats, float64(v))
		}
	case parquet.Types.Double:
		out.Floats = append(out.Floats, c.floats64[from:to]...)
	case parquet.Types.ByteArray:
		for _, v := range c.texts[from:to] {
			out.Text.Add(v[:min(len(v), source.MaxLine+1)]) // nothing longer is taken, and a longer one may be repeated without end
		}
	case parquet.Types.FixedLenByteArray:
		for _, v := range c.halves[from:to] {
			out.Floats = append(out.Floats, float64(source.Half(binary.LittleEndian.Uint16(v))))
		}
	}
}
