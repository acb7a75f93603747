package graph_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A skeleton carries the relations of edges, and one with others than there are is refused.
func TestSkeletonOfRelations(t *testing.T) {
	of := func(relations ...float32) ([]byte, error) {
		s := &graph.Shard{
			Shards: 1, Vertices: 2, Total: 2, DType: graph.F32, Indptr: []int64{0, 3, 3}, Indices: []int32{0, 1, 1},
			EdgeValues: graph.EdgeValues{Related: &graph.Related{Count: 3, Of: relations}},
		}
		parts, err := graph.NewSkeleton(s, graph.FeatureStats{}, true).Parts()
		return bytes.Join(parts, nil), err
	}
	whole, err := of(2, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := graph.ReadSkeleton(whole)
	if err != nil {
		t.Fatal(err)
	}
	if r := k.Shard.Related; r == nil || r.Count != 3 || fmt.Sprint(r.Of) != "[2 0 1]" || k.Shard.Weights != nil {
		t.Errorf("the relations are %v, the weights %v", r, k.Shard.Weights)
	}
	for _, c := range []struct {
		relations []float32
		want      string
	}{
		{[]float32{3, 0, 1}, "the relation 3 of 3"},
		{[]float32{-1, 0, 1}, "the relation -1 of 3"},
		{[]float32{0.5, 0, 1}, "the relation 0.5 of 3"},
		{[]float32{0, 1, 1}, "does not ascend"},
		{[]float32{0, 1, 0}, "does not ascend"},
	} {
		b, err := of(c.relations...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := graph.ReadSkeleton(b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("relations %v: %v", c.relations, err)
		}
	}
}

// A skeleton carries types, and they say which features the sources of relations have. Types of another
// graph are refused.
func TestSkeletonOfTypes(t *testing.T) {
	types := &graph.Types{
		Vertices:  []graph.VertexType{{Name: "a", Vertices: 1, Features: 1, Bare: true}, {Name: "b", Vertices: 1, First: 1, Features: 3}},
		Relations: []graph.Relation{{Source: "b", Name: "to", Target: "a"}, {Source: "a", Name: "to", Target: "b"}, {Source: "b", Name: "by", Target: "b"}},
	}
	of := func(count, features int, edges bool) (*graph.Skeleton, error) {
		s := &graph.Shard{
			Shards: 1, Vertices: 2, Total: 2, Features: features, DType: graph.F32, Indptr: []int64{0, 1, 2}, Indices: []int32{0, 1},
			EdgeValues: graph.EdgeValues{Related: &graph.Related{Count: count, Types: types, Of: []float32{0, 1}}},
		}
		parts, err := graph.NewSkeleton(s, graph.FeatureStats{}, edges).Parts()
		if err != nil {
			t.Fatal(err)
		}
		return graph.ReadSkeleton(bytes.Join(parts, nil))
	}
	for _, edges := range []bool{true, false} {
		k, err := of(3, 4, edges)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Shard.Related.Types.Sources(); !reflect.DeepEqual(got, []graph.FeatureRange{{First: 1, Count: 3}, {First: 0, Count: 1, Alike: true}, {First: 1, Count: 3}}) {
			t.Errorf("the sources have the features %v", got)
		}
	}
	if _, err := of(4, 4, true); err == nil || !strings.Contains(err.Error(), "4 relations, and types with 3") {
		t.Error(err)
	}
	if _, err := of(3, 5, true); err == nil || !strings.Contains(err.Error(), "2 vertices with 4 features, and the graph has 2 with 5") {
		t.Error(err)
	}
	if (*graph.Types)(nil).Sources() != nil || (&graph.Types{Given: &[3]uint64{1, 0, 0}}).Sources() != nil {
		t.Error("triples and graphs without types have features of sources")
	}
}

// The size of a skeleton, which bounds what a peer may answer, counts the types, however many relations
// they have and whatever these are called.
func TestSizeOfSkeletonsWithTypes(t *testing.T) {
	types := &graph.Types{Vertices: []graph.VertexType{{Name: `"<a>"`, Vertices: 2, Features: 4}}}
	for i := 0; ; i++ {
		of := graph.Relation{Source: types.Vertices[0].Name, Name: fmt.Sprint(strings.Repeat(`"`, 100), i), Target: types.Vertices[0].Name}
		with := *types
		with.Relations = append(slices.Clone(types.Relations), of)
		if _, err := with.Text(); err != nil {
			break
		}
		types = &with
	}
	s := &graph.Shard{
		Shards: 1, Vertices: 2, Total: 2, Features: 4, DType: graph.F32, Indptr: []int64{0, 1, 2}, Indices: []int32{0, 1},
		EdgeValues: graph.EdgeValues{Related: &graph.Related{Count: len(types.Relations), Types: types, Of: []float32{0, 1}}},
	}
	for _, edges := range []bool{true, false} {
		parts, err := graph.NewSkeleton(s, graph.FeatureStats{}, edges).Parts()
		if err != nil {
			t.Fatal(err)
		}
		z := graph.SizeOf(s)
		if b := bytes.Join(parts, nil); int64(len(b)) > z.Size(edges, true) || z.Size(edges, true) > int64(len(b))+5000 || z.Types <= graph.MaxTypesText || z.Types > graph.MaxTypesBytes {
			t.Errorf("%d bytes with %d relations, and %d were said, %d of them of types", len(b), len(types.Relations), z.Size(edges, true), z.Types)
		} else if _, err := graph.ReadSkeleton(b); err != nil {
			t.Error(err)
		}
	}
}

// A skeleton says that edges are triples, and their numbers are checked as relations are.
func TestSkeletonOfTriples(t *testing.T) {
	first := int32(0)
	of := func(count int, numbers ...float32) (*graph.Skeleton, error) {
		s := &graph.Shard{
			Shards: 1, Vertices: 2, Total: 2, DType: graph.F32, Indptr: []int64{0, 2, 2}, Indices: []int32{first, 1},
			EdgeValues: graph.EdgeValues{Related: &graph.Related{Count: count, Given: true, Of: numbers, Types: &graph.Types{Given: &[3]uint64{1, 0, 1}}}},
		}
		parts, err := graph.NewSkeleton(s, graph.FeatureStats{}, true).Parts()
		if err != nil {
			t.Fatal(err)
		}
		return graph.ReadSkeleton(bytes.Join(parts, nil))
	}
	k, err := of(8, 5, 7)
	if err != nil {
		t.Fatal(err)
	}
	if r := k.Shard.Related; !r.Given || r.Count != 8 || r.Triples() != 2 || r.Seen() != 4 || r.Types != nil {
		t.Errorf("%+v", r)
	}
	if _, err := of(6, 5, 1); err == nil || !strings.Contains(err.Error(), "6 relations of triples, which are no 4 for each") {
		t.Error(err)
	}
	if _, err := of(4, 4, 1); err == nil || !strings.Contains(err.Error(), "the relation 4 of 4") {
		t.Error(err)
	}
	first = -1
	if _, err := of(8, 1, 0); err == nil || !strings.Contains(err.Error(), "has -1 in row 0, which does not ascend below 2") {
		t.Error(err)
	}
}

// Types of triples have one type of vertices, and so many relations that all numbers fit.
func TestTypesOfTriples(t *testing.T) {
	types := func(relations int) *graph.Types {
		all := &graph.Types{Vertices: []graph.VertexType{{Name: "e", Vertices: 3, Features: 3}}, Given: &[3]uint64{2, 1, 1}}
		for i := range relations {
			all.Relations = append(all.Relations, graph.Relation{Source: "e", Name: fmt.Sprint(i), Target: "e"})
		}
		return all
	}
	if err := types(graph.MaxRelations/4).Check(3, 3); err != nil {
		t.Error(err)
	}
	if err := types(graph.MaxRelations/4+1).Check(3, 3); err == nil || !strings.Contains(err.Error(), "have 2049 relations, and may have 2048: leave some out") {
		t.Error(err)
	}
	many := types(1345) // of FB15k, whose names are about as long
	for i := range many.Relations {
		many.Relations[i].Name = fmt.Sprintf("/%060d", i)
		many.Relations[i].Edges = 10_000
	}
	text, err := many.Text()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := graph.ParseTypes(text, 3, 3); err != nil || !reflect.DeepEqual(back, many) {
		t.Errorf("%v, %v", back, err)
	}
	two := types(1)
	two.Vertices = append(two.Vertices, graph.VertexType{Name: "f", First: 3, Features: 1})
	if err := two.Check(3, 4); err == nil || !strings.Contains(err.Error(), "have 2 types of vertices, and may have one") {
		t.Error(err)
	}
	if n, seen, ends, starts := types(2).Numbers(), types(2).Seen(), types(2).Ends(), types(2).Starts(); n != 8 || seen != 4 || ends != "" || starts != "" {
		t.Errorf("%d numbers, %d of which are seen, from %q to %q", n, seen, starts, ends)
	}
}

// Blank names are refused in sources, and read where datasets have them.
func TestBlankNamesOfTypes(t *testing.T) {
	for _, name := range []string{" ", "\u00a0", "\u2003 \u3000"} {
		if err := graph.CheckTypeName(name); err == nil || !strings.Contains(err.Error(), "is blank: give it one with letters or digits") {
			t.Errorf("%q: %v", name, err)
		}
		kept := &graph.Types{Vertices: []graph.VertexType{{Name: name, Vertices: 3, Features: 1}}, Relations: []graph.Relation{{Source: name, Name: name, Target: name, Edges: 1}}}
		if err := kept.Check(3, 1); err != nil {
			t.Errorf("%q of a dataset that is there: %v", name, err)
		}
	}
	if err := graph.CheckTypeName(" a\u00a0"); err != nil {
		t.Error(err)
	}
}

// FuzzTypes parses the types of a graph, as nodes read them from the plan.
func FuzzTypes(f *testing.F) {
	f.Add(`{"vertices":[{"name":"a","vertices":3,"first_feature":0,"features":2}],"relations":[{"source":"a","name":"r","target":"a","edges":1}]}`, uint64(3), 2)
	f.Add(`{"vertices":[{"name":"a","vertices":3,"first_feature":0,"features":2}],"relations":[{"source":"a","name":"r","target":"a","edges":1}],"given":[1,0,2]}`, uint64(3), 2)
	f.Add(`{"vertices":[],"relations":null}`, uint64(0), 0)
	f.Fuzz(func(t *testing.T, text string, vertices uint64, features int) {
		types, err := graph.ParseTypes(text, vertices, features)
		if err != nil || types == nil {
			return
		}
		again, err := types.Text()
		if err != nil {
			return // names that take more bytes when they are escaped
		}
		if back, err := graph.ParseTypes(again, vertices, features); err != nil || !reflect.DeepEqual(back, types) {
			t.Errorf("%s became %s: %v", text, again, err)
		}
	})
}

// Relations of equal edges are put in order, and no others are.
func TestOrder(t *testing.T) {
	keys, relations := []uint64{1, 1, 1, 2, 3, 3}, []float32{2, 0, 1, 0, 5, 4}
	new(graph.Types).Order(keys, relations)
	if want := []float32{0, 1, 2, 0, 4, 5}; !slices.Equal(relations, want) {
		t.Errorf("they are %v and not %v", relations, want)
	}
	(*graph.Types)(nil).Order(keys, nil)
}
