package tabular

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func mustOpenParquet(t testing.TB, path string) graph.Source {
	t.Helper()
	s, err := OpenParquet(t.Context(), path, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type (
	edgeRow struct {
		Src int64 `parquet:"src"`
		Dst int64 `parquet:"dst"`
	}
	smallRow struct {
		Weight float32 `parquet:"weight"`
		Src    uint32  `parquet:"source"`
		Dst    int32   `parquet:"target"`
	}
	textRow struct {
		Src string `parquet:"src,dict"`
		Dst string `parquet:"dst"`
	}
	deltaRow struct {
		Src int64   `parquet:"src,delta"`
		Dst int32   `parquet:"dst,delta"`
		W   float64 `parquet:"weight,split"`
	}
	deltaTextRow struct {
		Src string `parquet:"src,delta"`
		Dst string `parquet:"dst,prefix"`
	}
	listRow struct {
		ID       int64     `parquet:"id"`
		Features []float32 `parquet:"features,list"`
	}
	repeatedRow struct {
		ID       int64    `parquet:"id,optional"`
		Features []uint16 `parquet:"x"`
	}
	wideRow struct {
		ID int64   `parquet:"id"`
		A  float64 `parquet:"a,dict"`
		B  *int8   `parquet:"b,optional"`
	}
	labelRow struct {
		ID    int64  `parquet:"id"`
		Label *int32 `parquet:"label,optional"`
	}
	splitRow struct {
		ID    int64   `parquet:"id"`
		First *string `parquet:"split_0,optional,dict"`
		Other string  `parquet:"split_1"`
	}
)

func codecs() map[string]compress.Compression {
	c := compress.Codecs
	return map[string]compress.Compression{"none": c.Uncompressed, "snappy": c.Snappy, "gzip": c.Gzip, "brotli": c.Brotli, "zstd": c.Zstd, "lz4": c.Lz4Raw}
}

func TestParquetIsReadAsItWasWritten(t *testing.T) {
	const n = 5000
	var edges []edgeRow
	var small []smallRow
	var text []textRow
	var delta []deltaRow
	var deltaText []deltaTextRow
	var want, wantSmall, wantText, wantDelta []string
	for i := range int64(n) {
		a, b := i*i%977, (i*31)%n
		edges = append(edges, edgeRow{a, b})
		want = append(want, fmt.Sprintf("%d>%d", a, b))
		small = append(small, smallRow{float32(i) / 8, uint32(a), int32(b)})
		wantSmall = append(wantSmall, fmt.Sprintf("%d>%d:%v", a, b, float32(i)/8))
		text = append(text, textRow{fmt.Sprintf("n%d", a), fmt.Sprintf("n%d", b)})
		deltaText = append(deltaText, deltaTextRow{fmt.Sprintf("n%d", a), fmt.Sprintf("n%d", b)})
		wantText = append(wantText, fmt.Sprintf("n%d>n%d", a, b))
		delta = append(delta, deltaRow{a - 1000, int32(b - 3), float64(i)})
		wantDelta = append(wantDelta, fmt.Sprintf("%d>%d:%v", a-1000, b-3, float32(i)))
	}
	for codec, with := range codecs() {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, pages of version %d", codec, version), func(t *testing.T) {
				o := writing{codec: with, v2: version == 2, page: 4096, group: 2000}
				for name, c := range map[string]struct {
					file string
					want []string
				}{
					"int64":      {parquetOf(t, edges, o), want},
					"32 bits":    {parquetOf(t, small, o), wantSmall},
					"text":       {parquetOf(t, text, o), wantText},
					"deltas":     {parquetOf(t, delta, o), wantDelta},
					"delta text": {parquetOf(t, deltaText, o), wantText},
				} {
					s := mustOpenParquet(t, filepath.Join(folder(t, map[string]string{"e.parquet": c.file}), "e.parquet"))
					for range 2 {
						got := edgesOf(t, s)
						for i := range max(len(got), len(c.want)) {
							if i >= len(got) || i >= len(c.want) || got[i] != c.want[i] {
								t.Fatalf("%s: %d edges of %d, the first that differs is %d: %v, want %v", name, len(got), len(c.want), i, got[i:min(i+1, len(got))], c.want[i:min(i+1, len(c.want))])
							}
						}
					}
				}
			})
		}
	}
}

