package table

import (
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// groupRows is how many rows a row group holds: what a reader takes at once.
const groupRows = 1 << 16

// columnar is Parquet: a column id, and one of floats for each of the others.
type columnar struct {
	tally
	names bool
	out   *parquet.GenericWriter[any]
	rows  []parquet.Row
	// where of the schema's columns, which are sorted by name, each of ours is.
	id    int
	where []int
	group int // rows since the last group began
}

func newParquet(w io.Writer, h Header) (*columnar, error) {
	id := parquet.Leaf(parquet.Int64Type)
	if h.Names {
		id = parquet.String()
	}
	fields := parquet.Group{"id": id}
	for _, name := range h.Columns {
		if fields[name] != nil {
			return nil, fmt.Errorf("there are two columns %s", name)
		}
		fields[name] = parquet.Leaf(parquet.FloatType)
	}
	schema := parquet.NewSchema("rows", fields)
	at := map[string]int{}
	for i, path := range schema.Columns() {
		at[path[0]] = i
	}
	c := &columnar{tally: tally{columns: len(h.Columns), left: h.Rows}, names: h.Names, id: at["id"]}
	for _, name := range h.Columns {
		c.where = append(c.where, at[name])
	}
	c.out = parquet.NewGenericWriter[any](w, schema)
	return c, nil
}

func (c *columnar) Write(ids [][]byte, rows []float32) error {
	if err := c.take(ids, rows); err != nil {
		return err
	}
	for len(c.rows) < len(ids) {
		c.rows = append(c.rows, make(parquet.Row, c.columns+1))
	}
	for i, id := range ids {
		row := c.rows[i]
		if c.names {
			row[c.id] = parquet.ByteArrayValue(id).Level(0, 0, c.id)
		} else {
			n, err := strconv.ParseInt(string(id), 10, 64)
			if err != nil {
				return fmt.Errorf("the id %q is no number", id)
			}
			row[c.id] = parquet.Int64Value(n).Level(0, 0, c.id)
		}
		for column, at := range c.where {
			row[at] = parquet.FloatValue(rows[i*c.columns+column]).Level(0, 0, at)
		}
	}
	if _, err := c.out.WriteRows(c.rows[:len(ids)]); err != nil {
		return err
	}
	if c.group += len(ids); c.group >= groupRows {
		c.group = 0
		return c.out.Flush()
	}
	return nil
}

func (c *columnar) Close() error {
	if err := c.end(); err != nil {
		return err
	}
	return c.out.Close()
}
