package typed_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// shelves is a graph as a folder of files, and tabled the same as two tables, whose rows mix types and
// relations. One type's name begins as another's, and ids of papers are integers, which are in
// ascending order, though those of authors are words.
var (
	shelves = map[string]string{
		"nodes/paper.csv":                        "id,label,split,year,pages\n30,1,train,2001,5\n4,0,val,2002,0\n12,1,test,2003,7\n",
		"nodes/author.csv":                       "id,pages,age\nzoe,3,50\nbob,0,60\n",
		"nodes/paper+mill.csv":                   "id\n200\n100\n",
		"edges/author-writes-paper.csv":          "src,dst\nzoe,30\nbob,30\nbob,12\nzoe,30\n",
		"edges/author-writes-paper+mill.csv":     "src,dst\nbob,100\n",
		"edges/author-edits-paper.csv":           "src,dst\nzoe,30\nzoe,30\n",
		"edges/paper-cites-paper.csv":            "src,dst\n30,4\n12,4\n12,12\n4,30\n",
		"edges/paper-at-paper+mill.csv":          "src,dst\n12,200\n",
		"edges/paper-at-paper.csv":               "src,dst\n30,4\n",
		"edges/paper+mill-rivals-paper+mill.csv": "src,dst\n100,200\n",
	}
	tabled = map[string]string{
		"nodes.csv": "kind,id,label,title,split,year,pages,age\n" +
			"paper,30,1,,train,2001,5,\nauthor,zoe,,Dr,,,3,50\npaper+mill,200,,,,,,\npaper,4,0,On x,val,2002,0,\nauthor,bob,,,,,0,60\npaper+mill,100,,,,,,\npaper,12,1,7,test,2003,7,\n",
		"edges.csv": "src,verb,dst\nbob,writes,12\nzoe,edits,30\n30,cites,4\nzoe,writes,30\n12,at,200\nbob,writes,100\n30,at,4\n" +
			"bob,writes,30\n12,cites,4\nzoe,edits,30\n100,rivals,200\nzoe,writes,30\n12,cites,12\n4,cites,30\n",
	}
	verbs = source.Options{TypeColumn: "kind", RelationColumn: "verb"}
)

