package tabular

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// TestClaimsCostNothing gives what no memory would hold to all that looks at a file
// before the library does.
func TestClaimsCostNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	elements := binary.AppendUvarint([]byte{0x29, 0xfc}, 1<<26) // the footer's second field is a list of structs
	deep := []byte{0x29, 0xfc, 100}
	for range 100 {
		deep = append(deep, 0x55, 2, 0) // its fifth field, the number of children, is 1
	}
	deep = append(deep, 0)
	groups := binary.AppendUvarint([]byte{0x49, 0xfc}, 1<<26)
	for name, footer := range map[string][]byte{"a list of 2^26": elements, "a schema of 100 levels": deep, "2^26 row groups": groups, "nothing": nil, "structures a thousand deep": bytes.Repeat([]byte{0x1c}, 1000)} {
		if err := footers.CheckParquet(footer); !errors.Is(err, footers.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, codec := range codecs() {
		c, err := compress.GetCodec(codec)
		if err != nil {
			t.Fatal(err)
		}
		packed := c.Encode(nil, make([]byte, 1<<20))
		for _, dst := range [][]byte{nil, make([]byte, 0), make([]byte, 100)} {
			if out, err := compress.Decode(c, dst, packed); err == nil && name != "none" {
				t.Errorf("%s: %d bytes from a page that claims %d", name, len(out), len(dst))
			}
		}
		if out, err := compress.Decode(c, make([]byte, 1<<20), packed); err != nil || len(out) != 1<<20 {
			t.Errorf("%s: %d bytes, %v", name, len(out), err)
		}
	}
	c, err := compress.GetCodec(compress.Codecs.Snappy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compress.Decode(c, make([]byte, 10), binary.AppendUvarint(nil, 1<<31)); err == nil {
		t.Error("2 GiB from 5 bytes")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

// TestMissingValuesAreNoticed has pages with fewer values than the footer says: they
// must not be taken for the end of the table.
func TestMissingValuesAreNoticed(t *testing.T) {
	whole := parquetOf(t, []edgeRow{{1, 2}, {2, 3}, {3, 1}}, writing{})
	// A page header's fifth field is the data page's, whose first is the number of values.
	short := strings.ReplaceAll(whole, "\x2c\x15\x06", "\x2c\x15\x04")
	if short == whole {
		t.Fatal("no page header was found")
	}
	err := readThrough(t, OpenParquet, folder(t, map[string]string{"edges.parquet": short}), source.Options{})
	if want := "edges.parquet can't be read (column src: a page ends before its values do): write it again"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestNamesOfColumnsDoNotBreakSentences(t *testing.T) {
	type row struct {
		Src int64 `parquet:"sr\nc"`
		Dst int64 `parquet:"dst"`
	}
	err := readThrough(t, OpenParquet, folder(t, map[string]string{"edges.parquet": parquetOf(t, []row{{1, 2}}, writing{})}), source.Options{})
	if want := "edges.parquet has no columns called src and dst among sr?c, dst: call the columns with the edges' two ends so"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestMemoryBoundsPages reads a column whose page is larger than what is allowed.
func TestMemoryBoundsPages(t *testing.T) {
	rows := make([]edgeRow, 100_000)
	for i := range rows {
		rows[i] = edgeRow{int64(i), int64(i)}
	}
	dir := folder(t, map[string]string{"edges.parquet": parquetOf(t, rows, writing{codec: compress.Codecs.Zstd})})
	want := "edges.parquet, column src: its pages need more memory than is allowed: allow more, or write it with smaller pages"
	if err := readThrough(t, OpenParquet, dir, source.Options{Memory: 512 << 10}); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := readThrough(t, OpenParquet, dir, source.Options{Memory: 8 << 20}); err != nil {
		t.Error(err)
	}
	// What a row group took is given back.
	dir = folder(t, map[string]string{"edges.parquet": parquetOf(t, rows, writing{codec: compress.Codecs.Zstd, group: 100})})
	if err := readThrough(t, OpenParquet, dir, source.Options{Memory: 8 << 20}); err != nil {
		t.Error(err)
	}
}

// TestRepeatedTextIsReadInPortions has one long id, written once, for many rows.
func TestRepeatedTextIsReadInPortions(t *testing.T) {
	rows := make([]textRow, 20_000)
	long := strings.Repeat("x", source.MaxLine)
	for i := range rows {
		rows[i] = textRow{long, "b"}
	}
	f, err := openTable(t.Context(), folderWith(t, "edges.parquet", parquetOf(t, rows, writing{codec: compress.Codecs.Zstd})), edgesTable, false, opening{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	n := 0
	if err := f.scan(t.Context(), scanning{text: true}, func(b *rowBatch) error {
		if n += b.n; len(b.ids[0].bytes) > 4<<20+256*source.MaxLine {
			t.Fatalf("%d bytes at a time", len(b.ids[0].bytes))
		}
		return nil
	}); err != nil || n != len(rows) {
		t.Errorf("%d rows, %v", n, err)
	}
}

func folderWith(t *testing.T, name, file string) string {
	t.Helper()
	return filepath.Join(folder(t, map[string]string{name: file}), name)
}

func TestHalfFloats(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 1.0 / (1 << 24), 0x03ff: 1023.0 / (1 << 24), 0x0400: 1.0 / (1 << 14), 0x3555: 0.333251953125} {
		if got := source.Half(h); got != want {
			t.Errorf("%#x is %v, want %v", h, got, want)
		}
	}
	if !math.IsInf(float64(source.Half(0xfc00)), -1) || !math.IsNaN(float64(source.Half(0x7e00))) {
		t.Error("what is not finite became so")
	}
}

func TestNullsAreWhereTheyWere(t *testing.T) {
	type row struct {
		ID    int64  `parquet:"id"`
		Label *int64 `parquet:"label,optional"`
	}
	var rows []row
	for i := range int64(3000) {
		r := row{ID: i}
		if i%7 < 3 || i > 2000 && i < 2500 {
			r.Label = new(i % 50)
		}
		rows = append(rows, r)
	}
	for _, version := range []int{1, 2} {
		file := parquetOf(t, rows, writing{v2: version == 2, page: 500})
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": "0,1\n", "labels.parquet": file}))
		for i, label := range s.Labels() {
			want := int32(-1)
			if rows[i].Label != nil {
				want = int32(*rows[i].Label)
			}
			if label != want {
				t.Fatalf("version %d: label %d is %d, want %d", version, i, label, want)
			}
		}
	}
}

func TestUnsignedIDsAndNullsInLists(t *testing.T) {
	type wide struct {
		Src uint32 `parquet:"src"`
		Dst uint32 `parquet:"dst"`
	}
	type list struct {
		ID       int64      `parquet:"id"`
		Features []*float32 `parquet:"features,list"`
	}
	dir := folder(t, map[string]string{"edges.parquet": parquetOf(t, []wide{{4_000_000_000, 1}}, writing{})})
	if got := edgesOf(t, mustOpenParquet(t, dir)); !slices.Equal(got, []string{"4000000000>1"}) {
		t.Error(got)
	}
	dir = folder(t, map[string]string{"edges.csv": "1,2\n", "features.parquet": parquetOf(t, []list{{1, []*float32{new(float32(1))}}, {2, []*float32{nil}}}, writing{})})
	if err := readThrough(t, OpenCSV, dir, source.Options{}); err == nil || !strings.Contains(err.Error(), "features.parquet, row 2: a feature is missing") {
		t.Error(err)
	}
}
