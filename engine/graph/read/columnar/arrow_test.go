package columnar

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// One long word of a dictionary may stand in any number of rows: few are taken at a time, and of
// each as much as shows that it is too long.
func TestWordsOfADictionaryAreFew(t *testing.T) {
	const rows = 3000
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: kind}, {Name: "x", Type: arrow.PrimitiveTypes.Float32}}, nil)
	b := arrowarray.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
	defer b.Release()
	word := strings.Repeat("w", 2*source.MaxLine)
	for i := range rows {
		if err := b.Field(0).(*arrowarray.BinaryDictionaryBuilder).AppendString(word); err != nil {
			t.Fatal(err)
		}
		b.Field(1).(*arrowarray.Float32Builder).Append(float32(i))
	}
	path := filepath.Join(t.TempDir(), "nodes.arrow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	record := b.NewRecordBatch()
	defer record.Release()
	if err := errors.Join(w.Write(record), w.Close(), f.Close()); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	file, err := OpenArrow(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := file.Open([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	seen := 0
	for {
		n, columns, err := in.Next(1 << 15)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text := &columns[0].Text
		if len(text.Ends) != n || len(columns[1].Floats) != n || len(text.Bytes) != n*(source.MaxLine+1) || len(text.Bytes) > textEnough+textRows*(source.MaxLine+1) {
			t.Fatalf("%d rows have %d bytes of text in %d words, and %d numbers", n, len(text.Bytes), len(text.Ends), len(columns[1].Floats))
		}
		for i, x := range columns[1].Floats {
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
