package typed_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// written are tables of text as tables of another format. A column is of integers where all cells
// are, and else of words; what is empty is missing.
func written(t *testing.T, tables map[string]string, ending string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, text := range tables {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		whole := make([]bool, len(rows[0]))
		for i := range whole {
			whole[i] = !slices.ContainsFunc(rows[1:], func(row []string) bool {
				_, err := strconv.Atoi(row[i])
				return err != nil && row[i] != ""
			})
		}
		write := arrowOf
		if ending == ".parquet" {
			write = parquetOf
		}
		out[strings.TrimSuffix(name, ".csv")+ending] = write(t, rows[0], whole, rows[1:])
	}
	return out
}

func arrowOf(t testing.TB, names []string, whole []bool, rows [][]string) string {
	t.Helper()
	var fields []arrow.Field
	for i, name := range names {
		of := arrow.DataType(arrow.BinaryTypes.String)
		if whole[i] {
			of = arrow.PrimitiveTypes.Int64
		}
		fields = append(fields, arrow.Field{Name: name, Type: of, Nullable: true})
	}
	var all []map[string]any
	for _, row := range rows {
		one := map[string]any{}
		for i, cell := range row {
			if one[names[i]] = any(cell); cell == "" {
				one[names[i]] = nil
			} else if whole[i] {
				one[names[i]] = json.Number(cell)
			}
		}
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return arrowFile(t, fields, string(text))
}

// arrowFile writes rows that are given as JSON.
func arrowFile(t testing.TB, fields []arrow.Field, rows string) string {
	t.Helper()
	r, _, err := arrowarray.RecordFromJSON(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := ipc.NewFileWriter(&b, ipc.WithSchema(r.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(r), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parquetOf(t testing.TB, names []string, whole []bool, rows [][]string) string {
	t.Helper()
	var fields schema.FieldList
	for i, name := range names {
		n, err := schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Optional, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
		if whole[i] {
			n, err = schema.NewInt64Node(name, parquet.Repetitions.Optional, -1), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, n)
	}
	var b bytes.Buffer
	w, err := file.NewParquetWriterWithError(&b, schema.MustGroup(schema.NewGroupNode("rows", parquet.Repetitions.Required, fields, -1)))
	if err != nil {
		t.Fatal(err)
	}
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		column, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		var defs []int16
		var ints []int64
		var words []parquet.ByteArray
		for _, row := range rows {
			defs = append(defs, 0)
			if row[i] == "" {
				continue
			}
			defs[len(defs)-1] = 1
			v, _ := strconv.Atoi(row[i])
			ints, words = append(ints, int64(v)), append(words, parquet.ByteArray(row[i]))
		}
		switch c := column.(type) {
		case *file.Int64ColumnChunkWriter:
			_, err = c.WriteBatch(ints, defs, nil)
		case *file.ByteArrayColumnChunkWriter:
			_, err = c.WriteBatch(words, defs, nil)
		}
		if err := errors.Join(err, column.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(group.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
