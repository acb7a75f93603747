package ogb

import (
	"archive/zip"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestOGBTables(t *testing.T) {
	h := readtest.MustHold(t, Open, readtest.OGB().Write(t), source.Options{})
	if want := (graph.Meta{Format: "ogb", Vertices: 4, Edges: 4, Features: 3, Classes: 3}); !reflect.DeepEqual(h.Meta, want) {
		t.Errorf("it is %+v", h.Meta)
	}
	checkOGB(t, h)
	if len(h.Splits) != 2 || !slices.Equal(h.Splits[0], []graph.Mark{2, 1, 3, 1}) || !slices.Equal(h.Splits[1], []graph.Mark{1, 3, 3, 2}) {
		t.Errorf("splits %v", h.Splits)
	}
	if len(h.Notes) != 2 || h.Notes[0] != "Not used of raw/: node_year.csv.gz." || !strings.Contains(h.Notes[1], "{dataset.undirected}") {
		t.Errorf("notes %q", h.Notes)
	}
	bare := readtest.OGB().Without("raw/node-feat.csv.gz").Without("raw/node-label.csv.gz")
	if h := readtest.MustHold(t, Open, bare.Write(t), source.Options{}); h.Meta.Features != 0 || h.Labels != nil || h.Meta.Classes != 0 {
		t.Errorf("without features and labels it is %+v", h.Meta)
	}
}

// The split of a link dataset is in files of PyTorch: the answer says what to save instead.
func TestSplitsOfEdgesAreNotUnpickled(t *testing.T) {
	f := readtest.Folder{}
	for path, text := range readtest.OGB() {
		if !strings.HasPrefix(path, "split/") {
			f[path] = text
		}
	}
	readtest.Refused(t, Open, f.With("split/time/train.pt", "x").With("split/time/valid.pt", "x").With("split/time/test.pt", "x").Write(t), source.Options{}, "save an archive of NumPy with edge_index, x, edges_valid, edges_test")
}

func checkOGB(t *testing.T, h *readtest.Held) {
	t.Helper()
	if want := [][2]uint32{{0, 1}, {1, 2}, {2, 0}, {3, 3}}; !slices.Equal(h.Edges, want) {
		t.Errorf("edges %v", h.Edges)
	}
	if !slices.Equal(h.Labels, []int32{0, 2, -1, 1}) {
		t.Errorf("labels %v", h.Labels)
	}
	if !slices.Equal(h.Features[0], []readtest.Cell{{0, 1}, {1, 2.5}, {2, -0.03}}) || !slices.Equal(h.Features[3], []readtest.Cell{{0, -0.125}, {1, 1e10}, {2, 7}}) {
		t.Errorf("features %v", h.Features)
	}
}

func packed(t *testing.T) readtest.Folder {
	data := readtest.Arrays{
		"edge_index":     readtest.Of("(2, 4)", []int64{0, 1, 2, 3, 1, 2, 0, 3}),
		"node_feat":      readtest.Of("(4, 3)", []float32{1, 2.5, -0.03, 4, 5, 6, 0, 0, 0, -0.125, 1e10, 7}),
		"node_year":      readtest.Of("(4, 1)", []int64{1999, 2000, 2001, 2002}),
		"num_nodes_list": readtest.Of("(1,)", []int64{4}),
		"num_edges_list": readtest.Of("(1,)", []int64{4}),
	}
	labels := readtest.Arrays{"node_label": readtest.Of("(4, 1)", []float32{0, 2, float32(math.NaN()), 1})}
	return readtest.Folder{
		"raw/data.npz":            string(data.Bytes(t, zip.Deflate)),
		"raw/node-label.npz":      string(labels.Bytes(t, zip.Deflate)),
		"split/time/train.csv.gz": "0\n",
		"split/time/valid.csv.gz": "3\n",
		"split/time/test.csv.gz":  "1\n2\n",
	}
}

func TestOGBArchives(t *testing.T) {
	h := readtest.MustHold(t, Open, packed(t).Write(t), source.Options{})
	if want := (graph.Meta{Format: "ogb", Vertices: 4, Edges: 4, Features: 3, Classes: 3}); !reflect.DeepEqual(h.Meta, want) {
		t.Errorf("it is %+v", h.Meta)
	}
	checkOGB(t, h)
	if len(h.Splits) != 1 || !slices.Equal(h.Splits[0], []graph.Mark{1, 3, 3, 2}) {
		t.Errorf("splits %v", h.Splits)
	}
	if len(h.Notes) != 2 || h.Notes[0] != "data.npz: the array node_year was not used." {
		t.Errorf("notes %q", h.Notes)
	}
}

func TestOGBRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		folder readtest.Folder
		want   string
	}{
		"several graphs":     {readtest.OGB().With("raw/num-node-list.csv.gz", "2\n2\n"), "num-node-list.csv.gz, line 2: there are several graphs, and a dataset is one: import one of them"},
		"several tasks":      {readtest.OGB().With("raw/node-label.csv.gz", "0,1\n1,0\n1,1\n0,0\n"), "node-label.csv.gz, line 1: there are labels for 2 tasks, and a vertex has one: leave one column"},
		"no count":           {readtest.OGB().Without("raw/num-node-list.csv.gz"), "num-node-list.csv.gz is missing: there is no file or folder "},
		"a word as count":    {readtest.OGB().With("raw/num-edge-list.csv.gz", "many\n"), `num-edge-list.csv.gz, line 1: "many" is not a number: copy the folder again`},
		"an empty count":     {readtest.OGB().With("raw/num-edge-list.csv.gz", ""), "num-edge-list.csv.gz is empty: copy the folder again"},
		"no vertices":        {readtest.OGB().With("raw/num-node-list.csv.gz", "0"), "num-node-list.csv.gz: it says that there are 0 vertices, and raw/ has "},
		"too many vertices":  {readtest.OGB().With("raw/num-node-list.csv.gz", "2000000000"), "num-node-list.csv.gz: it says that there are 2000000000 vertices, and raw/ has "},
		"edges too few":      {readtest.OGB().With("raw/num-edge-list.csv.gz", "5"), "edge.csv.gz has 4 edges and num-edge-list.csv.gz says 5: copy the folder again"},
		"edges too many":     {readtest.OGB().With("raw/num-edge-list.csv.gz", "3"), "edge.csv.gz has more than the 3 edges that num-edge-list.csv.gz says: copy the folder again"},
		"a far vertex":       {readtest.OGB().With("raw/edge.csv.gz", "0,1\n1,4\n2,0\n3,3\n"), "edge.csv.gz, line 2: there is not a vertex 4, as there are 4, numbered from 0: copy the folder again"},
		"a negative vertex":  {readtest.OGB().With("raw/edge.csv.gz", "0,1\n-1,2\n2,0\n3,3\n"), "edge.csv.gz, line 2: there is not a vertex -1"},
		"no two vertices":    {readtest.OGB().With("raw/edge.csv.gz", "0,1\n1 2\n2,0\n3,3\n"), `edge.csv.gz, line 2: "1 2" is not two vertices with a comma between them: copy the folder again`},
		"three vertices":     {readtest.OGB().With("raw/edge.csv.gz", "0,1\n1,2,3\n2,0\n3,3\n"), `edge.csv.gz, line 2: "1,2,3" is not two vertices with a comma between them`},
		"half an edge":       {readtest.OGB().With("raw/edge.csv.gz", "0,1\n1,2\n2,0\n3,"), `edge.csv.gz, line 4: "3," is not two vertices with a comma between them`},
		"features too few":   {readtest.OGB().With("raw/node-feat.csv.gz", "1,2\n3,4\n"), "node-feat.csv.gz has 2 rows and there are 4 vertices: copy the folder again"},
		"features too many":  {readtest.OGB().With("raw/node-feat.csv.gz", "1\n2\n3\n4\n5\n"), "node-feat.csv.gz, line 5: there are 4 vertices only: copy the folder again"},
		"features uneven":    {readtest.OGB().With("raw/node-feat.csv.gz", "1\n2\n3,4\n4\n"), "node-feat.csv.gz, line 3: there are 2 features, and the first line has 1: copy the folder again"},
		"features are words": {readtest.OGB().With("raw/node-feat.csv.gz", "1\n2\nthree\n4\n"), "node-feat.csv.gz, line 3: the feature in column 1 "},
		"features are NaN":   {readtest.OGB().With("raw/node-feat.csv.gz", "1,2\n2,nan\n3,4\n4,5\n"), "node-feat.csv.gz, line 2: the feature in column 2 is nan: write a finite number"},
		"no features":        {readtest.OGB().With("raw/node-feat.csv.gz", ""), "node-feat.csv.gz is empty: copy the folder again"},
		"labels too few":     {readtest.OGB().With("raw/node-label.csv.gz", "1\n1\n"), "node-label.csv.gz has 2 rows and there are 4 vertices: copy the folder again"},
		"labels too many":    {readtest.OGB().With("raw/node-label.csv.gz", "1\n1\n1\n1\n1\n"), "node-label.csv.gz, line 5: there are 4 vertices only: copy the folder again"},
		"labels are words":   {readtest.OGB().With("raw/node-label.csv.gz", "1\n1\nx\n1\n"), "node-label.csv.gz, line 3: the label "},
		"a far split":        {readtest.OGB().With("split/time/test.csv.gz", "1\n4\n"), `split/time/test.csv.gz, line 2: there is not a vertex "4", as there are 4, numbered from 0: leave it out`},
		"splits overlap":     {readtest.OGB().With("split/time/test.csv.gz", "1\n3\n"), "split/time/test.csv.gz, line 2: vertex 3 is in val and in test: take it out of one"},
		"half a split":       {readtest.OGB().Without("split/time/test.csv.gz"), "split/time/test.csv.gz is missing: there is no file or folder "},
		"no edges":           {readtest.OGB().Without("raw/edge.csv.gz"), " holds neither raw/edge.csv.gz nor raw/data.npz, as the Open Graph Benchmark's folders do: give the folder that raw/ and split/ are in"},
		"no labels":          {packed(t).Without("raw/node-label.npz"), "raw/node-label.npz is missing: copy the folder again"},
		"other labels":       {packed(t).With("raw/node-label.npz", string(readtest.Lists().Bytes(t, zip.Store))), "node-label.npz holds no node_label, but edge_index, test_mask,"},
		"other data":         {packed(t).With("raw/data.npz", string(readtest.Lists().Bytes(t, zip.Store))), "data.npz holds no num_nodes_list, but edge_index, test_mask,"},
	} {
		t.Run(name, func(t *testing.T) {
			readtest.Refused(t, Open, c.folder.Write(t), source.Options{Format: "ogb"}, c.want)
		})
	}
	readtest.Refused(t, Open, readtest.OGB().Write(t), source.Options{Memory: 10}, ": more memory is needed than is allowed: raise {dataset.memory}")
	readtest.Refused(t, Open, packed(t).Write(t), source.Options{Memory: 10}, ": more memory is needed than is allowed: raise {dataset.memory}")
}

// Short numbers are read as longer ones are: as float64, and then rounded.
func TestQuickFloat(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "-1.5", ".5", "5.", "1e3", "1E-3", "1e+22", "0.1", "-0.3333333333333333", "123456789012345678", "0.000000000000000000000000001", "3.4e38", "1e-45", "9007199254740993", "00.10", "1.17549435e-38"} {
		want, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := quickFloat([]byte(s)); err != nil || math.Abs(float64(got)-float64(float32(want))) > math.Abs(want)*0x1p-24 {
			t.Errorf("%s is %v: %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-", ".", "e5", "1e", "1e-", "1.2.3", "--1", "1e400", "nan", "inf", "0x", "1 2", "1,", "1e5x"} {
		if got, err := quickFloat([]byte(s)); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}
