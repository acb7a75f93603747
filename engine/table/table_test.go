package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
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

func TestParquet(t *testing.T) {
	columns := []string{"b", "a"} // sorted otherwise in the file
	for _, names := range []bool{false, true} {
		out := written(t, ".parquet", Header{Rows: 3, Columns: columns, Names: names}, ids)
		type row struct {
			A float32 `parquet:"a"`
			B float32 `parquet:"b"`
		}
		type numbered struct {
			ID int64 `parquet:"id"`
			row
		}
		type named struct {
			ID string `parquet:"id"`
			row
		}
		var got []string
		if names {
			list, err := parquet.Read[named](bytes.NewReader(out), int64(len(out)))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				got = append(got, fmt.Sprint(r.ID, r.B, r.A))
			}
		} else {
			list, err := parquet.Read[numbered](bytes.NewReader(out), int64(len(out)))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				got = append(got, fmt.Sprint(fmt.Sprint(r.ID), r.B, r.A))
			}
		}
		var want []string
		for i, id := range ids {
			want = append(want, fmt.Sprint(string(id), rows[2*i], rows[2*i+1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("names %v: read %v, wrote %v", names, got, want)
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
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range file.Schema().Columns() {
		got = append(got, path[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the columns are %v", got)
	}
	read := make([]parquet.Row, 1)
	rows := file.RowGroups()[0].Rows()
	defer rows.Close()
	if n, err := rows.ReadRows(read); n != 1 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%d rows, %v", n, err)
	}
	for i, v := range read[0][1:] {
		if v.Float() != float32(i) {
			t.Errorf("column %d holds %v", i, v)
		}
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
	type row struct {
		ID int64   `parquet:"id"`
		X  float32 `parquet:"x"`
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(file.RowGroups()) != 2 {
		t.Fatalf("%d row groups, %v", len(file.RowGroups()), err)
	}
	list, err := parquet.Read[row](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(list) != n {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	for i, r := range list {
		if r.ID != int64(i) || r.X != float32(i) {
			t.Fatalf("row %d is %+v", i, r)
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
	for file, want := range map[string]string{"a.npy": ".npy", "b/c.PARQUET": ".parquet", "a.csv": "", "npy": ""} {
		if got, err := Format(file); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}
