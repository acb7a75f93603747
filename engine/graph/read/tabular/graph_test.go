package tabular

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestTablesMakeOneGraph(t *testing.T) {
	dir := folder(t, map[string]string{
		"edges.csv":       "src,dst,weight\n10,20,1\n20,30,2\n",
		"Features.tsv.gz": "id\tf0\tf1\n30\t1\t2\n10\t-3\t4e1\n40\t0\t0.5\n",
		"labels.txt":      "id label\n10 1\n40 -1\n30 3.0\n",
		"splits.csv":      "split_1,id,note,split_0\ntrain,10,x,TEST\n,20,x,validation\nval,30,x,valid\ntest,40,x,\n",
		"README.md":       "not a table",
	})
	s := mustOpen(t, dir)
	want := graph.Meta{Format: "csv", Vertices: 4, Edges: 2, Weighted: true, Features: 2, Classes: 4}
	if !reflect.DeepEqual(s.Meta(), want) {
		t.Errorf("%+v, want %+v", s.Meta(), want)
	}
	if got := names(s); got != "10 20 30 40" {
		t.Error(got)
	}
	if got := fmt.Sprint(featuresOf(t, s)); got != "map[10:[-3 40] 30:[1 2] 40:[0 0.5]]" {
		t.Error(got)
	}
	if got := fmt.Sprint(s.Labels()); got != "[1 -1 3 -1]" {
		t.Error(got)
	}
	// Splits stand in the order of their columns.
	if got := fmt.Sprint(s.Splits()); got != "[[1 0 2 3] [3 2 2 0]]" {
		t.Error(got)
	}
	for _, note := range []string{
		"edges.csv: commas between columns, a header line.",
		"Features.tsv.gz: tabs between columns, a header line.",
		"labels.txt: blanks between columns, a header line.",
		"splits.csv: left out: note.",
		"1 of 4 vertices have no row in Features.tsv.gz: their features are zeros.",
		"2 of 4 vertices have no label.",
	} {
		if !slices.Contains(s.Notes(), note) {
			t.Errorf("%q is not among %q", note, s.Notes())
		}
	}
	first, err := drain(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := drain(t.Context(), s)
	if err != nil || first != again {
		t.Errorf("the second time it is %q and not %q: %v", again, first, err)
	}
}

func TestOneTableBesideEdgesNamesVertices(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"features":             {map[string]string{"features.csv": "1,5\n9,1\n"}, "1 2 9"},
		"labels":               {map[string]string{"labels.csv": "1,0\n9,0\n"}, "1 2 9"},
		"splits":               {map[string]string{"splits.csv": "1,train\n9,train\n"}, "1 2 9"},
		"features, not labels": {map[string]string{"features.csv": "2,4\n9,1\n", "labels.csv": "1,0\n9,2\n", "splits.csv": "2,test\n"}, "1 2 9"},
	} {
		files := maps.Clone(c.files)
		files["edges.csv"] = "1,2\n"
		if got := names(mustOpen(t, folder(t, files))); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestVerticesWithoutEdgesAreTold(t *testing.T) {
	s := mustOpen(t, folder(t, map[string]string{"edges.csv": "1,2\n", "labels.csv": "1,0\n77,1\n"}))
	if !slices.Contains(s.Notes(), "Vertices in labels.csv without an edge: 1.") {
		t.Errorf("the notes are %q", s.Notes())
	}
	_, err := OpenCSV(t.Context(), folder(t, map[string]string{"edges.csv": "1,2\n", "features.csv": "1.0,5\n2.0,6\n"}), source.Options{})
	if err == nil || err.Error() != "features.csv has no id that occurs in edges.csv: write ids in the same way in both" {
		t.Errorf("ids in two ways: %v", err)
	}
	s = mustOpen(t, folder(t, map[string]string{"edges.csv": "follower,followee\nann,bob\n"}))
	if !slices.ContainsFunc(s.Notes(), func(n string) bool {
		return strings.Contains(n, "the first row, \"follower,followee\", is taken as an edge")
	}) {
		t.Errorf("the notes are %q", s.Notes())
	}
	if _, err = OpenCSV(t.Context(), folder(t, map[string]string{"edges.csv": "1,2\r3,4\r"}), source.Options{}); err == nil || !strings.Contains(err.Error(), "carriage return") {
		t.Errorf("lines that end in carriage returns: %v", err)
	}
}

func TestHeadersAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"features without":           {"features.csv", "1,0.5\n", "map[1:[0.5]] [] []"},
		"features with":              {"features.csv", "id,a\n1,0.5\n", "map[1:[0.5]] [] []"},
		"features, id last":          {"features.csv", "a,b,ID\n0.5,2,1\n", "map[1:[0.5 2]] [] []"},
		"features, names of numbers": {"features.csv", "id,0,1\n1,0.5,2\n", "map[1:[0.5 2]] [] []"},
		"features as pandas writes":  {"features.csv", ",0,1\n1,0.5,2\n", "map[1:[0.5 2]] [] []"},
		"features, other names":      {"features.csv", "node,x,y\n1,0.5,2\n", "map[1:[0.5 2]] [] []"},
		"labels without":             {"labels.csv", "1,3\n2,\n", "map[] [3 -1] []"},
		"labels with":                {"labels.csv", "label,id\n3,1\n", "map[] [3 -1] []"},
		"labels, one name":           {"labels.csv", "label,node\n3,1\n", "map[] [3 -1] []"},
		"labels, other names":        {"labels.csv", "node,class\n1,3\n", "map[] [3 -1] []"},
		"labels, more columns":       {"labels.csv", "x,label,id\n7,3,1\n", "map[] [3 -1] []"},
		"labels twice the same":      {"labels.csv", "1,3\n1,3\n1,nan\n", "map[] [3 -1] []"},
		"splits without":             {"splits.csv", "1,train\n2,test\n", "map[] [] [[1 3]]"},
		"splits with":                {"splits.csv", "split,id\ntrain,1\n", "map[] [] [[1 0]]"},
		"two splits without":         {"splits.csv", "1,train,val\n2,,test\n", "map[] [] [[1 0] [2 3]]"},
		"splits twice the same":      {"splits.csv", "1,train\n1,train\n", "map[] [] [[1 0]]"},
	} {
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": "1,2\n", c.file: c.text}))
		if got := fmt.Sprint(featuresOf(t, s), s.Labels(), s.Splits()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	text := strings.Repeat("1,2\n2,3\n", 1<<19)
	dir := folder(t, map[string]string{"edges.csv": text})
	var last graph.Progress
	s, err := OpenCSV(t.Context(), dir, source.Options{Report: func(p graph.Progress) {
		if p.Done < last.Done || p.Done > p.Total {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if want := (graph.Progress{Stage: "reading edges.csv", Done: uint64(len(text)), Total: uint64(len(text)), Unit: "bytes"}); last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
}

// TestLinesMayEndAnywhere puts line ends, quotes and long lines where chunks of the
// file meet.
func TestLinesMayEndAnywhere(t *testing.T) {
	const chunk = 1 << 20 // what is read at a time
	for shift := range 12 {
		var text strings.Builder
		var want []string
		for left := chunk - 30 - shift - text.Len(); left > 0; left = chunk - 30 - shift - text.Len() {
			text.WriteString("#" + strings.Repeat("-", min(max(left, 2), 1000)-2) + "\n")
		}
		text.WriteString("9,8\n")
		for i := range 10 {
			fmt.Fprintf(&text, "%d,\"a\nb\"\r\n", i)
			want = append(want, fmt.Sprintf("%d>a\nb", i))
		}
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": text.String()}))
		if got := edgesOf(t, s); !slices.Equal(got, append([]string{"9>8"}, want...)) {
			t.Fatalf("shift %d: %q", shift, got)
		}
	}
}

// TestRecordsMayCrossManyChunks has records of two and three lines, so that most
// chunks end within one.
func TestRecordsMayCrossManyChunks(t *testing.T) {
	const n = 1_000_000
	s := mustOpen(t, folder(t, map[string]string{"edges.csv": strings.Repeat("\"a\n\",\"b\nc\"\n", n)}))
	if s.Meta().Edges != n || names(s) != "a\n b\nc" {
		t.Error(s.Meta())
	}
}

func TestFeaturesMayBeLong(t *testing.T) {
	const width = 300_000
	row := strings.Repeat(",0.25", width)
	s := mustOpen(t, folder(t, map[string]string{"edges.csv": "0,1\n", "features.csv": "0" + row + "\n1" + row + "\n"}))
	if s.Meta().Features != width || len(featuresOf(t, s)["1"]) != width {
		t.Error(s.Meta())
	}
}
