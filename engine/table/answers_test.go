package table

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// The best class, its name and its probability follow the scores.
func TestAnswers(t *testing.T) {
	scores := []float32{1, 3, 3, -1, -2, -5, 0, 800, 799}
	named := []string{"", "pear", "fig"}
	softmax := func(a, b, c float64) float64 { return math.Exp(a) / (math.Exp(a) + math.Exp(b) + math.Exp(c)) }
	logistic := func(a float64) float64 { return 1 / (1 + math.Exp(-a)) }
	for _, c := range []struct {
		answers Answers
		want    []float64
	}{
		{Answers{Names: named}, []float64{softmax(3, 3, 1), softmax(-1, -2, -5), softmax(0, -1, -800)}},
		{Answers{Names: named, Logistic: true}, []float64{logistic(3), logistic(-1), 1}},
	} {
		var out bytes.Buffer
		w, err := New(&out, ".parquet", Header{Rows: 3, Columns: []string{"class_0", "class_1", "class_2"}, Answers: &c.answers})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(ids[:1], scores[:3]), w.Write(ids[1:], scores[3:]), w.Close()); err != nil {
			t.Fatal(err)
		}
		f, err := file.NewParquetReader(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var columns []string
		for i := range f.MetaData().Schema.NumColumns() {
			columns = append(columns, f.MetaData().Schema.Column(i).Name())
		}
		if !slices.Equal(columns, []string{"id", "class_0", "class_1", "class_2", "class", "class_name", "probability"}) {
			t.Fatalf("the columns are %v", columns)
		}
		classes, names, probabilities := make([]int32, 3), make([]parquet.ByteArray, 3), make([]float32, 3)
		group := f.RowGroup(0)
		for i, read := range []func(file.ColumnChunkReader) (int64, int, error){
			func(r file.ColumnChunkReader) (int64, int, error) {
				return r.(*file.Int32ColumnChunkReader).ReadBatch(3, classes, nil, nil)
			},
			func(r file.ColumnChunkReader) (int64, int, error) {
				return r.(*file.ByteArrayColumnChunkReader).ReadBatch(3, names, nil, nil)
			},
			func(r file.ColumnChunkReader) (int64, int, error) {
				return r.(*file.Float32ColumnChunkReader).ReadBatch(3, probabilities, nil, nil)
			},
		} {
			column, err := group.Column(4 + i)
			if err != nil {
				t.Fatal(err)
			}
			if _, n, err := read(column); n != 3 || err != nil {
				t.Fatal(n, err)
			}
		}
		if !slices.Equal(classes, []int32{1, 0, 1}) || string(names[0]) != "pear" || string(names[1]) != "" || string(names[2]) != "pear" {
			t.Errorf("the classes are %v: %s", classes, names)
		}
		for i, want := range c.want {
			if math.Abs(float64(probabilities[i])-want) > 1e-6 {
				t.Errorf("row %d: %v, not %v", i, probabilities[i], want)
			}
		}
	}
}

func TestAnswersThatCannotBe(t *testing.T) {
	for _, h := range []Header{
		{Columns: []string{"class_0"}, Answers: &Answers{Names: []string{"a", "b"}}},
		{Answers: &Answers{}},
		{Columns: []string{"class"}, Answers: &Answers{Names: []string{"a"}}},
	} {
		if _, err := New(io.Discard, ".parquet", h); err == nil {
			t.Errorf("%v was taken", h)
		} else if len(h.Columns) == 1 && h.Columns[0] == "class" && !strings.Contains(err.Error(), "two columns class") {
			t.Error(err)
		}
	}
	// NPY stays as it is.
	plain := written(t, ".npy", Header{Rows: 3, Columns: []string{"a", "b"}}, ids)
	if with := written(t, ".npy", Header{Rows: 3, Columns: []string{"a", "b"}, Answers: &Answers{Names: []string{"x", "y"}}}, ids); !bytes.Equal(plain, with) {
		t.Error("answers change an NPY file")
	}
}
