package runs

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// Asked holds the flags that are common to commands that keep their runs.
type Asked struct {
	Graphs string // the folder of graphs
	Kept   string // the file of finished runs
	Rows   string // parts of the names of the rows to run, separated by commas; "": all
	Show   bool   // run nothing, print the kept runs
	Out    string // a Markdown file for the result, or ""
	Means  string // a JSON file for the means of all rows, or ""
}

// Flags defines the flags of a command. kept is the default file of finished runs.
func (a *Asked) Flags(kept string) {
	flag.StringVar(&a.Graphs, "graphs", "engine/graph/read/testdata", "the folder of graphs, but for Cora, which is in this program")
	flag.StringVar(&a.Kept, "kept", kept, "the file of finished runs")
	flag.StringVar(&a.Rows, "rows", "", "parts of the names of the rows to run, between commas")
	flag.BoolVar(&a.Show, "show", false, "run nothing, print what is there")
	flag.StringVar(&a.Means, "means", "", "write the mean of each row into a JSON file too")
	flag.StringVar(&a.Out, "out", "", "write the result into a Markdown file too, with the machine and the date")
}

// Select returns the rows of a list whose names match only.
func Select[R any](list []R, only string, name func(R) string) ([]R, error) {
	some := slices.DeleteFunc(slices.Clone(list), func(r R) bool {
		return only != "" && !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(name(r), part) })
	})
	if len(some) == 0 {
		return nil, fmt.Errorf("no row has %q in its name", only)
	}
	return some, nil
}
