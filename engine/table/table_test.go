package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

var (
	ids  = [][]byte{[]byte("7"), []byte("-3"), []byte("9007199254740993")}
	rows = []float32{1, -2.5, float32(math.Inf(1)), 0, math.MaxFloat32, 1e-40}
)

// written writes the rows in two parts.
func written(t *testing.T, format string, h Header, ids [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := New(&out, format, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(ids[:1], rows[:2]), w.Write(ids[1:], rows[2:]), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNPY(t *testing.T) {
	out := written(t, ".npy", Header{Rows: 3, Columns: []string{"a", "b"}}, ids)
	if !bytes.HasPrefix(out, []byte("\x93NUMPY\x01\x00")) {
		t.Fatalf("it begins with %q", out[:10])
	}
	header := int(binary.LittleEndian.Uint16(out[8:]))
	text := string(out[10 : 10+header])
	if (10+header)%64 != 0 || !strings.HasSuffix(text, "\n") || !strings.HasPrefix(text, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }") {
		t.Errorf("the header of %d bytes is %q", header, text)
	}
	data := out[10+header:]
	if len(data) != 4*len(rows) {
		t.Fatalf("%d bytes of numbers", len(data))
	}
	for i, want := range rows {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); got != want {
			t.Errorf("number %d is %v, not %v", i, got, want)
		}
	}
}

func TestHeadersOfNPYAreAligned(t *testing.T) {
	for _, n := range []int{0, 1, 12, 12345, 1234567, 123456789} {
		var out bytes.Buffer
		w, err := newNPY(&out, Header{Rows: n, Columns: make([]string, n%300)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.out.Flush(); err != nil || out.Len()%64 != 0 || out.Bytes()[out.Len()-1] != '\n' {
			t.Errorf("%d rows: %d bytes, %v", n, out.Len(), err)
		}
	}
}

// readBack returns the columns' names, the ids and the numbers, row after row.
func readBack(t *testing.T, written []byte) (groups int, columns, ids []string, rows []float32) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	width := f.MetaData().Schema.NumColumns() - 1
	for i := range width + 1 {
		columns = append(columns, f.MetaData().Schema.Column(i).Name())
	}
	for g := range f.NumRowGroups() {
		group := f.RowGroup(g)
		n := group.NumRows()
		before := len(rows)
		rows = append(rows, make([]float32, int(n)*width)...)
		for i := range width + 1 {
			column, err := group.Column(i)
			if err != nil {
				t.Fatal(err)
			}
			var got int
			switch r := column.(type) {
			case *file.Int64ColumnChunkReader:
				list := make([]int64, n)
				_, got, err = r.ReadBatch(n, list, nil, nil)
				for _, id := range list {
					ids = append(ids, fmt.Sprint(id))
				}
			case *file.ByteArrayColumnChunkReader:
				list := make([]parquet.ByteArray, n)
				_, got, err = r.ReadBatch(n, list, nil, nil)
				for _, id := range list {
					ids = append(ids, string(id))
				}
			case *file.Float32ColumnChunkReader:
				list := make([]float32, n)
				_, got, err = r.ReadBatch(n, list, nil, nil)
				for row, v := range list {
					rows[before+row*width+i-1] = v
				}
			}
			if err != nil || got != int(n) {
				t.Fatalf("column %d: %d of %d values, %v", i, got, n, err)
			}
		}
	}
	return f.NumRowGroups(), columns, ids, rows
}

func TestParquet(t *testing.T) {
	for _, names := range []bool{false, true} {
		_, columns, gotIDs, got := readBack(t, written(t, ".parquet", Header{Rows: 3, Columns: []string{"b", "a"}, Names: names}, ids))
		var want []string
		for _, id := range ids {
			want = append(want, string(id))
		}
		if !slices.Equal(columns, []string{"id", "b", "a"}) || !slices.Equal(gotIDs, want) || !slices.Equal(got, rows) {
			t.Errorf("names %v: read %v, %v and %v", names, columns, gotIDs, got)
		}
	}
}

// Columns stay in the order in which they were named, not in that of their names.
func TestColumnsStayInOrder(t *testing.T) {
	var columns []string
	want := []string{"id"}
	row := make([]float32, 12)
	for i := range row {
		columns, row[i] = append(columns, fmt.Sprintf("class_%d", i)), float32(i)
	}
	want = append(want, columns...)
	var out bytes.Buffer
	w, err := New(&out, ".parquet", Header{Rows: 1, Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(ids[:1], row), w.Close()); err != nil {
		t.Fatal(err)
	}
	_, got, _, numbers := readBack(t, out.Bytes())
	if !slices.Equal(got, want) {
		t.Errorf("the columns are %v", got)
	}
	if !slices.Equal(numbers, row) {
		t.Errorf("the row is %v", numbers)
	}
}

func TestManyRowGroups(t *testing.T) {
	const n = 3*groupRows/2 + 1
	var out bytes.Buffer
	w, err := New(&out, ".parquet", Header{Rows: n, Columns: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < n; from += 1000 {
		count := min(1000, n-from)
		ids, rows := make([][]byte, count), make([]float32, count)
		for i := range ids {
			ids[i], rows[i] = fmt.Appendf(nil, "%d", from+i), float32(from+i)
		}
		if err := w.Write(ids, rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	groups, _, gotIDs, got := readBack(t, out.Bytes())
	if groups != 2 || len(gotIDs) != n {
		t.Fatalf("%d rows in %d groups", len(gotIDs), groups)
	}
	for i, id := range gotIDs {
		if id != fmt.Sprint(i) || got[i] != float32(i) {
			t.Fatalf("row %d is %s, %v", i, id, got[i])
		}
	}
}

// A writer takes no more memory than it says, and not much less.
func TestMemoryOfWriters(t *testing.T) {
	held := func() int64 {
		runtime.GC()
		runtime.GC() // pools keep what they have for one more
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const some = 1024
	for _, c := range []struct {
		rows, columns int
		named         bool
	}{{some, 4, false}, {some, 4, true}, {groupRows, 64, true}, {3 * groupRows, 2, true}, {3 * groupRows, 300, false}} {
		h := Header{Rows: c.rows}
		if c.named {
			h.Answers = new(Answers)
			for range c.columns {
				h.Answers.Names = append(h.Answers.Names, "a class of twenty-nine letters")
			}
		}
		for i := range c.columns {
			h.Columns = append(h.Columns, fmt.Sprintf("c_%d", i))
		}
		ids, numbers := make([][]byte, some), make([]float32, some*c.columns)
		for i := range ids {
			ids[i] = []byte("123456789")
		}
		for _, format := range Formats {
			before, peak := held(), int64(0)
			w, err := New(io.Discard, format, h)
			if err != nil {
				t.Fatal(err)
			}
			for at := some; at <= c.rows; at += some {
				if err := w.Write(ids, numbers); err != nil {
					t.Fatal(err)
				}
				if at%(8*some) == groupRows%(8*some) || at%groupRows == groupRows-some {
					peak = max(peak, held()-before)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if says := int64(Memory(format, h)); peak > says || format == ".parquet" && c.rows >= groupRows && says > peak*3/2 {
				t.Errorf("%s, %d rows of %d columns: %d bytes, and it says %d", format, c.rows, c.columns, peak, says)
			}
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for _, format := range Formats {
		for _, count := range []int{2, 4} {
			w, err := New(io.Discard, format, Header{Rows: count, Columns: []string{"a", "b"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Write(ids, rows), w.Close()); !errors.Is(err, errRows) {
				t.Errorf("%s: 3 rows of %d: %v", format, count, err)
			}
		}
		w, err := New(io.Discard, format, Header{Rows: 3, Columns: []string{"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(ids, rows[1:]); !errors.Is(err, errRows) {
			t.Errorf("%s: ragged rows: %v", format, err)
		}
	}
	w, err := New(io.Discard, ".parquet", Header{Rows: 1, Columns: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([][]byte{[]byte("seven")}, rows[:1]); err == nil || !strings.Contains(err.Error(), "seven") {
		t.Errorf("a name for a number: %v", err)
	}
	if _, err := New(io.Discard, ".parquet", Header{Columns: []string{"id"}}); err == nil {
		t.Error("two columns of one name were taken")
	}
	if _, err := New(io.Discard, ".csv", Header{}); err == nil {
		t.Error("an unknown format was taken")
	}
	for name, want := range map[string]string{"a.npy": ".npy", "b/c.PARQUET": ".parquet", "a.csv": "", "npy": ""} {
		if got, err := Format(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
