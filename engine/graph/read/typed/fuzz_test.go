package typed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/typed"
)

// fuzzTables opens two tables of a fuzzer's. They must end in an error or in a graph whose parts
// agree, and which is the same when it is read again.
func fuzzTables(t *testing.T, ending string, nodes, edges []byte) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{"nodes" + ending: nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A small file may well claim millions of equal rows.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	src, err := typed.OpenCSV(ctx, dir, source.Options{Memory: 64 << 20})
	if err != nil {
		return
	}
	defer src.Close()
	if m := src.Meta(); m.Vertices > 1<<14 || m.Edges > 1<<14 {
		return
	}
	if tables, is := src.(*typed.Tables); is {
		if err := tables.Mirror(); err != nil {
			return
		}
	}
	if err := graph.CheckSource(src); err != nil && !strings.Contains(err.Error(), "occurs twice") {
		t.Fatal(err)
	}
	// Features of a table with types have been read by now. Others are read here for the first time,
	// and may hold a cell that is no number.
	tables, is := src.(*typed.Tables)
	all := is && tables.Meta().Types.Vertices[0].Name != "vertex"
	first, err := drained(ctx, src)
	again, errAgain := drained(ctx, src)
	if ctx.Err() == nil && (first != again || (err == nil) != (errAgain == nil) || err != nil && all) {
		t.Fatalf("%v and %v: %s and then %s", err, errAgain, first, again)
	}
}

// drained reads a source through, and returns its edges and features.
func drained(ctx context.Context, src graph.Source) (string, error) {
	var out strings.Builder
	m := src.Meta()
	err := src.Edges(ctx, func(b graph.EdgeBatch) error {
		for i := range b.Src {
			if b.Src[i] >= m.Vertices || b.Dst[i] >= m.Vertices || m.Types != nil && int(b.Weights[i]) >= len(m.Types.Relations) {
				return fmt.Errorf("an edge from %d to %d", b.Src[i], b.Dst[i])
			}
		}
		fmt.Fprintln(&out, b.Src, b.Dst, b.Weights)
		return nil
	})
	return out.String(), errors.Join(err, src.Features(ctx, func(b graph.FeatureBatch) error {
		if b.Indptr != nil && len(b.Indptr) != len(b.Vertices)+1 || slices.ContainsFunc(b.Indices, func(c uint32) bool { return int(c) >= m.Features }) {
			return fmt.Errorf("%+v", b)
		}
		fmt.Fprintln(&out, b)
		return nil
	}))
}

func FuzzTables(f *testing.F) {
	f.Add([]byte(strings.Replace(tabled["nodes.csv"], "kind", "type", 1)), []byte(strings.Replace(tabled["edges.csv"], "verb", "type", 1)))
	f.Add([]byte("id;type;x\n1;a;0.5\n2;b;nan\n"), []byte("src;dst;rel\n1;2;r\n2;1;q\n"))
	f.Add([]byte("type,id,x\na,u,\nb,v,w\na,w,9\n"), []byte("u,v\nw,w\n"))
	f.Add([]byte("id,x\n1,5\n2,\n"), []byte("src,dst,rel\n1,2,r\n2,1,q\n"))
	f.Fuzz(func(t *testing.T, nodes, edges []byte) { fuzzTables(t, ".csv", nodes, edges) })
}

func FuzzColumns(f *testing.F) {
	names, whole := []string{"id", "type", "x", "label"}, []bool{true, false, true, true}
	rows := [][]string{{"1", "a", "", "0"}, {"2", "b", "7", ""}, {"5", "a", "", "1"}}
	f.Add(true, []byte(arrowOf(f, names, whole, rows)))
	f.Add(false, []byte(parquetOf(f, names, whole, rows)))
	f.Add(true, []byte(arrowOf(f, nil, nil, [][]string{nil})))
	f.Fuzz(func(t *testing.T, arrow bool, nodes []byte) {
		ending := ".parquet"
		if arrow {
			ending = ".arrow"
		}
		fuzzTables(t, ending, nodes, []byte("src,dst,relation\n1,2,r\n5,1,r\n2,2,q\n"))
	})
}
