//go:build long

package data

import (
	"fmt"
	"testing"
)

// Beyond memory the cut of real, planted and R-MAT graphs is close to the multilevel one.
func TestBeyond(t *testing.T) {
	run := newRun(t)
	run.Graphs = "../../../engine/graph/read/testdata"
	list, err := graphs(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(list, large()) {
		for _, parts := range []int{8, many} {
			t.Run(fmt.Sprintf("%s-%d", g.name, parts), func(t *testing.T) {
				b, err := beyondOne(t.Context(), run, g, parts)
				if err != nil {
					t.Fatal(err)
				}
				t.Log(b)
				if b.streamed > 1.3*b.multilevel {
					t.Errorf("%.2fx of the multilevel cut", b.streamed/b.multilevel)
				}
			})
		}
	}
}
