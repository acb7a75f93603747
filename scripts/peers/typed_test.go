package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategies"
)

// What is compared can be trained, and each case has ways to compare with.
func TestTypedCases(t *testing.T) {
	about := dataset.About{Vertices: 9000, Edges: 9000, Features: 131, Classes: 349, Relations: 7, Splits: []graph.SplitInfo{{Train: 5000, Val: 10, Test: 10}}}
	for _, c := range typedCases {
		r, err := c.recipe(about.Relations)
		if err == nil {
			err = r.Check(about, strategies.All)
		}
		if err != nil || (r.Each != nil) != c.each {
			t.Errorf("%s: %v by relation, %v", c.name, r.Each, err)
		}
		if one, two := c.ways(1), c.ways(2); len(one) == 0 || len(two) != len(one)+1 {
			t.Errorf("%s: %d ways by one thread and %d by two", c.name, len(one), len(two))
		}
	}
}

// The fastest of the other ways has the bar, and one that fails has none.
func TestTypedReport(t *testing.T) {
	sides := []*side{
		{name: "hopmesh", seconds: []float64{0.01, 0.02, 0.01}}, {name: "slow", seconds: []float64{0.09, 0.08, 0.07}},
		{name: "fast", seconds: []float64{0.02, 0.02, 0.03}}, {name: "broken", err: errors.New("it is not there")},
	}
	table := typedCases[0].report(sides, 2)
	var over, verdicts []string
	for _, row := range table.Rows {
		over, verdicts = append(over, row[3]), append(verdicts, row[5])
	}
	if got, want := over, []string{"", "8.00x", "2.00x", ""}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if want := []string{"", "", "FALLS SHORT", ""}; !slices.Equal(verdicts, want) {
		t.Errorf("%v, want %v", verdicts, want)
	}
}
