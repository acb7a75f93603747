package tabular

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// A writing says how parquetOf writes.
type writing struct {
	codec compress.Compression
	v2    bool
	page  int64 // bytes; 0: the library's default
	group int   // rows; 0: all
}

// writtenColumn is a field of a struct as a column. Its tag is a name and any of
// dict, delta, split, optional and list.
type writtenColumn struct {
	at             int
	name           string
	of             reflect.Type // of one value
	list, optional bool         // an optional value or element
	option         func(string) bool
}

func columnsOf(row reflect.Type) []writtenColumn {
	var out []writtenColumn
	for i := range row.NumField() {
		f := row.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		c := writtenColumn{at: i, name: name, of: f.Type, option: func(o string) bool { return strings.Contains(options, o) }}
		if c.list = c.of.Kind() == reflect.Slice; c.list {
			c.of = c.of.Elem()
		}
		c.optional = c.option("optional")
		if c.of.Kind() == reflect.Pointer {
			c.of, c.optional = c.of.Elem(), true
		}
		out = append(out, c)
	}
	return out
}

// node is the column in a schema, and path where its values are.
func (c writtenColumn) node(t testing.TB) (n schema.Node, path string) {
	name, repetition := c.name, parquet.Repetitions.Required
	switch {
	case c.option("list"):
		name = "element"
	case c.list:
		repetition = parquet.Repetitions.Repeated
	}
	if c.optional {
		repetition = parquet.Repetitions.Optional
	}
	kind := c.of.Kind()
	var err error
	switch kind {
	case reflect.String:
		n, err = schema.NewPrimitiveNodeLogical(name, repetition, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
	case reflect.Bool:
		n = schema.NewBooleanNode(name, repetition, -1)
	case reflect.Float32:
		n = schema.NewFloat32Node(name, repetition, -1)
	case reflect.Float64:
		n = schema.NewFloat64Node(name, repetition, -1)
	case reflect.Int64:
		n = schema.NewInt64Node(name, repetition, -1)
	default:
		signed := kind < reflect.Uint
		n, err = schema.NewPrimitiveNodeLogical(name, repetition, schema.NewIntLogicalType(int8(c.of.Size()*8), signed), parquet.Types.Int32, -1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !c.option("list") {
		return n, name
	}
	list := schema.Must(schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{n}, -1))
	return schema.Must(schema.NewGroupNodeLogical(c.name, parquet.Repetitions.Required, schema.FieldList{list}, schema.NewListLogicalType(), -1)), c.name + ".list.element"
}

// write writes the column of some rows.
func (c writtenColumn) write(t testing.TB, w file.ColumnChunkWriter, rows reflect.Value) {
	var defs, reps []int16
	var values []reflect.Value
	add := func(v reflect.Value, rep, def int16) {
		reps = append(reps, rep)
		if v.Kind() == reflect.Pointer && v.IsNil() {
			defs = append(defs, def)
			return
		}
		if c.optional {
			def++
		}
		defs = append(defs, def)
		values = append(values, reflect.Indirect(v))
	}
	for i := range rows.Len() {
		v := rows.Index(i).Field(c.at)
		if !c.list {
			add(v, 0, 0)
			continue
		}
		for j := range v.Len() {
			add(v.Index(j), int16(min(j, 1)), 1)
		}
		if v.Len() == 0 {
			reps, defs = append(reps, 0), append(defs, 0)
		}
	}
	var err error
	switch w := w.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, reflect.Value.Bool), defs, reps)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, func(v reflect.Value) int32 {
			if v.CanUint() {
				return int32(v.Uint())
			}
			return int32(v.Int())
		}), defs, reps)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, reflect.Value.Int), defs, reps)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, func(v reflect.Value) float32 { return float32(v.Float()) }), defs, reps)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, reflect.Value.Float), defs, reps)
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(converted(values, func(v reflect.Value) parquet.ByteArray { return parquet.ByteArray(v.String()) }), defs, reps)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func converted[T any](values []reflect.Value, as func(reflect.Value) T) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = as(v)
	}
	return out
}

// parquetOf writes structs, whose fields are tagged as writtenColumn says.
func parquetOf[T any](t testing.TB, rows []T, how writing) string {
	t.Helper()
	columns := columnsOf(reflect.TypeFor[T]())
	props := []parquet.WriterProperty{parquet.WithCompression(how.codec), parquet.WithDictionaryDefault(false)}
	if how.v2 {
		props = append(props, parquet.WithDataPageVersion(parquet.DataPageV2))
	}
	if how.page > 0 {
		props = append(props, parquet.WithDataPageSize(how.page), parquet.WithBatchSize(64))
	}
	var fields schema.FieldList
	for _, c := range columns {
		n, path := c.node(t)
		fields = append(fields, n)
		text := c.of.Kind() == reflect.String
		switch {
		case c.option("dict"):
			props = append(props, parquet.WithDictionaryFor(path, true))
		case c.option("prefix"):
			props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.DeltaByteArray))
		case c.option("delta") && text:
			props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.DeltaLengthByteArray))
		case c.option("delta"):
			props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.DeltaBinaryPacked))
		case c.option("split"):
			props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.ByteStreamSplit))
		}
	}
	var buf bytes.Buffer
	w, err := file.NewParquetWriterWithError(&buf, schema.MustGroup(schema.NewGroupNode("rows", parquet.Repetitions.Required, fields, -1)), file.WithWriterProps(parquet.NewWriterProperties(props...)))
	if err != nil {
		t.Fatal(err)
	}
	all := reflect.ValueOf(rows)
	step := how.group
	if step == 0 {
		step = max(len(rows), 1)
	}
	for from := 0; from < len(rows); from += step {
		group, err := w.AppendRowGroupChecked()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			column, err := group.NextColumn()
			if err != nil {
				t.Fatal(err)
			}
			c.write(t, column, all.Slice(from, min(from+step, len(rows))))
		}
		if err := group.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}
