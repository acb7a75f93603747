package cora

import (
	"reflect"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
)

func TestWrite(t *testing.T) {
	path, err := Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := graph.Meta{Format: "npz", Vertices: 2708, Edges: 2 * 5278, Features: 1433, Sparse: true, NonZeros: 49216, Classes: 7}
	if !reflect.DeepEqual(s.Meta(), want) {
		t.Errorf("cora is %+v", s.Meta())
	}
	edges := 0
	if err := s.Edges(t.Context(), func(b graph.EdgeBatch) error { edges += len(b.Src); return nil }); err != nil || edges != 2*5278 {
		t.Errorf("read %d edges: %v", edges, err)
	}
	if len(s.Labels()) != 2708 || len(s.Splits()) != 1 {
		t.Errorf("%d labels, %d splits", len(s.Labels()), len(s.Splits()))
	}
}