func openWith(t *testing.T, files map[string]string, o source.Options) graph.Source {
	t.Helper()
	src, err := read.Open(t.Context(), folder(t, files), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

// shards returns the bytes of all shards of a source.
func shards(t *testing.T, src graph.Source, mirrored bool, dtype graph.DType) string {
	t.Helper()
	if mirrored {
		if err := src.(interface{ Mirror() error }).Mirror(); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "shards")
	manifest, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: 3, DType: dtype})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%d edges, %+v\n", manifest.Edges, manifest.Types)
	for i := range manifest.Shards {
		b, err := os.ReadFile(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// The same graph gives the same shards, byte for byte, as a folder of files and as two tables of any
// format.
func TestTablesAreAsAFolder(t *testing.T) {
	for _, mirrored := range []bool{false, true} {
		want := shards(t, open(t, shelves), mirrored, graph.F32)
		for name, files := range map[string]map[string]string{"csv": tabled, "parquet": written(t, tabled, ".parquet"), "arrow": written(t, tabled, ".arrow")} {
			src := openWith(t, files, verbs)
			if got := shards(t, src, mirrored, graph.F32); got != want {
				t.Errorf("%s, edges back %v: the shards are others; types %+v", name, mirrored, src.Meta().Types)
			}
			if err := graph.CheckSource(src); err != nil {
				t.Error(err)
			}
		}
	}
}

// Columns are found by their names, if they hold words.
func TestTablesByNames(t *testing.T) {
	want := shards(t, open(t, shelves), false, graph.F32)
	for _, names := range [][2]string{{"type", "type"}, {"node_type", "edge_type"}, {"ntype", "etype"}, {":LABEL", ":TYPE"}, {"Vertex_Type", "Relation"}} {
		files := map[string]string{
			"nodes.csv": strings.Replace(tabled["nodes.csv"], "kind", names[0], 1),
			"edges.csv": strings.Replace(tabled["edges.csv"], "verb", names[1], 1),
		}
		src := openWith(t, files, source.Options{})
		if got := shards(t, src, false, graph.F32); got != want {
			t.Errorf("%v: the shards are others; types %+v", names, src.Meta().Types)
		}
		for _, note := range []string{"nodes.csv: types are in the column " + names[0] + ".", "edges.csv: relations are in the column " + names[1] + ".", "nodes.csv: not taken as features: title."} {
			if !slices.Contains(src.Notes(), note) {
				t.Errorf("%q has no %q", src.Notes(), note)
			}
		}
	}
	neo := map[string]string{
		"nodes.csv": strings.Replace(tabled["nodes.csv"], "kind,id", ":LABEL,:ID", 1),
		"edges.csv": strings.Replace(tabled["edges.csv"], "src,verb,dst", ":START_ID,:TYPE,:END_ID", 1),
	}
	if got := shards(t, openWith(t, neo, source.Options{}), false, graph.F32); got != want {
		t.Error("with the names of Neo4j the shards are others")
	}
}

// Types without relations, relations without types, and relations without a table of nodes.
func TestTablesWithOneColumn(t *testing.T) {
	nodes := "id,type,x\n0,a,1\n1,b,\n2,a,3\n"
	for name, c := range map[string]struct {
		files, same map[string]string
	}{
		"types": {
			map[string]string{"nodes.csv": nodes, "edges.csv": "0,1\n1,2\n0,2\n1,0\n"},
			map[string]string{
				"nodes/a.csv": "id,x\n0,1\n2,3\n", "nodes/b.csv": "id\n1\n", "edges/a-a-b-b.csv": "src,dst\n0,1\n",
				"edges/b-b-a-a.csv": "src,dst\n1,2\n1,0\n", "edges/a-a-a-a.csv": "src,dst\n0,2\n",
			},
		},
		"relations": {
			map[string]string{"nodes.csv": "id,x,label\n0,1,0\n1,0,1\n2,3,1\n", "edges.csv": "src,dst,rel\n2,1,q\n0,1,p\n0,2,q\n"},
			map[string]string{"nodes/vertex.csv": "id,x,label\n0,1,0\n1,0,1\n2,3,1\n", "edges/vertex-p-vertex.csv": "src,dst\n0,1\n", "edges/vertex-q-vertex.csv": "src,dst\n2,1\n0,2\n"},
		},
		"edges alone": {
			map[string]string{"edges.tsv": "src\trelation\tdst\tweight\n5\tq\t1\t2\n0\tp\t1\t3\n0\tq\t5\t4\n"},
			map[string]string{"nodes/vertex.csv": "id\n0\n1\n5\n", "edges/vertex-p-vertex.csv": "src,dst\n0,1\n", "edges/vertex-q-vertex.csv": "src,dst\n5,1\n0,5\n"},
		},
		"edges and labels": {
			map[string]string{"edges.csv": "src,relation,dst\n5,q,1\n0,p,1\n0,q,5\n", "labels.csv": "id,label\n0,1\n5,0\n", "splits.csv": "id,split\n0,train\n5,test\n"},
			map[string]string{"nodes/vertex.csv": "id,label,split\n0,1,train\n1,,\n5,0,test\n", "edges/vertex-p-vertex.csv": "src,dst\n0,1\n", "edges/vertex-q-vertex.csv": "src,dst\n5,1\n0,5\n"},
		},
	} {
		want := open(t, c.same)
		o := source.Options{}
		if name == "edges alone" { // it has weights, which are left out only if somebody asks for relations
			_, err := read.Open(t.Context(), folder(t, c.files), o)
			if err == nil || !strings.HasPrefix(err.Error(), "edges.tsv has a column of weights, and a column of types or relations was found") {
				t.Error(err)
			}
			o.RelationColumn = "relation"
		}
		src := openWith(t, c.files, o)
		if got := shards(t, src, true, graph.BF16); got != shards(t, want, true, graph.BF16) {
			t.Errorf("%s: the shards are others: %+v and not %+v", name, src.Meta(), want.Meta())
		}
	}
}

// What docs/data.md shows, and types in a column that is else taken for labels.
func TestTablesOfTheDocuments(t *testing.T) {
	files := map[string]string{
		"nodes.csv": "id,type,label,year,age\n17,paper,1,2001,\n18,paper,0,2002,\nann,author,,,50\n",
		"edges.csv": "src,relation,dst\nann,writes,17\n17,cites,18\n",
	}
	want := shards(t, open(t, map[string]string{
		"nodes/author.csv": "id,age\nann,50\n", "nodes/paper.csv": "id,label,year\n17,1,2001\n18,0,2002\n",
		"edges/author-writes-paper.csv": "src,dst\nann,17\n", "edges/paper-cites-paper.csv": "src,dst\n17,18\n",
	}), true, graph.F32)
	if got := shards(t, openWith(t, files, source.Options{}), true, graph.F32); got != want {
		t.Error("the shards are others")
	}
	files["nodes.csv"] = strings.Replace(files["nodes.csv"], "type,label", "label,y", 1)
	if got := shards(t, openWith(t, files, source.Options{TypeColumn: "label"}), true, graph.F32); got != want {
		t.Error("with types in the column label, the shards are others")
	}
	labels := map[string]string{"labels.csv": "id,label\n17,1\n18,0\n", "nodes.csv": "id,type,year,age\n17,paper,2001,\n18,paper,2002,\nann,author,,50\n", "edges.csv": files["edges.csv"]}
	if got := shards(t, openWith(t, labels, source.Options{}), true, graph.F32); got != want {
		t.Error("with labels in a table of their own, the shards are others")
	}
}

// Several columns of labels are those of one type, too.
func TestTablesWithTargets(t *testing.T) {
	want := open(t, map[string]string{
		"nodes/a.csv": "id\n0\n", "nodes/b.csv": "id,label_0,label_1\n1,0.5,\n2,,3\n", "edges/a-r-b.csv": "src,dst\n0,1\n", "edges/b-r-b.csv": "src,dst\n1,2\n",
	})
	files := map[string]string{"nodes.csv": "id,type,label_0,label_1\n2,b,,3\n0,a,,\n1,b,0.5,\n", "edges.csv": "src,dst,relation\n0,1,r\n1,2,r\n"}
	if shards(t, openWith(t, files, source.Options{}), false, graph.F32) != shards(t, want, false, graph.F32) {
		t.Error("the shards are others")
	}
	files["nodes.csv"] = strings.Replace(files["nodes.csv"], "0,a,,", "0,a,,1", 1)
	if _, err := read.Open(t.Context(), folder(t, files), source.Options{}); err == nil || !strings.Contains(err.Error(), "the types a and b both have labels") {
		t.Error(err)
	}
}

// Edges back are refused, and none are added, where the names of their relations would be too long.
func TestTablesWithNamesTooLongForEdgesBack(t *testing.T) {
	nodes := "id,type\n0,a\n1,b\n2,a\n"
	for length, refused := range map[int]bool{graph.MaxTypeName - 4: false, graph.MaxTypeName - 3: true} {
		name := strings.Repeat("r", length)
		src := openWith(t, map[string]string{"nodes.csv": nodes, "edges.csv": "src,dst,relation\n0,1," + name + "\n"}, source.Options{})
		want := `the relation "` + strings.Repeat("r", 40) + `" from "a" to "b" has a name of 253 bytes, and with {dataset.undirected}, which puts rev- before it, it may have 252: shorten it`
		if err := src.(interface{ Mirror() error }).Mirror(); (err != nil) != refused || refused && err.Error() != want {
			t.Errorf("%d bytes: %v", length, err)
		}
		if n := src.Meta().Edges; (n == 1) != refused {
			t.Errorf("%d bytes: there are %d edges", length, n)
		}
		if err := graph.CheckSource(src); err != nil {
			t.Error(err)
		}
		within := openWith(t, map[string]string{"nodes.csv": nodes, "edges.csv": "src,dst,relation\n0,2," + name + "\n"}, source.Options{})
		if err := within.(interface{ Mirror() error }).Mirror(); err != nil { // whose edges back are of the same relation
			t.Error(err)
		}
	}
}

// Neo4j puts a semicolon between the labels of a vertex, which are one type.
func TestTablesWithSeveralLabels(t *testing.T) {
	src := openWith(t, map[string]string{"nodes.csv": ":ID,:LABEL\n0,a\n1,a;b\n", "edges.csv": ":START_ID,:END_ID,:TYPE\n0,1,r\n"}, source.Options{})
	note := "nodes.csv: several labels with a ; between them are one type, such as a;b."
	if types := src.Meta().Types.Vertices; len(types) != 2 || types[1].Name != "a;b" || !slices.Contains(src.Notes(), note) {
		t.Errorf("%+v, %q", types, src.Notes())
	}
}

// What changes between two passes is seen.
func TestTablesThatChange(t *testing.T) {
	files := map[string]string{"nodes.csv": "id,type,x\n0,a,1\n1,b,\n", "edges.csv": "src,dst,relation\n0,1,r\n"}
	for name, text := range map[string]string{"nodes.csv": "id,type,x\n0,a,\n1,b,2\n", "edges.csv": "src,dst,relation\n0,1,q\n"} {
		dir := folder(t, files)
		src, err := read.Open(t.Context(), dir, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = drained(t.Context(), src)
		if err == nil || !strings.Contains(err.Error(), "changed while") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Features may be lists of a width for each type.
func TestTablesWithLists(t *testing.T) {
	fields := []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "type", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
		{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true},
	}
	nodes := func(rows string) string { return arrowFile(t, fields, rows) }
	const edges = "src,dst,rel\n0,1,r\n2,0,s\n"
	src := openWith(t, map[string]string{"edges.csv": edges, "nodes.arrow": nodes(`[{"id":0,"type":"none"},{"id":1,"type":"two","x":[1,2]},{"id":2,"type":"one","x":[3]},{"id":3,"type":"two","x":[0,5]}]`)}, source.Options{})
	same := open(t, map[string]string{
		"nodes/none.csv": "id\n0\n", "nodes/two.csv": "id,a,b\n1,1,2\n3,0,5\n", "nodes/one.csv": "id,a\n2,3\n",
		"edges/none-r-two.csv": "src,dst\n0,1\n", "edges/one-s-none.csv": "src,dst\n2,0\n",
	})
	if shards(t, src, false, graph.F32) != shards(t, same, false, graph.F32) {
		t.Errorf("the shards are others: %+v", src.Meta().Types)
	}
	_, err := read.Open(t.Context(), folder(t, map[string]string{"edges.csv": edges, "nodes.arrow": nodes(`[{"id":0,"type":"a","x":[1]},{"id":1,"type":"a","x":[1,2]},{"id":2,"type":"a","x":[1]}]`)}), source.Options{})
	if err == nil || !strings.Contains(err.Error(), "nodes.arrow, row 2: there are 2 features, and the first row of the type a has 1") {
		t.Error(err)
	}
}

// What was imported without types still is, unless its columns hold words, or are asked for.
func TestTablesOfNumbersStay(t *testing.T) {
	numbers := map[string]string{"nodes.csv": "id,type\n0,5\n1,6\n", "edges.csv": "src,dst,relation\n0,1,7\n"}
	words := map[string]string{"nodes.csv": "id,type,x\n0,a,1\n1,b,2\n", "edges.csv": "src,dst,relation,w\n0,1,r,2\n"}
	for name, c := range map[string]struct {
		files map[string]string
		o     source.Options
		note  string
	}{
		"numbers":           {numbers, source.Options{}, "nodes.csv: the column type begins with numbers and does not count as types: give {dataset.type_column type} if it should."},
		"numbers of edges":  {numbers, source.Options{}, "edges.csv: the column relation begins with numbers and does not count as relations: give {dataset.relation_column relation} if it should."},
		"none":              {words, source.Options{TypeColumn: "none", RelationColumn: "none"}, "nodes.csv: not taken as features: type."},
		"features of edges": {words, source.Options{EdgeFeatures: []string{"w"}}, "nodes.csv: not taken as features: type."},
	} {
		src := openWith(t, c.files, c.o)
		if m := src.Meta(); m.Types != nil || m.Features != 1 || m.Format != "csv" || !slices.Contains(src.Notes(), c.note) {
			t.Errorf("%s: %+v, %q", name, m, src.Notes())
		}
	}
	src := openWith(t, numbers, source.Options{TypeColumn: "type", RelationColumn: "relation"})
	if got := fmt.Sprint(names(src), edges(t, src)); got != "[5/0 6/1] [5/0 7 6/1]" {
		t.Errorf("asked for, they are %s", got)
	}
}

func TestTablesRefused(t *testing.T) {
	const ring = "src,dst,relation\n0,1,r\n1,2,s\n"
	for name, c := range map[string]struct {
		nodes, edges string
		o            source.Options
		want         string
	}{
		"an id twice":          {"id,type\n0,a\n1,b\n2,b\n0,b\n", ring, source.Options{}, "nodes.csv, line 5: the id 0 has a row already, and ids are those of all types of a table: leave one row for each id, or put its type before each"},
		"no type":              {"id,type\n0,a\n1,\n2,b\n", ring, source.Options{}, "nodes.csv, line 3: there is nothing in the column of types: write one in each row"},
		"no relation":          {"id,type\n0,a\n1,a\n2,b\n", "src,dst,relation\n0,1,r\n1,2,\n", source.Options{}, "edges.csv, line 3: there is nothing in the column of relations: write one in each row"},
		"a slash":              {"id,type\n0,a/b\n1,a\n2,b\n", ring, source.Options{}, `nodes.csv, line 2: the type "a/b" has a /`},
		"an unknown id":        {"id,type\n0,a\n1,a\n", ring, source.Options{}, "edges.csv, edge 2: the id 2 is not among the nodes: add it to their table, or remove the edge, or, for a graph without types, give {dataset.type_column none} and {dataset.relation_column none}"},
		"a word for an id":     {"id,type\n0,a\n1,a\n", "src,dst,relation\n0,1,r\n1,x,r\n", source.Options{}, `edges.csv, edge 2: the id "x" is not among the nodes`},
		"a feature is missing": {"id,type,x\n0,a,1\n1,b,\n2,a,\n", ring, source.Options{}, "nodes.csv, line 4: the feature x is missing, and earlier rows of the type a have it: write a number, 0 if there is nothing"},
		"a feature was":        {"id,type,x\n0,a,\n1,b,\n2,a,1\n", ring, source.Options{}, "nodes.csv, line 4: here is a feature x, and earlier rows of the type a have none"},
		"labels of two":        {"id,type,label\n0,a,1\n1,b,0\n2,a,1\n", ring, source.Options{}, "nodes.csv: vertices of the types a and b both have labels, and those of one type are learnt"},
		"no such column":       {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{TypeColumn: "sort"}, "nodes.csv has no column called sort among id, type: check {dataset.type_column}"},
		"no such relation":     {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{RelationColumn: "verb"}, "edges.csv has no column called verb among src, dst, relation: check {dataset.relation_column}"},
		"two columns":          {"id,type,ntype\n0,a,b\n1,a,b\n2,b,b\n", ring, source.Options{}, "nodes.csv has types in the column type or in ntype: name one with {dataset.type_column}, or give {dataset.type_column none}"},
		"the ids":              {"type,x\na,1\nb,2\n", ring, source.Options{}, "nodes.csv has no column called id beside type, which has the types"},
		"features of edges":    {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{TypeColumn: "type", EdgeFeatures: []string{"all"}}, "{dataset.type_column} makes a graph with types, whose edges have no features yet"},
		"a blank type":         {"id,type\n0,a\n1,\u00a0\n2,b\n", ring, source.Options{}, `nodes.csv, line 3: the name "\u00a0" of a type or relation is blank: give it one with letters or digits, or give {dataset.type_column none}`},
		"a blank relation":     {"id,type\n0,a\n1,a\n2,b\n", "src,dst,relation\n0,1,r\n1,2,\u2003\n", source.Options{RelationColumn: "relation"}, `edges.csv, edge 2: the name "\u2003" of a type or relation is blank: give it one with letters or digits`},
		"types are ids":        {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{TypeColumn: "ID"}, "nodes.csv: the column id, which {dataset.type_column} names, has the names of nodes: name the one that says the type of each"},
		"another cause":        {"id,node,x,y,label\n0,a,1,0,0\n1,a,2,1,1\n2,b,3,1,0\n", ring, source.Options{TypeColumn: "node"}, "nodes.csv has both y and label: leave one of them"},
		"relations are ends":   {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{RelationColumn: "src"}, "edges.csv: the column src, which {dataset.relation_column} names, has an end of each edge: name the one that says the relation of each"},
		"relations are others": {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{RelationColumn: "dst"}, "edges.csv: the column dst, which {dataset.relation_column} names, has an end"},
		"no header":            {"id,type\n0,a\n1,a\n2,b\n", "0,1\n1,2\n", source.Options{RelationColumn: "verb"}, "edges.csv, line 1: there is no header line that names the columns, and {dataset.relation_column} asks for verb"},
		"no table of nodes":    {"", ring, source.Options{TypeColumn: "type"}, "{dataset.type_column} names type, and there is no table of nodes beside the edges"},
		"little memory":        {"id,type\n0,a\n1,a\n2,b\n", ring, source.Options{Memory: 64}, "raise {dataset.memory}"},
	} {
		files := map[string]string{"nodes.csv": c.nodes, "edges.csv": c.edges}
		maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
		if _, err := read.Open(t.Context(), folder(t, files), c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, and not %s", name, err, c.want)
		}
	}
	two := []read.Part{{Label: "a", Path: folder(t, tabled)}, {Label: "b", Path: folder(t, tabled)}}
	if _, err := read.OpenParts(t.Context(), two, verbs); err == nil || !strings.Contains(err.Error(), "{dataset.type_column} makes a graph with types, which is imported alone") {
		t.Errorf("two sources: %v", err)
	}
	if _, err := read.Open(t.Context(), folder(t, shelves), verbs); err == nil || !strings.Contains(err.Error(), "{dataset.type_column} names a column of tables (csv, parquet), and a source of the format typed has none with names") {
		t.Errorf("a folder: %v", err)
	}
}

// Splits are those of the type with labels, as in a folder.
func TestTablesWithSplitsOfOtherTypes(t *testing.T) {
	src := openWith(t, map[string]string{"nodes.csv": "id,type,label,split\n0,a,,train\n1,b,1,train\n2,b,0,test\n", "edges.csv": "src,dst,relation\n0,1,r\n1,2,s\n"}, source.Options{})
	if got := fmt.Sprint(src.Labels(), src.Splits()); got != "[-1 1 0] [[0 1 3]]" {
		t.Errorf("labels and splits are %s", got)
	}
	if note := "Splits are those of b, whose vertices have labels: 1 marks of other types are left out."; !slices.Contains(src.Notes(), note) {
		t.Errorf("%q has no %q", src.Notes(), note)
	}
}
