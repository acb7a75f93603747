package train

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The command on a forecast's page, typed into a shell, asks for the same forecast.
func TestCommandOnThePageOfAForecast(t *testing.T) {
	parsed := func(args ...string) *cobra.Command {
		cmd := forecast([]string{"auto", "leap"}, Draw{})
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return cmd
	}
	values := func(cmd *cobra.Command) map[string]string {
		all := map[string]string{}
		cmd.Flags().Visit(func(f *pflag.Flag) { all[f.Name] = f.Value.String() })
		return all
	}
	cmd := parsed(
		"--dataset", "my papers", "--nodes", "4,16", "--nodes=64", "--rate", "25gbit", "--deterministic", "--residual=false", "--set", "a=1", "--set", "b=2,3", "--set", "c=it's $HOME",
		"--fanout", "10,5,cites=20/10", "--optimizer=", "--out", "f.md", "--json", "--addr", "https://n1:7947", "--api-token-file", "/run/token",
	)
	line := commandLine(cmd)
	want := "forecast --dataset 'my papers' --nodes 4,16,64 --rate 25gbit --deterministic --residual=false --set a=1 --set b=2,3 --set 'c=it'\\''s $HOME' --fanout 10,5,cites=20/10 --optimizer ''"
	if line != want {
		t.Errorf("%s, want %s", line, want)
	}
	words, err := exec.CommandContext(t.Context(), "sh", "-c", `forecast() { printf '%s\0' "$@"; }; `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	again := values(parsed(strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")...))
	first := values(cmd)
	for _, name := range []string{"out", "json", "addr", "api-token-file"} {
		delete(first, name)
	}
	if !maps.Equal(again, first) {
		t.Errorf("%s asks for %q, want %q", line, again, first)
	}
}

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
