package typed_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/typed"
)

// library is a small typed graph: papers with features and labels, authors with other features and
// names, fields with ids alone.
var library = map[string]string{
	"nodes/paper.csv":               "id,label,split,year,pages\n0,1,train,2001,5\n1,0,val,2002,0\n2,1,test,2003,7\n",
	"nodes/author.csv":              "id,age\nann,50\nbob,60\n",
	"nodes/field.csv":               "id\n10\n20\n",
	"edges/author-writes-paper.csv": "src,dst\nann,0\nbob,0\nbob,2\n",
	"edges/author-edits-paper.csv":  "src,dst\nann,0\nann,0\n",
	"edges/paper-cites-paper.csv":   "src,dst\n0,1\n2,1\n",
	"edges/paper-in-field.csv":      "src,dst\n2,20\n",
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, files map[string]string) graph.Source {
	t.Helper()
	src, err := read.Open(t.Context(), folder(t, files), source.Options{})
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

// names returns the ids of all vertices.
func names(src graph.Source) (all []string) {
	s := src.IDs().Strings
	for i := range len(s.Offsets) - 1 {
		all = append(all, string(s.Bytes[s.Offsets[i]:s.Offsets[i+1]]))
	}
	return all
}

// edges returns all edges as sentences, sorted.
func edges(t *testing.T, src graph.Source) (all []string) {
	t.Helper()
	ids, types := names(src), src.Meta().Types
	last := float32(0)
	err := src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i := range b.Src {
			if b.Weights[i] < last {
				t.Errorf("an edge of relation %v comes after one of %v", b.Weights[i], last)
			}
			last = b.Weights[i]
			all = append(all, ids[b.Src[i]]+" "+types.Relations[int(last)].Name+" "+ids[b.Dst[i]])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func TestFolder(t *testing.T) {
	src := open(t, library)
	m := src.Meta()
	if got, want := fmt.Sprint(names(src)), "[author/ann author/bob field/10 field/20 paper/0 paper/1 paper/2]"; got != want {
		t.Errorf("the vertices are %s and not %s", got, want)
	}
	if got, want := fmt.Sprint(m.Types.Vertices), "[{author 2 0 1 false} {field 2 1 1 true} {paper 3 2 2 false}]"; got != want {
		t.Errorf("the types are %s and not %s", got, want)
	}
	if err := graph.CheckSource(src); err != nil {
		t.Error(err)
	}
	want := []string{
		"author/ann edits paper/0", "author/ann edits paper/0", "author/ann writes paper/0", "author/bob writes paper/0", "author/bob writes paper/2",
		"paper/0 cites paper/1", "paper/2 cites paper/1", "paper/2 in field/20",
	}
	if got := edges(t, src); !slices.Equal(got, want) || m.Edges != uint64(len(want)) {
		t.Errorf("the edges are %q", got)
	}
	if got := fmt.Sprint(src.Labels()); got != "[-1 -1 -1 -1 1 0 1]" {
		t.Errorf("the labels are %s", got)
	}
	if got := fmt.Sprint(src.Splits()); got != "[[0 0 0 0 1 2 3]]" {
		t.Errorf("the splits are %s", got)
	}
	rows := make([][4]float32, m.Vertices)
	err := src.Features(t.Context(), func(b graph.FeatureBatch) error {
		for i := range len(b.Indptr) - 1 {
			for e := b.Indptr[i]; e < b.Indptr[i+1]; e++ {
				rows[b.Vertex(i)][b.Indices[e]] = b.Values[e]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(rows); got != "[[50 0 0 0] [60 0 0 0] [0 1 0 0] [0 1 0 0] [0 0 2001 5] [0 0 2002 0] [0 0 2003 7]]" {
		t.Errorf("the features are %s", got)
	}
}

// Edges back have relations of their own, unless both ends are of one type.
func TestMirror(t *testing.T) {
	src := open(t, library)
	if err := src.(*typed.Graph).Mirror(); err != nil {
		t.Fatal(err)
	}
	if got, m := edges(t, src), src.Meta(); len(got) != 16 || m.Edges != 16 || len(m.Types.Relations) != 7 ||
		!slices.Contains(got, "paper/0 rev-writes author/bob") || !slices.Contains(got, "paper/1 cites paper/0") {
		t.Errorf("%d relations, %d edges %q", len(src.Meta().Types.Relations), m.Edges, got)
	}
	if err := graph.CheckSource(src); err != nil {
		t.Error(err)
	}
	files := maps.Clone(library)
	files["edges/paper-rev-writes-author.csv"] = "src,dst\n0,ann\n"
	src = open(t, files)
	if err := src.(*typed.Graph).Mirror(); err != nil {
		t.Fatal(err)
	}
	if err := graph.CheckSource(src); err == nil || !strings.Contains(err.Error(), "paper-rev-writes-author occurs twice: rename one of the two") {
		t.Errorf("edges back that are there already: %v", err)
	}
}

// Shards have the relation of each edge; equal edges are merged only within a relation.
func TestShards(t *testing.T) {
	src := open(t, library)
	dir := filepath.Join(t.TempDir(), "shards")
	manifest, err := build.Run(context.Background(), src, build.Options{Dir: dir, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Edges != 7 || manifest.Types == nil {
		t.Errorf("%d edges, types %v", manifest.Edges, manifest.Types)
	}
	ids := map[int64]string{}
	var shards []*graph.Shard
	for i := range manifest.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		shards = append(shards, s)
		for row := range s.Vertices {
			ids[int64(s.First)+int64(row)] = string(s.Originals.Append(nil, row))
		}
	}
	var got []string
	for _, s := range shards {
		if s.Weights != nil || s.Related == nil || s.Related.Count != 4 {
			t.Fatalf("shard %d has weights %v and relations %v", s.Number, s.Weights, s.Related)
		}
		for row := range s.Vertices {
			for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
				got = append(got, ids[int64(s.Indices[e])]+" "+src.Meta().Types.Relations[int(s.Related.Of[e])].Name+" "+ids[int64(s.First)+int64(row)])
			}
		}
	}
	slices.Sort(got)
	if want := slices.Compact(edges(t, src)); !slices.Equal(got, want) {
		t.Errorf("the shards have the edges %q and not %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(files map[string]string)
		want   string
	}{
		{"a type is missing", func(f map[string]string) { delete(f, "nodes/field.csv") }, "edges/paper-in-field.csv is not called SOURCE-RELATION-TARGET"},
		{"an unknown id", func(f map[string]string) { f["edges/paper-in-field.csv"] = "src,dst\n2,30\n" }, "the id 30 is not among the nodes of its type"},
		{"labels of two types", func(f map[string]string) { f["nodes/author.csv"] = "id,label\nann,1\nbob,0\n" }, "both have labels"},
		{"two ways to read a name", func(f map[string]string) {
			f["nodes/paper-in.csv"], f["edges/paper-in-in-field.csv"] = "id\n1\n", "src,dst\n1,20\n"
		}, "can be taken apart in 2 ways"},
		{"an id twice, without features", func(f map[string]string) { f["nodes/field.csv"] = "id\n10\n20\n10\n" }, "nodes/field.csv: field.csv, line 4: the id 10 has a row already: leave one row for each id"},
		{"an id twice, with features", func(f map[string]string) { f["nodes/author.csv"] = "id,age\nann,50\nbob,60\nann,50\n" }, "nodes/author.csv: author.csv, line 4: the id \"ann\" has a row already"},
		{"no column of ids", func(f map[string]string) { f["nodes/paper.csv"] = "year,pages\n2001,5\n2002,0\n2003,7\n" }, "nodes/paper.csv: paper.csv has no column called id, and its first one is year: call the column with the ids of the nodes id in the header line"},
		{"a blank type", func(f map[string]string) { f["nodes/ .csv"] = "id\n1\n" }, `nodes/ .csv: the name " " of a type or relation is blank`},
		{"a blank relation", func(f map[string]string) { f["edges/paper- -field.csv"] = "src,dst\n1,10\n" }, `edges/paper- -field.csv: the name " " of a type or relation is blank: give it one`},
		{"nothing in edges", func(f map[string]string) {
			maps.DeleteFunc(f, func(name, _ string) bool { return strings.HasPrefix(name, "edges/") })
			f["edges/readme"] = "nothing"
		}, "holds neither tables nor archives"},
	} {
		files := maps.Clone(library)
		c.change(files)
		if _, err := read.Open(t.Context(), folder(t, files), source.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	files := maps.Clone(library)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "edges/") })
	if _, err := read.Open(t.Context(), folder(t, files), source.Options{Format: typed.Format}); err == nil || !strings.Contains(err.Error(), "edges: a typed graph has the folders nodes and edges") {
		t.Errorf("no folder of edges: %v", err)
	}
	if _, err := read.Open(t.Context(), folder(t, library), source.Options{Memory: 64}); err == nil || !strings.Contains(err.Error(), "raise {dataset.memory}") {
		t.Errorf("64 bytes: %v", err)
	}
}

// What lies beside the two folders is named.
func TestFilesBesideTheFolders(t *testing.T) {
	files := maps.Clone(library)
	files["edges_test.csv"] = "src,dst\n0,1\n"
	if notes := strings.Join(open(t, files).Notes(), "\n"); !strings.Contains(notes, ": edges_test.csv.") || strings.Contains(notes, ": nodes") {
		t.Errorf("notes %s", notes)
	}
	if notes := strings.Join(open(t, library).Notes(), "\n"); strings.Contains(notes, "Not read") {
		t.Errorf("notes of the folders alone %s", notes)
	}
}
