package tabular

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

const nodesHeader = "age,id,name,label,train_mask,val_mask,test_mask,height\n"

// TestNodesSayWhatTheyAre reads one graph from nodes in each kind of file.
func TestNodesSayWhatTheyAre(t *testing.T) {
	type row struct {
		Age   int32   `parquet:"age"`
		ID    string  `parquet:"id"`
		Name  string  `parquet:"name"`
		Label string  `parquet:"label"`
		Train bool    `parquet:"train_mask"`
		Val   bool    `parquet:"val_mask"`
		Test  *bool   `parquet:"test_mask,optional"`
		Tall  float64 `parquet:"height"`
	}
	rows := []row{{30, "ann", "Ann", "b", true, false, new(false), 1.5}, {40, "bob", "Bob", "a", false, true, nil, 2}, {50, "cy", "Cy", "b", false, false, new(true), 1}}
	field := func(name string, of arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: of, Nullable: true}
	}
	text, truth := arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean
	fields := []arrow.Field{field("age", arrow.PrimitiveTypes.Int32), field("id", text), field("name", text), field("class", text), field("train_mask", truth), field("val_mask", truth), field("test_mask", truth), field("height", arrow.PrimitiveTypes.Float64)}
	const objects = `[{"age":30,"id":"ann","name":"Ann","class":"b","train_mask":true,"val_mask":false,"height":1.5},
		{"age":40,"id":"bob","name":"Bob","class":"a","val_mask":true,"height":2},{"age":50,"id":"cy","name":"Cy","class":"b","test_mask":true,"height":1}]`
	const edges = "from_id,to_id\nann,bob\nbob,cy\n"
	lines := nodesHeader + "30,ann,Ann,b,True,False,,1.5\n40,bob,Bob,a,0,1,0,2\n50,cy,Cy,b,false,false,true,1\n"
	for name, files := range map[string]map[string]string{
		"csv":     {"edges.csv": edges, "nodes.csv": lines},
		"tsv.gz":  {"links.csv": edges, "Vertices.tsv.gz": strings.ReplaceAll(lines, ",", "\t")},
		"parquet": {"edges.csv": edges, "nodes.parquet": parquetOf(t, rows, writing{})},
		"v2":      {"edges.csv": edges, "nodes.parquet": parquetOf(t, rows, writing{v2: true})},
		"feather": {"edgelist.csv": edges, "node.feather": arrowOf(t, fields, []string{objects})},
		"split":   {"edges.csv": edges, "nodes.csv": "age,id,name,class,split,height\n30,ann,Ann,b,train,1.5\n40,bob,Bob,a,valid,2\n50,cy,Cy,b,test,1\n"},
	} {
		files["extra.csv"], files["README.md"], files["_SUCCESS"] = "1,2\n", "about", ""
		s := mustOpen(t, folder(t, files))
		got := fmt.Sprint(names(s), s.Meta().ClassNames, s.Labels(), s.Splits(), featuresOf(t, s))
		if got != "ann bob cy[a b] [1 0 1] [[1 2 3]] map[ann:[30 1.5] bob:[40 2] cy:[50 1]]" {
			t.Errorf("%s: %s", name, got)
		}
		for _, want := range []string{"not taken as features: name.", "Not read, since the names are none of edges, nodes, features, labels, splits, edges_valid, edges_test, negatives_valid and negatives_test: README.md, extra.csv.", ": labels are in the column "} {
			if n := slices.IndexFunc(s.Notes(), func(n string) bool { return strings.Contains(n, want) }); n < 0 {
				t.Errorf("%s: %q has no %q", name, s.Notes(), want)
			}
		}
	}
}

