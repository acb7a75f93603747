package table

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// pairsOf writes pairs in two parts.
func pairsOf(t *testing.T, format string, p Pairs, sources, targets [][]byte, scores []float32) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewPairs(&out, format, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(sources[:1], targets[:1], scores[:1]), w.Write(sources[1:], targets[1:], scores[1:]), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Ids and scores come back as they were from all formats, by readers of others.
func TestPairs(t *testing.T) {
	texts := func(list ...string) (all [][]byte) {
		for _, s := range list {
			all = append(all, []byte(s))
		}
		return all
	}
	scores := []float32{1.5, -1e-30, 16777217, 0.1}
	for _, c := range []struct {
		names            bool
		sources, targets [][]byte
	}{
		{false, texts("7", "-3", "9007199254740993", "0"), texts("1", "2", "3", "4")},
		{true, texts("a,b", " é\"x\"", "line\nend", "<&>"), texts("plain", "tab\there", "", "back\\slash ")},
	} {
		for _, fewer := range []bool{false, true} {
			p := Pairs{Rows: len(scores), Fewer: fewer, Names: c.names}
			if fewer {
				p.Rows += 3
			}
			var want [][]string
			for i, score := range scores {
				want = append(want, []string{string(c.sources[i]), string(c.targets[i]), fmt.Sprint(score)})
			}
			for format, delimiter := range map[string]rune{".csv": ',', ".tsv": '\t'} {
				r := csv.NewReader(bytes.NewReader(pairsOf(t, format, p, c.sources, c.targets, scores)))
				r.Comma = delimiter
				got, err := r.ReadAll()
				if err != nil || !slices.Equal(got[0], []string{"source", "target", "score"}) || fmt.Sprint(numbered(t, got[1:])) != fmt.Sprint(want) {
					t.Errorf("%s: %q, %v", format, got, err)
				}
			}
			var document struct {
				Pairs []struct {
					Source, Target any
					Score          float32
				} `json:"pairs"`
			}
			text := pairsOf(t, ".json", p, c.sources, c.targets, scores)
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&document); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			var got [][]string
			for _, pair := range document.Pairs {
				if _, is := pair.Source.(string); is != c.names {
					t.Errorf("%v is of the wrong kind", pair.Source)
				}
				got = append(got, []string{fmt.Sprint(pair.Source), fmt.Sprint(pair.Target), fmt.Sprint(pair.Score)})
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q", got)
			}
			if got := parquetPairs(t, pairsOf(t, ".parquet", p, c.sources, c.targets, scores), c.names); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q", got)
			}
			if fewer {
				if _, err := NewPairs(io.Discard, ".npy", p); err == nil {
					t.Error("an .npy file of unknown length is begun")
				}
				continue
			}
			npy := pairsOf(t, ".npy", p, c.sources, c.targets, scores)
			for i, want := range scores {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(npy[len(npy)-4*len(scores)+4*i:])); got != want {
					t.Errorf("score %d is %g, want %g", i, got, want)
				}
			}
		}
	}
}

// numbered writes scores as fmt does.
func numbered(t *testing.T, rows [][]string) [][]string {
	t.Helper()
	for _, row := range rows {
		x, err := strconv.ParseFloat(row[2], 32)
		if err != nil {
			t.Error(err)
		}
		row[2] = fmt.Sprint(float32(x))
	}
	return rows
}

// parquetPairs reads pairs back.
func parquetPairs(t *testing.T, b []byte, names bool) (rows [][]string) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	n := int(f.NumRows())
	rows = make([][]string, n)
	for column, name := range []string{"source", "target", "score"} {
		if got := f.MetaData().Schema.Column(column).Name(); got != name {
			t.Errorf("column %d is %s, want %s", column, got, name)
		}
		r, err := f.RowGroup(0).Column(column)
		if err != nil {
			t.Fatal(err)
		}
		ints, texts, scores := make([]int64, n), make([]parquet.ByteArray, n), make([]float32, n)
		switch {
		case column == 2:
			_, _, err = r.(*file.Float32ColumnChunkReader).ReadBatch(int64(n), scores, nil, nil)
		case names:
			_, _, err = r.(*file.ByteArrayColumnChunkReader).ReadBatch(int64(n), texts, nil, nil)
		default:
			_, _, err = r.(*file.Int64ColumnChunkReader).ReadBatch(int64(n), ints, nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			switch {
			case column == 2:
				rows[i] = append(rows[i], fmt.Sprint(scores[i]))
			case names:
				rows[i] = append(rows[i], string(texts[i]))
			default:
				rows[i] = append(rows[i], fmt.Sprint(ints[i]))
			}
		}
	}
	return rows
}

// Rows that are missing or too many are errors, a score that is no number is null in JSON, and
// no pairs at all are a table, too.
func TestPairsThatCannotBe(t *testing.T) {
	id, score := [][]byte{[]byte("1")}, []float32{1}
	for _, format := range []string{".npy", ".parquet"} {
		w, err := NewPairs(io.Discard, format, Pairs{Rows: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(id, id, score); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err == nil {
			t.Errorf("%s: a row is missing", format)
		}
		if w, err = NewPairs(io.Discard, format, Pairs{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(id, id, score); err == nil {
			t.Errorf("%s: a row more than announced", format)
		}
	}
	if _, err := NewPairs(io.Discard, ".xls", Pairs{}); err == nil {
		t.Error("there is a format .xls")
	}
	if got := pairsOf(t, ".json", Pairs{Rows: 2}, [][]byte{id[0], id[0]}, [][]byte{id[0], id[0]}, []float32{float32(math.NaN()), 2}); !json.Valid(got) || !bytes.Contains(got, []byte(`"score":null`)) {
		t.Errorf("%s", got)
	}
	for _, format := range PairFormats {
		var out bytes.Buffer
		w, err := NewPairs(&out, format, Pairs{})
		if err == nil {
			err = errors.Join(w.Write(nil, nil, nil), w.Close())
		}
		if err != nil || out.Len() == 0 || format == ".json" && !json.Valid(out.Bytes()) {
			t.Errorf("%s: %q, %v", format, out.String(), err)
		}
	}
}

// A writer of pairs takes no more memory than it says.
func TestMemoryOfPairs(t *testing.T) {
	held := func() int64 {
		runtime.GC()
		runtime.GC() // pools keep what they have for one more
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const some, rows = 1024, 2 * groupRows
	for _, names := range []bool{false, true} {
		ids, scores := make([][]byte, some), make([]float32, some)
		for i := range ids {
			if ids[i] = []byte("123456789"); names {
				ids[i] = bytes.Repeat([]byte("name"), 15)
			}
		}
		for _, format := range PairFormats {
			p := Pairs{Rows: rows, Names: names}
			before, peak := held(), int64(0)
			w, err := NewPairs(io.Discard, format, p)
			if err != nil {
				t.Fatal(err)
			}
			for at := some; at <= rows; at += some {
				if err := w.Write(ids, ids, scores); err != nil {
					t.Fatal(err)
				}
				if at == some || at%groupRows == groupRows-some {
					peak = max(peak, held()-before)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if says := int64(PairMemory(format, p)); peak > says || format == ".parquet" && says > 3*peak {
				t.Errorf("%s, names %v: %d bytes, and it says %d", format, names, peak, says)
			}
		}
	}
}
