package train

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

func TestNotesNameNodesThatFit(t *testing.T) {
	f := api.JobForecast{
		Rows: []api.ForecastRow{
			{Nodes: 1000, Strategy: "graph", Fits: true},
			{Nodes: 4, Strategy: "graph", Why: "too large"},
			{Nodes: 1, Strategy: "graph", Why: "it is alone"},
			{Nodes: 4, Strategy: "pipe", Why: "too large"},
			{Nodes: 2, Strategy: "leap", Fits: true},
			{Nodes: 4, Strategy: "leap", Why: "too large"},
			{Nodes: 16, Strategy: "pipe", Why: "too large"},
			{Nodes: 256, Strategy: "graph", Fits: true},
		},
		Assumptions: []string{"all else"},
	}
	want := []string{
		"graph on 4 nodes: too large; it fits on 256 nodes", "graph on 1 node: it is alone; it fits on 256 nodes", "pipe on 4 nodes: too large", "leap on 4 nodes: too large",
		"pipe on 16 nodes: too large", "all else",
	}
	if got := forecastNotes(f); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