// Nodes may be but named, and other tables may say the rest.
func TestNodesWithLessOrMore(t *testing.T) {
	base := map[string]string{"edges.csv": "1,2\n2,3\n"}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return all
	}
	s := mustOpen(t, folder(t, with(map[string]string{"nodes.csv": "id\n1\n2\n3\n4\n"})))
	if got := fmt.Sprint(names(s), s.Meta().Features, s.Labels(), s.Splits()); got != "1 2 3 40 [] []" {
		t.Error(got)
	}
	if _, err := drain(t.Context(), s); err != nil {
		t.Error(err)
	}
	s = mustOpen(t, folder(t, with(map[string]string{"nodes.csv": "id,a\n1,5\n4,6\n", "labels.csv": "1,x\n2,y\n"})))
	if got := fmt.Sprint(names(s), s.Meta().Features, s.Labels()); got != "1 2 3 41 [0 1 -1 -1]" {
		t.Error(got)
	}
	numbers := make([]string, maxSplits+1)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no header":        {map[string]string{"nodes.csv": "1,5\n2,6\n"}, "nodes.csv, line 1: there is no header line that says what the columns are: put a line such as id,label"},
		"two tables":       {map[string]string{"nodes.csv": "id,label\n1,5\n", "labels.csv": "1,2\n"}, "nodes.csv has labels and there is labels.csv: leave one of them"},
		"two of a kind":    {map[string]string{"nodes.csv": "id,a\n1,5\n", "features.csv": "1,2\n"}, "holds both features.csv and nodes.csv: leave one of them"},
		"two parts":        {map[string]string{"nodes.csv": "id,train_mask,val_mask\n1,1,0\n2,1,1\n"}, "nodes.csv, line 3: the node is in train_mask and in val_mask: take it out of one"},
		"no truth":         {map[string]string{"nodes.csv": "id,train_mask\n1,maybe\n"}, `nodes.csv, line 2: train_mask: "maybe" is neither true nor false`},
		"many splits":      {map[string]string{"nodes.csv": "id,split_" + strings.Join(numbers, ",split_") + "\n1" + strings.Repeat(",train", len(numbers)) + "\n"}, "nodes.csv has 257 splits and at most 256 can be taken: leave some out"},
		"masks and splits": {map[string]string{"nodes.csv": "id,split,val_mask\n1,train,1\n"}, "nodes.csv has both split and val_mask: leave one of them"},
		"no id":            {map[string]string{"nodes.csv": "label,a\n1,1\n"}, "nodes.csv has no column called id among label, a"},
		"a word late":      {map[string]string{"nodes.csv": "id,a\n" + strings.Repeat("1,1\n", 60) + "2,x\n"}, `nodes.csv, line 62: the feature in column 2 "x" is not a number`},
	} {
		err := readThrough(t, OpenCSV, folder(t, with(c.files)), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestNodesOfOtherWriters reads nodes as pandas, polars, DuckDB and pyarrow write them by
// default.
func TestNodesOfOtherWriters(t *testing.T) {
	files, err := filepath.Glob("../testdata/columns/nodes_*")
	if err != nil || len(files) != 11 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var edges strings.Builder
	for i := range 12 {
		fmt.Fprintf(&edges, "v%d,v%d\n", i, (i+1)%12)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, folder(t, map[string]string{"edges.csv": edges.String(), "nodes" + filepath.Ext(path): string(b)}))
		if got := fmt.Sprint(s.Meta().ClassNames, s.Labels()[:4], s.Splits()[0][:4], featuresOf(t, s)["v11"]); got != "[a b c] [0 1 2 0] [1 2 3 1] [2.75 11]" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// What a model is given of a vertex must not hold its label, its part or the number of its row.
func TestNothingButFeaturesIsTakenAsOne(t *testing.T) {
	edges := "0,1\n1,2\n"
	for name, files := range map[string]map[string]string{
		"pandas' row numbers":   {"nodes.csv": ",id,label,x\n7,0,a,5\n8,1,b,6\n9,2,a,7\n"},
		"the id is another one": {"nodes.csv": "x,node,id,label\n5,Ann,0,a\n6,Bob,1,b\n7,Cy,2,a\n"},
		"of features":           {"features.csv": ",id,x\n7,0,5\n8,1,6\n9,2,7\n"},
	} {
		files["edges.csv"] = edges
		s := mustOpen(t, folder(t, files))
		if got := fmt.Sprint(featuresOf(t, s)); got != "map[0:[5] 1:[6] 2:[7]]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for header, want := range map[string]string{
		"id,label,y":               "nodes.csv has both label and y: leave one of them, or give it another name",
		"id,Y,CLASS":               "nodes.csv has both Y and CLASS: leave one of them, or give it another name",
		"id,label,label":           "nodes.csv has both label and label: leave one of them, or give it another name",
		"id,train_mask,Train_Mask": "nodes.csv has both train_mask and Train_Mask: leave one of them, or give it another name",
		"id,x,ID":                  "nodes.csv has both id and ID: leave one of them, or give it another name",
		"split,x,label":            "nodes.csv has no column called id among split, x, label: call the column with the names of nodes so",
		"val_mask,x,label":         "nodes.csv has no column called id among val_mask, x, label: call the column with the names of nodes so",
	} {
		_, err := OpenCSV(t.Context(), folder(t, map[string]string{"edges.csv": edges, "nodes.csv": header + "\n0,1,1\n1,0,0\n"}), source.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", header, err)
		}
	}
}
