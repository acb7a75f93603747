package graph_test

import (
	"bytes"
	"fmt"
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

// FuzzTypes parses the types of a graph, as nodes read them from the plan.
func FuzzTypes(f *testing.F) {
	f.Add(`{"vertices":[{"name":"a","vertices":3,"first_feature":0,"features":2}],"relations":[{"source":"a","name":"r","target":"a","edges":1}]}`, uint64(3), 2)
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
		if back, err := graph.ParseTypes(again, vertices, features); err != nil || fmt.Sprint(back) != fmt.Sprint(types) {
			t.Errorf("%s became %s: %v", text, again, err)
		}
	})
}
