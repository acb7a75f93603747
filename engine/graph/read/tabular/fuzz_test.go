package tabular

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// fuzzTable opens a folder with one file of a fuzzer's. It must end in an error or
// in a graph whose parts agree, and which is the same when it is read again.
func fuzzTable(t *testing.T, open opener, name string, file []byte, edgeFeatures ...string) {
	dir := t.TempDir()
	if name != "edges.csv" && filepath.Ext(name) == ".csv" {
		if err := os.WriteFile(filepath.Join(dir, "edges.csv"), []byte("1,2\nb,2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil {
		t.Fatal(err)
	}
	// A small file may well claim millions of equal rows.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	s, err := open(ctx, dir, source.Options{Memory: 64 << 20, EdgeFeatures: edgeFeatures})
	if err != nil {
		return
	}
	defer s.Close()
	m := s.Meta()
	if m.Vertices == 0 || m.Edges == 0 {
		t.Fatalf("%+v", m)
	}
	for _, label := range s.Labels() {
		if label < -1 || int(label) >= m.Classes {
			t.Fatalf("label %d of %d classes", label, m.Classes)
		}
	}
	if ids := s.IDs(); ids.Ints != nil && len(ids.Ints) != int(m.Vertices) || ids.Strings != nil && len(ids.Strings.Offsets) != int(m.Vertices)+1 {
		t.Fatal("ids are not as many as vertices")
	}
	if m.Edges > 1<<16 {
		return
	}
	first, err := drain(ctx, s)
	again, errAgain := drain(ctx, s)
	if ctx.Err() == nil && (first != again || (err == nil) != (errAgain == nil)) {
		t.Fatalf("%q and then %q, %v and then %v", first, again, err, errAgain)
	}
}

func FuzzCSVEdges(f *testing.F) {
	for _, seed := range []string{
		"1,2\n2,3\n", "src,dst,weight\r\n1,2,0.5\r\n", "a;b\n\"c;\"\"d\";e\n", "# x\n1 2\n 3\t4 \n", "\xef\xbb\xbf1\t2\n-5\t9223372036854775807\n",
		"1,2\n007,x\n", "1,2\n\"3", "weight,to,from\n1e9,1,2\n", "1,2,3\n1,2,\n", "\"a\nb\",c\n", "1,2\n1,\xff\n", "src,a,dst,weight,b\n1,2,3,4,5\n2,-1e3,x,1,0\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		fuzzTable(t, OpenCSV, "edges.csv", file)
		fuzzTable(t, OpenCSV, "edges.csv", file, "all")
	})
}

func FuzzCSVFeatures(f *testing.F) {
	for _, seed := range []string{"1,0.5\n2,1\n", "id,a,b\n1,2,3\n9,4,5\n", ",0,1\n1,2,3\n", "1\t1e3\nb\tnan\n", "1,\"2\"\n", "1,2\n1,3\n", "x;1;2\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTable(t, OpenCSV, "features.csv", file) })
}

func FuzzCSVLabels(f *testing.F) {
	for _, seed := range []string{"1,0\n2,1\n", "id,label\n1,\nb,3.0\n", "2,nan\n9,4\n", "1,0.5\n2,\n", "id,a,b\n1,0,\n2,nan,1\n", "label_1,id,label_0\n1e9,2,True\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTable(t, OpenCSV, "labels.csv", file) })
}

func FuzzCSVSplits(f *testing.F) {
	for _, seed := range []string{"1,train\n2,val\n", "id,split_0,split_1\n1,test,train\nb,,valid\n", "split,id\nTRAIN,2\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTable(t, OpenCSV, "splits.csv", file) })
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(parquetOf(f, []edgeRow{{1, 2}, {2, -9}}, writing{v2: true})))
	f.Add([]byte(parquetOf(f, []smallRow{{1, 2, 3}}, writing{codec: compress.Codecs.Zstd})))
	f.Add([]byte(parquetOf(f, []textRow{{"a", "b"}, {"b", "c"}}, writing{codec: compress.Codecs.Snappy})))
	f.Add([]byte(parquetOf(f, []deltaRow{{1, 2, 3}, {4, 5, 6}}, writing{codec: compress.Codecs.Gzip})))
	f.Add([]byte(parquetOf(f, []deltaTextRow{{"a", "b"}, {"ab", "c"}}, writing{codec: compress.Codecs.Lz4Raw})))
	f.Fuzz(func(t *testing.T, file []byte) {
		fuzzTable(t, OpenParquet, "edges.parquet", file)
		fuzzTable(t, OpenParquet, "edges.parquet", file, "all")
	})
}

func FuzzParquetLists(f *testing.F) {
	f.Add([]byte(parquetOf(f, []listRow{{1, []float32{1, 2}}, {9, []float32{3, 4}}}, writing{})))
	f.Add([]byte(parquetOf(f, []repeatedRow{{1, []uint16{1, 2}}}, writing{v2: true})))
	f.Add([]byte(parquetOf(f, []wideRow{{1, 2, nil}, {2, 3, nil}}, writing{})))
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"edges.csv": []byte("1,2\n"), "features.parquet": file} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if s, err := OpenCSV(ctx, dir, source.Options{Memory: 64 << 20}); err == nil {
			defer s.Close()
			if s.Meta().Vertices < 1<<16 {
				_, _ = drain(ctx, s)
			}
		}
	})
}

func FuzzArrow(f *testing.F) {
	text := []arrow.Field{field("src", words), field("dst", arrow.BinaryTypes.LargeString), field("weight", arrow.FixedWidthTypes.Float16)}
	f.Add([]byte(arrowOf(f, edgeInts, []string{someEdges})))
	f.Add([]byte(arrowOf(f, text, []string{`[{"src":"a","dst":"b","weight":1}]`}, ipc.WithLZ4())))
	f.Add([]byte(arrowOf(f, text, []string{`[{"src":"a","dst":"b","weight":1}]`, `[{"src":"a","dst":"c","weight":2}]`}, ipc.WithZstd())))
	f.Fuzz(func(t *testing.T, file []byte) { fuzzTable(t, OpenParquet, "edges.arrow", bytes.Clone(file)) })
}
