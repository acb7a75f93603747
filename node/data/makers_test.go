package data

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/build"
)

// Nodes that generate a graph together send each other no features.
func TestGeneratedFeaturesNeedNotTravel(t *testing.T) {
	s, err := host{}.Open(t.Context(), []byte(`{"Generate":{"Kind":"sbm","Vertices":9,"Features":2}}`), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.(build.Picker); !ok {
		t.Error("a share of a generated graph has only its own rows")
	}
	if s, err := (host{}).Open(t.Context(), []byte(`{"Generate":{"Kind":"ring"}}`), 1, 2); err == nil || s != nil {
		t.Errorf("a graph of no kind: %v, %v", s, err)
	}
}
