package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// written writes one batch of rows into a file of Arrow.
func written(t *testing.T, record arrow.RecordBatch) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodes.arrow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(record.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(record), w.Close(), f.Close()); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	return path
}

// opened opens columns of a file.
func opened(t *testing.T, path string, columns ...int) Reader {
	t.Helper()
	file, err := OpenArrow(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	in, err := file.Open(columns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// One long word of a dictionary may stand in any number of rows and columns: few are taken at a
// time, and of each as much as shows that it is too long.
func TestWordsOfADictionaryAreFew(t *testing.T) {
	const rows = 300
	for _, columns := range []int{1, 40} {
		kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
		fields := []arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float32}}
		wanted := []int{0}
		for i := range columns {
			fields, wanted = append(fields, arrow.Field{Name: fmt.Sprint("word", i), Type: kind}), append(wanted, i+1)
		}
		b := arrowarray.NewRecordBuilder(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil))
		defer b.Release()
		word := strings.Repeat("w", 2*source.MaxLine)
		for i := range rows {
			b.Field(0).(*arrowarray.Float32Builder).Append(float32(i))
			for column := range columns {
				if err := b.Field(1 + column).(*arrowarray.BinaryDictionaryBuilder).AppendString(word); err != nil {
					t.Fatal(err)
				}
			}
		}
		record := b.NewRecordBatch()
		defer record.Release()
		in, seen := opened(t, written(t, record), wanted...), 0
		for {
			n, values, err := in.Next(1 << 15)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := textOf(values); len(values[0].Floats) != n || text != n*columns*(source.MaxLine+1) || text > textEnough+textRows*(source.MaxLine+1) {
				t.Fatalf("%d rows of %d columns have %d bytes of text and %d numbers", n, columns, text, len(values[0].Floats))
			}
			for i, x := range values[0].Floats {
				if x != float64(seen+i) {
					t.Fatalf("row %d has the number %v", seen+i, x)
				}
			}
			seen += n
		}
		if seen != rows {
			t.Errorf("%d of %d rows", seen, rows)
		}
	}
}

// The library takes memory as a batch says of itself, and rows below zero.
func TestBatchesThatClaimTooMuch(t *testing.T) {
	fields := []arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "view", Type: arrow.BinaryTypes.StringView}}
	b := arrowarray.NewRecordBuilder(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	b.Field(0).(*arrowarray.StringBuilder).Append("a")
	b.Field(1).(*arrowarray.StringViewBuilder).Append("a text that is too long to lie in the view itself")
	plain := b.NewRecordBatch()
	defer plain.Release()
	meta := arrow.NewMetadata([]string{"key"}, []string{"value"})
	record := arrowarray.NewRecordBatchWithMetadata(plain.Schema(), plain.Columns(), 1, meta)
	defer record.Release()
	whole, err := os.ReadFile(written(t, record))
	if err != nil {
		t.Fatal(err)
	}
	inner := func(t flatbuffers.Table, place flatbuffers.VOffsetT) flatbuffers.Table {
		return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(t.Offset(place)))}
	}
	list := func(t flatbuffers.Table, place flatbuffers.VOffsetT) flatbuffers.UOffsetT {
		return t.Vector(flatbuffers.UOffsetT(t.Offset(place)))
	}
	for name, c := range map[string]struct {
		change func(message, batch flatbuffers.Table)
		want   error
	}{
		"nothing": {func(_, _ flatbuffers.Table) {}, nil},
		"pairs":   {func(m, _ flatbuffers.Table) { m.MutateUint32(list(m, 12)-4, 1<<32-1) }, footers.ErrClaims},
		"buffers": {func(_, b flatbuffers.Table) { b.MutateInt64(list(b, 12), 1<<36) }, footers.ErrClaims},
		"rows": {func(_, b flatbuffers.Table) {
			b.MutateInt64Slot(4, -1)
			for i := range flatbuffers.UOffsetT(2) {
				b.MutateInt64(list(b, 6)+16*i, -1)
			}
		}, footers.ErrDamaged},
	} {
		file := slices.Clone(whole)
		end := len(file) - 10
		tail := file[end-int(binary.LittleEndian.Uint32(file[end:])):]
		footer := flatbuffers.Table{Bytes: tail, Pos: flatbuffers.GetUOffsetT(tail)}
		message := file[footer.GetInt64(list(footer, 10))+8:]
		m := flatbuffers.Table{Bytes: message, Pos: flatbuffers.GetUOffsetT(message)}
		c.change(m, inner(m, 8))
		path := filepath.Join(t.TempDir(), "changed.arrow")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		n, _, err := opened(t, path, 0, 1).Next(10)
		if !errors.Is(err, c.want) || err == nil && n != 1 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
}

// A list that is longer than features can be is refused before it is taken.
func TestAListThatIsTooLong(t *testing.T) {
	fields := []arrow.Field{{Name: "features", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean)}}
	b := arrowarray.NewRecordBuilder(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	rows := b.Field(0).(*arrowarray.ListBuilder)
	rows.Append(true)
	rows.ValueBuilder().(*arrowarray.BooleanBuilder).AppendValues(make([]bool, source.MaxDenseFeatures+1), nil)
	record := b.NewRecordBatch()
	defer record.Release()
	if n, _, err := opened(t, written(t, record), 0).Next(10); err == nil || !strings.Contains(err.Error(), "a row has more than the 1048576 features") {
		t.Errorf("%d rows, %v", n, err)
	}
}
