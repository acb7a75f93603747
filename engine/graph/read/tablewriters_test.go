package read

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesOfOtherWriters reads what pyarrow, polars and DuckDB wrote.
// testdata/columns/make.py says how.
func TestFilesOfOtherWriters(t *testing.T) {
	var ints, text []string
	for i := range 40 {
		ints = append(ints, fmt.Sprintf("%d>%d:%v", i%7, (i*i+1)%11-3, float32(i)/4))
		text = append(text, fmt.Sprintf("v%d>v%d:%v", i%7, (i*i+1)%11, float32(i)/4))
	}
	files, err := filepath.Glob("testdata/columns/*-*")
	if err != nil || len(files) != 17 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if strings.Contains(name, "brotli") {
			err := readThrough(t, openParquet, path, Options{})
			if err == nil || err.Error() != "pyarrow-brotli.parquet, column src: the packing (codec 4) is written in a way that is not known here: write the file with snappy, gzip, zstd or lz4_raw" {
				t.Error(err)
			}
			continue
		}
		want := ints
		if strings.Contains(name, "text") {
			want = text
		}
		if got := edgesOf(t, mustOpenParquet(t, path)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
