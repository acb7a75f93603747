package typed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// What was imported as a graph of one type, and is refused since a column is found by its name, says
// how it still is.
func TestFoundColumnsThatFailSayHowToGoOn(t *testing.T) {
	var types, relations strings.Builder
	for i := range 300 {
		fmt.Fprintf(&types, "%d,t%d\n", i, i)
	}
	for i := range 5000 {
		fmt.Fprintf(&relations, "0,1,r%d\n", i)
	}
	for name, c := range map[string]struct{ nodes, edges, file string }{
		"an empty type":        {"id,type,x\n0,a,1\n1,,2\n", "src,dst\n0,1\n", "nodes.csv"},
		"a slash":              {"id,type,x\n0,a/b,1\n1,b,2\n", "src,dst\n0,1\n", "nodes.csv"},
		"a long type":          {"id,type,x\n0," + strings.Repeat("a", 300) + ",1\n1,b,2\n", "src,dst\n0,1\n", "nodes.csv"},
		"many types":           {"id,type\n" + types.String(), "src,dst\n0,1\n", "nodes.csv"},
		"an empty relation":    {"id,x\n0,1\n1,2\n", "src,dst,type\n0,1,r\n1,0,\n", "edges.csv"},
		"a long relation":      {"id,x\n0,1\n1,2\n", "src,dst,type\n0,1,r\n1,0," + strings.Repeat("a", 300) + "\n", "edges.csv"},
		"many relations":       {"id,x\n0,1\n1,2\n", "src,dst,type\n" + relations.String(), "edges.csv"},
		"a word for a late id": {"id,type\n0,a\n1,b\n", "src,dst\n" + strings.Repeat("0,1\n", 60) + "zed,1\n", "edges.csv"},
	} {
		dir := folder(t, map[string]string{"nodes.csv": c.nodes, "edges.csv": c.edges})
		_, err := read.Open(t.Context(), dir, source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.file) || !strings.Contains(err.Error(), "_column none}") {
			t.Errorf("%s: %v", name, err)
		}
		src, err := read.Open(t.Context(), dir, source.Options{TypeColumn: "none", RelationColumn: "none"})
		if err != nil {
			t.Logf("%s: without types, too: %v", name, err)
			continue
		}
		src.Close()
	}
}

// A note says that splits are left out where nothing has labels.
func TestSplitsWithoutLabelsAreTold(t *testing.T) {
	src := openWith(t, map[string]string{"nodes.csv": "id,type,x,split\n0,a,1,train\n1,b,2,test\n", "edges.csv": "src,dst\n0,1\n"}, source.Options{})
	if len(src.Splits()) == 0 && !strings.Contains(fmt.Sprint(src.Notes()), "marks") {
		t.Errorf("splits are gone, and the notes are %q", src.Notes())
	}
}

// Batches of lists are as small whatever type has the first row.
func TestBatchesOfListsOfUnlikeTypes(t *testing.T) {
	const rows, width = 4096, 1024
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "type", Type: arrow.BinaryTypes.String}, {Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32), Nullable: true}}
	list := "[" + strings.Repeat("1,", width-1) + "1]"
	short := `{"id":0,"type":"short","x":[1]}`
	var long []string
	for i := range rows {
		long = append(long, fmt.Sprintf(`{"id":%d,"type":"long","x":%s}`, i+1, list))
	}
	for name, all := range map[string][]string{"long first": append(append([]string{}, long...), short), "short first": append([]string{short}, long...)} {
		src := openWith(t, map[string]string{"edges.csv": "src,dst,rel\n0,1,r\n", "nodes.arrow": arrowFile(t, fields, "["+strings.Join(all, ",")+"]")}, source.Options{Memory: 16 << 20})
		most := 0
		if err := src.Features(t.Context(), func(b graph.FeatureBatch) error { most = max(most, len(b.Values)); return nil }); err != nil {
			t.Fatal(err)
		}
		if most > 1<<20 {
			t.Errorf("%s: a batch has %d features", name, most)
		}
	}
}

func TestPartsOfTablesWithTypesAreOneTable(t *testing.T) {
	all := written(t, map[string]string{"nodes.csv": "id,type,x,w\na,p,1,\nb,q,,2\nc,p,3,\nd,q,,5\n", "edges.csv": "src,dst,rel\na,b,r\nc,d,s\nd,a,r\n"}, ".parquet")
	cut := map[string]string{}
	for i, one := range []map[string]string{{"nodes.csv": "id,type,x,w\na,p,1,\nb,q,,2\n", "edges.csv": "src,dst,rel\na,b,r\n"}, {"nodes.csv": "id,type,x,w\nc,p,3,\nd,q,,5\n", "edges.csv": "src,dst,rel\nc,d,s\nd,a,r\n"}} {
		for name, text := range written(t, one, ".parquet") {
			cut[fmt.Sprintf("%s/part-%d.parquet", name, i)] = text
		}
	}
	if shards(t, openWith(t, all, source.Options{}), true, graph.F32) != shards(t, openWith(t, cut, source.Options{}), true, graph.F32) {
		t.Error("they differ")
	}
	cut["nodes.parquet/part-2.parquet"] = written(t, map[string]string{"nodes.csv": "id,type,x,w\na,p,1,\n"}, ".parquet")["nodes.parquet"]
	if _, err := read.Open(t.Context(), folder(t, cut), source.Options{}); err == nil {
		t.Error("an id of two parts is taken")
	}
}

// A relation that is called by its types has a name that is not too long, nor is that of edges back.
func TestRelationsCalledByLongTypes(t *testing.T) {
	for length, fits := range map[int]bool{125: true, 126: false, 200: false} {
		a, b := strings.Repeat("a", length), strings.Repeat("b", length)
		dir := folder(t, map[string]string{"nodes.csv": "id,type\n0," + a + "\n1," + b + "\n", "edges.csv": "src,dst\n0,1\n"})
		src, err := read.Open(t.Context(), dir, source.Options{})
		if err == nil {
			src.Close()
		}
		if fits != (err == nil) || !fits && !strings.Contains(err.Error(), "shorten the two") {
			t.Errorf("%d: %v", length, err)
		}
	}
}
