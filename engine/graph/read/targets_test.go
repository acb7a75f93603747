package read_test

import (
	"archive/zip"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
)

// planted is one graph with two columns of targets, as an archive and as tables.
func planted(t *testing.T, target func(vertex, column int) float64) (archive, labels, nodes string) {
	t.Helper()
	const n = 200
	var sources, targets []int64
	var x []float32
	var y []float64
	var edges, features, ofLabels, ofNodes strings.Builder
	features.WriteString("id,f0,f1\n")
	ofLabels.WriteString("id,ill,old\n")
	ofNodes.WriteString("old,f0,id,ill,f1\n")
	cell := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return fmt.Sprint(v)
	}
	for v := range n {
		for _, by := range []int{1, 7, 31} {
			sources, targets = append(sources, int64((v+by)%n)), append(targets, int64(v))
			fmt.Fprintf(&edges, "%d,%d\n", (v+by)%n, v)
		}
		a, b, first, second := float32(v%5)/4, float32(v%3), target(v, 0), target(v, 1)
		x, y = append(x, a, b), append(y, first, second)
		fmt.Fprintf(&features, "%d,%v,%v\n", v, a, b)
		fmt.Fprintf(&ofLabels, "%d,%s,%s\n", v, cell(first), cell(second))
		fmt.Fprintf(&ofNodes, "%s,%v,%d,%s,%v\n", cell(second), a, v, cell(first), b)
	}
	archive = readtest.Arrays{
		"edge_index": readtest.Of(fmt.Sprintf("(2, %d)", 3*n), append(sources, targets...)), "x": readtest.Of(fmt.Sprintf("(%d, 2)", n), x),
		"y": readtest.Of(fmt.Sprintf("(%d, 2)", n), y), "class_names": readtest.Of("(2,)", []byte("illold")).As("|S3"),
	}.File(t, zip.Store)
	labels = readtest.Folder{"edges.csv": edges.String(), "features.csv": features.String(), "labels.csv": ofLabels.String()}.Write(t)
	nodes = readtest.Folder{"edges.csv": edges.String(), "nodes.csv": ofNodes.String()}.Write(t)
	return archive, labels, nodes
}

// One graph has the same shards, to the last bit, whatever it is read from.
func TestTargetsOfTablesAreThoseOfAnArchive(t *testing.T) {
	for name, target := range map[string]func(vertex, column int) float64{
		"multilabel": func(v, c int) float64 {
			if v%11 == c {
				return math.NaN()
			}
			return float64(v % (2 + c) % 2)
		},
		"regression": func(v, c int) float64 {
			if v%13 == c {
				return math.NaN()
			}
			return float64(v%17)/8 - float64(c)
		},
	} {
		archive, labels, nodes := planted(t, target)
		var first []string
		for _, path := range []string{archive, labels, nodes} {
			o := read.Options{}
			if path == nodes {
				o.LabelColumns = []string{"ill", "old"}
			}
			src, err := read.Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			if m := src.Meta(); string(m.Targets) != name || !slices.Equal(m.ClassNames, []string{"ill", "old"}) {
				t.Errorf("%s: %+v", path, m)
			}
			m, err := build.Run(t.Context(), src, build.Options{Dir: filepath.Join(t.TempDir(), "shards"), Shards: 3})
			if err != nil {
				t.Fatal(err)
			}
			var sums []string
			for _, s := range m.Shards {
				sums = append(sums, s.SHA256)
			}
			if first == nil {
				first = sums
			}
			if len(sums) != 3 || !slices.Equal(sums, first) {
				t.Errorf("%s of %s: %v, and the archive has %v", name, filepath.Base(path), sums, first)
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
