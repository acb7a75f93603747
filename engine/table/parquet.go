package table

import (
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// groupRows is the number of rows in a row group, which readers load at once.
const groupRows = 1 << 16

// columnar writes Parquet: an id column, a float column for each name, in order, and the
// columns of answers.
type columnar struct {
	tally
	names  bool
	out    *file.Writer
	group  file.BufferedRowGroupWriter // nil between groups
	rows   int                         // of the group
	ints   []int64
	texts  []parquet.ByteArray
	column []float32

	answers *Answers            // nil: none
	named   []parquet.ByteArray // their names
	classes []int32
}

func newParquet(w io.Writer, h Header) (*columnar, error) {
	id := schema.Node(schema.NewInt64Node("id", parquet.Repetitions.Required, -1))
	if h.Names {
		var err error
		if id, err = schema.NewPrimitiveNodeLogical("id", parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1); err != nil {
			return nil, err
		}
	}
	fields, seen := schema.FieldList{id}, map[string]bool{"id": true, "class": h.Answers != nil, "class_name": h.Answers != nil, "probability": h.Answers != nil}
	for _, name := range h.Columns {
		if seen[name] {
			return nil, fmt.Errorf("there are two columns %s", name)
		}
		seen[name] = true
		fields = append(fields, schema.NewFloat32Node(name, parquet.Repetitions.Required, -1))
	}
	if h.Answers != nil {
		if len(h.Answers.Names) != len(h.Columns) || len(h.Columns) == 0 {
			return nil, fmt.Errorf("there are scores of %d classes, and %d names", len(h.Columns), len(h.Answers.Names))
		}
		more, err := answerNodes()
		if err != nil {
			return nil, err
		}
		fields = append(fields, more...)
	}
	root, err := schema.NewGroupNode("rows", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return nil, err
	}
	// The library would close w, which belongs to the caller.
	props := parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithCreatedBy("hopmesh"))
	out, err := file.NewParquetWriterWithError(struct{ io.Writer }{w}, root, file.WithWriterProps(props))
	if err != nil {
		return nil, err
	}
	c := &columnar{tally: tally{columns: len(h.Columns), left: h.Rows}, names: h.Names, out: out, answers: h.Answers}
	if h.Answers != nil {
		for _, name := range h.Answers.Names {
			c.named = append(c.named, parquet.ByteArray(name))
		}
	}
	return c, nil
}

// parquetMemory is what a columnar takes: a row group, and what the end of the file says of
// each column of each group.
func parquetMemory(h Header) uint64 {
	// Measured, with some room: a group takes 1.08 times its numbers, and each of its columns
	// 820 bytes until the end, when that is written.
	const described = 1100
	id := uint64(8)
	if h.Names {
		id = 64 // of some length
	}
	rows, columns := uint64(h.Rows), uint64(len(h.Columns))
	groups := (rows + groupRows - 1) / groupRows
	row := id + 4*columns
	if h.Answers != nil {
		// Buffers of text grow by doubling: measured, too.
		row, columns = row+8+3*uint64(4+h.Answers.longest()), columns+3
	}
	group := min(rows, groupRows) * row
	return group + group/8 + groups*(columns+1)*described
}

func (c *columnar) Write(ids [][]byte, rows []float32) error {
	if err := c.take(ids, rows); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	if c.group == nil {
		var err error
		if c.group, err = c.out.AppendBufferedRowGroupChecked(); err != nil {
			return err
		}
	}
	if err := c.writeIDs(0, ids); err != nil {
		return err
	}
	for i := range c.columns {
		c.column = c.column[:0]
		for row := range ids {
			c.column = append(c.column, rows[row*c.columns+i])
		}
		w, err := c.group.Column(1 + i)
		if err != nil {
			return err
		}
		if _, err := w.(*file.Float32ColumnChunkWriter).WriteBatch(c.column, nil, nil); err != nil {
			return err
		}
	}
	if c.answers != nil {
		if err := c.writeAnswers(rows); err != nil {
			return err
		}
	}
	if c.rows += len(ids); c.rows >= groupRows {
		return c.flush()
	}
	return nil
}

// writeIDs writes some ids into a column.
func (c *columnar) writeIDs(column int, ids [][]byte) error {
	w, err := c.group.Column(column)
	if err != nil {
		return err
	}
	if c.names {
		c.texts = c.texts[:0]
		for _, id := range ids {
			c.texts = append(c.texts, id)
		}
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(c.texts, nil, nil)
		return err
	}
	c.ints = c.ints[:0]
	for _, id := range ids {
		n, err := strconv.ParseInt(string(id), 10, 64)
		if err != nil {
			return fmt.Errorf("the id %q is not a number", id)
		}
		c.ints = append(c.ints, n)
	}
	_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(c.ints, nil, nil)
	return err
}

// flush ends the row group.
func (c *columnar) flush() error {
	if c.group == nil {
		return nil
	}
	err := c.group.Close()
	c.group, c.rows = nil, 0
	return err
}

func (c *columnar) Close() error {
	if err := c.end(); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.out.Close()
}
