package tabular

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// The names of classes may come after any number of integers, and in any order.
func TestLabelsMayBeNames(t *testing.T) {
	var late strings.Builder
	for i := range 100 {
		fmt.Fprintf(&late, "%d,%d\n", i, i%2)
	}
	late.WriteString("100,cat\n")
	var edges strings.Builder
	for i := range 101 {
		fmt.Fprintf(&edges, "%d,%d\n", i, (i+1)%101)
	}
	type row struct {
		ID    int64   `parquet:"id"`
		Label *string `parquet:"label,optional,dict"`
	}
	for name, c := range map[string]struct {
		files  map[string]string
		names  string
		labels []int32 // of the first vertices
	}{
		"csv":     {map[string]string{"edges.csv": "1,2\n2,3\n3,4\n4,5\n", "labels.csv": "id,label\n1,dog\n2,\"cat, or so\"\n3,\n4,dog\n5,nan\n"}, "[cat, or so dog]", []int32{1, 0, -1, 1, -1}},
		"late":    {map[string]string{"edges.csv": edges.String(), "labels.csv": late.String()}, "[0 1 cat]", []int32{0, 1, 0}},
		"parquet": {map[string]string{"edges.csv": "1,2\n2,3\n", "labels.parquet": parquetOf(t, []row{{1, new("b")}, {2, nil}, {3, new("a")}}, writing{})}, "[a b]", []int32{1, -1, 0}},
		"digits":  {map[string]string{"edges.csv": "1,2\n2,3\n", "labels.parquet": parquetOf(t, []row{{1, new("2")}, {2, nil}, {3, new("0")}}, writing{})}, "[]", []int32{2, -1, 0}},
	} {
		s := mustOpen(t, folder(t, c.files))
		if got := fmt.Sprint(s.Meta().ClassNames); got != c.names || !slices.Equal(s.Labels()[:len(c.labels)], c.labels) {
			t.Errorf("%s: classes %s, labels %v", name, got, s.Labels())
		}
		if n := len(s.Meta().ClassNames); n > 0 && s.Meta().Classes != n {
			t.Errorf("%s: %d classes have %d names", name, s.Meta().Classes, n)
		}
		if noted := slices.ContainsFunc(s.Notes(), func(n string) bool {
			return strings.Contains(n, "labels are text, and classes are numbered from 0 in sorted order: ")
		}); noted != (c.names != "[]") {
			t.Errorf("%s: %q", name, s.Notes())
		}
	}
}

func TestNamesThatAreNone(t *testing.T) {
	const edges = "1,2\n"
	for labels, want := range map[string]string{
		"1,a\n2,b\n1,b\n": `labels.csv, line 3: the id 1 has the label "b" here and "a" in an earlier row: leave one of them`,
		"1,a\n2," + strings.Repeat("x", 257) + "\n": "is longer than 256 bytes: write the name of a class, or its number",
		"1,a\n2,\"b\nc\"\n":                         `labels.csv, line 2: the label "b\nc" is not one line of text in UTF-8`,
		"1,a\n2,\xff\n":                             "is not one line of text in UTF-8",
		"1,\n2,\n":                                  "labels.csv gives no vertex a label",
	} {
		err := readThrough(t, OpenCSV, folder(t, map[string]string{"edges.csv": edges, "labels.csv": labels}), source.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", labels, err)
		}
	}
}

// Each vertex with a label of its own is no classification, but memory is bounded.
func TestManyNamesAreNotKept(t *testing.T) {
	var edges, labels strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&edges, "%d,%d\n", i, (i+1)%3000)
		fmt.Fprintf(&labels, "%d,class %d\n", i, i)
	}
	dir := folder(t, map[string]string{"edges.csv": edges.String(), "labels.csv": labels.String()})
	s := mustOpen(t, dir)
	if s.Meta().ClassNames != nil || s.Meta().Classes != 3000 || !slices.ContainsFunc(s.Notes(), func(n string) bool { return strings.Contains(n, "take more than 16.0 KiB and are not kept") }) {
		t.Errorf("%+v, %q", s.Meta(), s.Notes())
	}
	err := readThrough(t, OpenCSV, dir, source.Options{Memory: 150 << 10})
	if err == nil || !strings.Contains(err.Error(), "do not fit in 150.0 KiB of memory") {
		t.Error(err)
	}
}