func TestParquetTables(t *testing.T) {
	for codec, with := range codecs() {
		for _, version := range []int{1, 2} {
			o := writing{codec: with, v2: version == 2}
			dir := folder(t, map[string]string{
				"edges.parquet":    parquetOf(t, []edgeRow{{10, 20}, {20, 10}}, o),
				"features.parquet": parquetOf(t, []wideRow{{20, 0.5, new(int8(-3))}, {30, 0.5, new(int8(4))}}, o),
				"labels.parquet":   parquetOf(t, []labelRow{{10, new(int32(2))}, {20, nil}, {30, new(int32(-1))}}, o),
				"splits.parquet":   parquetOf(t, []splitRow{{10, new("train"), "valid"}, {20, nil, "test"}}, o),
			})
			s := mustOpenParquet(t, dir)
			got := fmt.Sprint(names(s), " ", featuresOf(t, s), " ", s.Labels(), " ", s.Splits())
			if want := "10 20 30 map[20:[0.5 -3] 30:[0.5 4]] [2 -1 -1] [[1 0 0] [2 3 0]]"; got != want {
				t.Errorf("%s, version %d: %s, want %s", codec, version, got, want)
			}
			for name, file := range map[string]string{
				"lists":    parquetOf(t, []listRow{{1, []float32{1, 2, 3}}, {0, []float32{4, 5, 6}}}, o),
				"repeated": parquetOf(t, []repeatedRow{{1, []uint16{1, 2, 3}}, {7, []uint16{4, 5, 6}}}, o),
			} {
				dir := folder(t, map[string]string{"edges.csv": "1,2\n", "features.parquet": file})
				s := mustOpen(t, dir)
				if got := fmt.Sprint(featuresOf(t, s)); !strings.Contains(got, "1:[1 2 3]") || !strings.Contains(got, ":[4 5 6]") {
					t.Errorf("%s in %s, version %d: %s", name, codec, version, got)
				}
			}
		}
	}
}

func TestLongListsCrossPages(t *testing.T) {
	var rows []listRow
	for i := range 300 {
		r := listRow{ID: int64(i)}
		for j := range 700 {
			r.Features = append(r.Features, float32(i*1000+j))
		}
		rows = append(rows, r)
	}
	for _, version := range []int{1, 2} {
		file := parquetOf(t, rows, writing{page: 1000, v2: version == 2, group: 77})
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": "0,1\n", "features.parquet": file}))
		got := featuresOf(t, s)
		for i, r := range rows {
			if fmt.Sprint(got[fmt.Sprint(i)]) != fmt.Sprint(r.Features) {
				t.Fatalf("version %d: row %d is not what was written", version, i)
			}
		}
	}
}

func TestDamagedParquetIsRefused(t *testing.T) {
	whole := parquetOf(t, []edgeRow{{1, 2}, {2, 3}, {3, 1}}, writing{codec: compress.Codecs.Snappy})
	for name, file := range map[string]string{
		"cut short":   whole[:len(whole)-20],
		"no parquet":  "src,dst\n1,2\n3,4\n",
		"empty":       "",
		"no end":      whole + "x",
		"huge footer": whole[:len(whole)-8] + "\xff\xff\xff\x0fPAR1",
		"encrypted":   whole[:len(whole)-4] + "PARE",
	} {
		path := filepath.Join(folder(t, map[string]string{"e.parquet": file}), "e.parquet")
		_, err := OpenParquet(t.Context(), path, source.Options{})
		if err == nil || !strings.Contains(err.Error(), "e.parquet is not a readable Parquet file") || !strings.HasSuffix(err.Error(), ": write it again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whichever byte is wrong, there are edges or there is an error, and nothing goes on
	// in the background.
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	path := filepath.Join(dir, "e.parquet")
	for i := range len(whole) {
		b := []byte(whole)
		b[i] ^= 0x55
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenParquet(t.Context(), path, source.Options{}); err == nil {
			if _, err := drain(t.Context(), s); err == nil && s.Meta().Edges != 3 {
				t.Errorf("with byte %d damaged there are %d edges", i, s.Meta().Edges)
			}
			s.Close()
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, and %d before", after, before)
	}
}
