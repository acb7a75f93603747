package table

import (
	"fmt"
	"io"
	"slices"
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
	group int // rows since the last group began
}

// ordered is a group whose fields are in an order of their own: whoever reads all but
// the first as one matrix gets the columns as they are numbered.
type ordered struct {
	parquet.Group
	names []string
}

// Fields is as parquet.Node says.
func (o ordered) Fields() []parquet.Field {
	fields := o.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int { return slices.Index(o.names, a.Name()) - slices.Index(o.names, b.Name()) })
	return fields
}

func newParquet(w io.Writer, h Header) (*columnar, error) {
	id := parquet.Leaf(parquet.Int64Type)
	if h.Names {
		id = parquet.String()
	}
	fields := ordered{Group: parquet.Group{"id": id}, names: []string{"id"}}
	for _, name := range h.Columns {
		if fields.Group[name] != nil {
			return nil, fmt.Errorf("there are two columns %s", name)
		}
		fields.Group[name] = parquet.Leaf(parquet.FloatType)
		fields.names = append(fields.names, name)
	}
	schema := parquet.NewSchema("rows", fields)
	c := &columnar{tally: tally{columns: len(h.Columns), left: h.Rows}, names: h.Names}
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
			row[0] = parquet.ByteArrayValue(id).Level(0, 0, 0)
		} else {
			n, err := strconv.ParseInt(string(id), 10, 64)
			if err != nil {
				return fmt.Errorf("the id %q is no number", id)
			}
			row[0] = parquet.Int64Value(n).Level(0, 0, 0)
		}
		for column, number := range rows[i*c.columns:][:c.columns] {
			row[1+column] = parquet.FloatValue(number).Level(0, 0, 1+column)
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
