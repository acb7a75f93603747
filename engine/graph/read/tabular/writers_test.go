package tabular

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// TestFilesOfOtherWriters reads what pyarrow, polars and DuckDB wrote.
// testdata/columns/make.py says how.
func TestFilesOfOtherWriters(t *testing.T) {
	var ints, text []string
	for i := range 40 {
		ints = append(ints, fmt.Sprintf("%d>%d:%v", i%7, (i*i+1)%11-3, float32(i)/4))
		text = append(text, fmt.Sprintf("v%d>v%d:%v", i%7, (i*i+1)%11, float32(i)/4))
	}
	files, err := filepath.Glob("../testdata/columns/*-*")
	if err != nil || len(files) != 17 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		want := ints
		if strings.Contains(name, "text") {
			want = text
		}
		if got := edgesOf(t, mustOpenParquet(t, path)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLargeDictionariesAndLongText reads a categorical of pandas, whose dictionary
// has more values than the column has rows, and ids of 320 bytes.
func TestLargeDictionariesAndLongText(t *testing.T) {
	id := func(i int) string { return "https://example.org/" + strings.Repeat(fmt.Sprintf("%06d", i), 50) }
	for name, c := range map[string]struct {
		rows int
		id   func(int) string
	}{
		"pandas_categories.parquet": {40, func(i int) string { return fmt.Sprintf("c%d", i) }},
		"duckdb_long.parquet":       {6000, id},
		"polars_long.parquet":       {6000, id},
	} {
		got := edgesOf(t, mustOpenParquet(t, filepath.Join("../testdata/columns", name)))
		if len(got) != c.rows {
			t.Fatalf("%s: %d edges", name, len(got))
		}
		for i, edge := range got {
			if want := c.id(i) + ">" + c.id(c.rows-1-i); edge != want {
				t.Fatalf("%s: edge %d is %s, want %s", name, i, edge, want)
			}
		}
	}
}

// sparkFolder writes edges in three parts, one of them empty, as Spark does.
func sparkFolder(t *testing.T, dir string) {
	t.Helper()
	how := writing{codec: compress.Codecs.Snappy}
	for name, file := range map[string]string{
		"part-00000-6e3f-c000.snappy.parquet":      parquetOf(t, []edgeRow{{10, 20}, {20, 30}}, how),
		"part-00001-6e3f-c000.snappy.parquet":      parquetOf(t, []edgeRow{}, how),
		"part-00002-6e3f-c000.snappy.parquet":      parquetOf(t, []edgeRow{{30, 10}}, how),
		"_SUCCESS":                                 "",
		"._SUCCESS.crc":                            "crc\x00",
		".part-00000-6e3f-c000.snappy.parquet.crc": "crc\x00\x00\x00\x02\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartFilesAreOneTable(t *testing.T) {
	want := []string{"10>20", "20>30", "30>10"}
	alone := filepath.Join(t.TempDir(), "edges.parquet")
	beside := folder(t, map[string]string{"labels.csv": "10,0\n20,1\n30,1\n"})
	for _, dir := range []string{alone, filepath.Join(beside, "edges.parquet")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		sparkFolder(t, dir)
	}
	for _, path := range []string{alone, beside} {
		s, err := OpenParquet(t.Context(), path, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := edgesOf(t, s); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
		if m := s.Meta(); m.Format != "parquet" || m.Edges != 3 || m.Vertices != 3 || (m.Classes == 2) != (path == beside) {
			t.Errorf("%s: %+v", path, m)
		}
		s.Close()
	}
}

func TestPartFilesThatDoNotFitAreRefused(t *testing.T) {
	edges := parquetOf(t, []edgeRow{{1, 2}}, writing{})
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"other columns": {map[string]string{"part-0.parquet": edges, "part-1.parquet": parquetOf(t, []textRow{{"a", "b"}}, writing{})}, "part-1.parquet has other columns than part-0.parquet: write all parts of a table with the same columns"},
		"damage":        {map[string]string{"part-0.parquet": edges, "part-1.parquet": edges[:len(edges)-3]}, "part-1.parquet is not a readable Parquet file"},
		"no rows":       {map[string]string{"part-0.parquet": parquetOf(t, []edgeRow{}, writing{})}, "holds no rows: write a source and a target in each row"},
	} {
		err := readThrough(t, OpenParquet, folder(t, c.files), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "edges.parquet"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := readThrough(t, OpenParquet, dir, source.Options{}); err == nil || !strings.HasSuffix(err.Error(), "edges.parquet is a folder without part files: put part-*.parquet files there, or the table itself in its place") {
		t.Error(err)
	}
}

// Some writers leave a row group without rows, which has nothing to read.
func TestARowGroupWithoutRowsIsSkipped(t *testing.T) {
	empty, err := os.ReadFile("../testdata/columns/pyarrow_empty.parquet")
	if err != nil {
		t.Fatal(err)
	}
	err = readThrough(t, OpenParquet, "../testdata/columns/pyarrow_empty.parquet", source.Options{})
	if err == nil || !strings.Contains(err.Error(), "holds no rows") {
		t.Error(err)
	}
	all, err := os.ReadFile("../testdata/columns/pyarrow-ints.parquet")
	if err != nil {
		t.Fatal(err)
	}
	parts := folder(t, map[string]string{"part-0.parquet": string(empty), "part-1.parquet": string(all), "part-2.parquet": string(empty)})
	s, err := OpenParquet(t.Context(), parts, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := len(edgesOf(t, s)); got != 40 {
		t.Errorf("%d edges are read", got)
	}
}
