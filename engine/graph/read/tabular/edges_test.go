package tabular

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

type describedRow struct {
	Src    int64   `parquet:"src"`
	Kind   int64   `parquet:"kind"`
	Weight float64 `parquet:"weight"`
	Dst    int64   `parquet:"dst"`
	Age    float32 `parquet:"age"`
}

func TestEdgeFeatures(t *testing.T) {
	table := folder(t, map[string]string{
		"all.csv":     "src,kind,weight,dst,age\n0,5,0.5,1,7\n1,6,2,0,8.5\n",
		"bare.tsv":    "age\tsrc\tdst\n7\t0\t1\n8.5\t1\t0\n",
		"all.parquet": parquetOf(t, []describedRow{{0, 5, 0.5, 1, 7}, {1, 6, 2, 0, 8.5}}, writing{}),
	})
	for name, c := range map[string]struct {
		file          string
		asked         []string
		rows, weights []float32
	}{
		"none":                {"all.csv", nil, nil, []float32{0.5, 2}},
		"all":                 {"all.csv", []string{"all"}, []float32{5, 7, 6, 8.5}, []float32{0.5, 2}},
		"in the order asked":  {"all.csv", []string{"Age", "kind"}, []float32{7, 5, 8.5, 6}, []float32{0.5, 2}},
		"one":                 {"all.csv", []string{"kind"}, []float32{5, 6}, []float32{0.5, 2}},
		"without weights":     {"bare.tsv", []string{"all"}, []float32{7, 8.5}, nil},
		"the weight is one":   {"all.csv", []string{"weight", "age"}, []float32{0.5, 7, 2, 8.5}, nil},
		"all of columns":      {"all.parquet", []string{"all"}, []float32{5, 7, 6, 8.5}, []float32{0.5, 2}},
		"one of columns":      {"all.parquet", []string{"age"}, []float32{7, 8.5}, []float32{0.5, 2}},
		"none of the columns": {"all.parquet", nil, nil, []float32{0.5, 2}},
	} {
		open := OpenCSV
		if filepath.Ext(c.file) == ".parquet" {
			open = OpenParquet
		}
		h := readtest.MustHold(t, open, filepath.Join(table, c.file), source.Options{EdgeFeatures: c.asked})
		if !slices.Equal(h.Rows, c.rows) || !slices.Equal(h.Weights, c.weights) || h.Meta.EdgeFeatures != len(c.rows)/2 {
			t.Errorf("%s: features %v, weights %v, %d columns", name, h.Rows, h.Weights, h.Meta.EdgeFeatures)
		}
	}
}

func TestEdgeFeaturesOfParts(t *testing.T) {
	here := func(text string) Part {
		path := filepath.Join(folder(t, map[string]string{"edges.csv": text}), "edges.csv")
		return Part{Label: filepath.Base(path), Node: "n", Path: path}
	}
	parts := []Part{here("src,dst,a\n0,1,2\n1,2,3\n"), here("src,dst,a\n2,0,4\n")}
	src, err := OpenParts(t.Context(), parts, "csv", source.Options{EdgeFeatures: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h, err := readtest.Hold(t.Context(), src)
	if err != nil || !slices.Equal(h.Rows, []float32{2, 3, 4}) {
		t.Errorf("features %v: %v", h, err)
	}
	parts[1] = here("src,dst,weight\n2,0,4\n")
	if _, err := OpenParts(t.Context(), parts, "csv", source.Options{EdgeFeatures: []string{"all"}}); err == nil {
		t.Error("weights in one part are features in another")
	}
}

func TestEdgeFeaturesRefused(t *testing.T) {
	for want, c := range map[string]struct {
		text  string
		asked []string
	}{
		"asks for the column age, and e.csv has src, dst": {"src,dst\n0,1\n", []string{"age"}},
		"asks for the column dst":                         {"src,dst,a\n0,1,1\n", []string{"a", "dst"}},
		"asks for the column a, and":                      {"src,dst,a\n0,1,1\n", []string{"a", "a"}},
		"asks for all: leave it out":                      {"src,dst,weight\n0,1,1\n", []string{"all"}},
		"there is no header line that names the columns":  {"0,1,1\n", []string{"all"}},
	} {
		readtest.Refused(t, OpenCSV, filepath.Join(folder(t, map[string]string{"e.csv": c.text}), "e.csv"), source.Options{EdgeFeatures: c.asked}, want)
	}
	path := filepath.Join(folder(t, map[string]string{"e.csv": "src,dst,a\n0,1,1\n1,2,x\n"}), "e.csv")
	src, err := OpenCSV(t.Context(), path, source.Options{EdgeFeatures: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := readtest.Hold(t.Context(), src); err == nil || !strings.Contains(err.Error(), "e.csv, line 3: the feature in column 3 \"x\" is not a number") {
		t.Errorf("a word: %v", err)
	}
}
