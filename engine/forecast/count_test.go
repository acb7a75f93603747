package forecast

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// Blocks are drawn only where there is room for them, which is known without drawing them.
func TestABatchThatDoesNotFitIsNotDrawn(t *testing.T) {
	s, err := ShapeOf("arxiv")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Graph(1)
	if err != nil {
		t.Fatal(err)
	}
	o := sample.Options{Fanouts: []int{10, 10}, Far: g.Far, Seed: 1}
	left := uint64(1 << 30)
	c := &counter{left: func() uint64 { return left }, sizes: sample.NewCounter(g.Topology, o)}
	if err := c.look(t.Context(), g.Training[:2000]); err != nil || c.wary {
		t.Fatal(c.wary, err)
	}
	left = 1 << 20
	if err := c.look(t.Context(), g.Training[:2000]); err != nil || !c.wary {
		t.Fatal(c.wary, err)
	}
	if err := c.room(t.Context(), 0, g.Training[:20]); err != nil {
		t.Errorf("a part of it fits: %v", err)
	}
	if err := c.room(t.Context(), 0, g.Training[:2000]); err == nil || !strings.Contains(err.Error(), "draws a batch to count it, which needs") {
		t.Error(err)
	}
}
