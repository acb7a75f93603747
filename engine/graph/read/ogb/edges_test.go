package ogb

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestEdgeFeatures(t *testing.T) {
	all := source.Options{EdgeFeatures: []string{"all"}}
	described := readtest.OGB().With("raw/edge-feat.csv.gz", "1,2\n3,4\n5,-0.5\n7,8\n")
	h := readtest.MustHold(t, Open, described.Write(t), all)
	if h.Meta.EdgeFeatures != 2 || !slices.Equal(h.Rows, []float32{1, 2, 3, 4, 5, -0.5, 7, 8}) {
		t.Errorf("%d columns, %v", h.Meta.EdgeFeatures, h.Rows)
	}
	if h := readtest.MustHold(t, Open, described.Write(t), source.Options{}); h.Meta.EdgeFeatures != 0 || h.Rows != nil {
		t.Errorf("without being asked for there are %v", h.Rows)
	}
	// A batch of edges has as many features as others have.
	const many, columns = 200, graph.MaxEdgeFeatures
	wide := readtest.OGB().With("raw/edge.csv.gz", strings.Repeat("0,1\n", many)).With("raw/num-edge-list.csv.gz", "200\n").
		With("raw/edge-feat.csv.gz", strings.Repeat(strings.Repeat("1,", columns-1)+"1\n", many))
	src, err := Open(t.Context(), wide.Write(t), all)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	readtest.SmallBatches(t, src, many, columns)
	for want, text := range map[string]string{
		"edge-feat.csv.gz has fewer rows than edge.csv.gz has edges":                              "1,2\n3,4\n5,6\n",
		"edge-feat.csv.gz has more rows than edge.csv.gz has edges":                               "1,2\n3,4\n5,6\n7,8\n9,10\n",
		"edge-feat.csv.gz, line 2: there are 1 features, and the first line has 2":                "1,2\n3\n5,6\n7,8\n",
		"edge-feat.csv.gz, line 3: the feature in column 2 \"x\" is not a number: write one with": "1,2\n3,4\n5,x\n7,8\n",
		"edge-feat.csv.gz is empty": "",
	} {
		readtest.Refused(t, Open, readtest.OGB().With("raw/edge-feat.csv.gz", text).Write(t), all, want)
	}
	readtest.Refused(t, Open, readtest.OGB().Write(t), all, "edge-feat.csv.gz is missing")
}
