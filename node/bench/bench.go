// Package bench measures a mesh on this machine, each figure beside a yardstick
// taken in the same run: absolute times say little on a machine that others
// share, ratios say something. It is what `hopmesh bench` runs, not a test: it
// judges nothing but whether a figure is within its bar.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// Config says how to measure.
type Config struct {
	JSON    bool
	Version string
	// Program is the hopmesh binary, whose idle cost and peak memory are measured.
	Program string
	// Graphs is a folder of graphs in NPZ files to cut; "": made up ones alone.
	Graphs string
	// Nodes is how many share the jobs of Strategies, and Plot a file for their ladder;
	// "": none.
	Nodes int
	Plot  string
	// PlotPipe is a file for the times of pipe beside those of graph; "": none.
	PlotPipe string
	// Only names parts of a suite; none: all.
	Only []string
}

// A Figure is one measurement.
type Figure struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Yardstick string  `json:"yardstick,omitempty"` // what it is compared with
	Ceiling   float64 `json:"ceiling,omitempty"`   // the yardstick's value, same unit, same run
	Ratio     float64 `json:"ratio,omitempty"`     // value / ceiling
	Bar       string  `json:"bar"`                 // "": not judged
	Holds     bool    `json:"holds"`
}

// A Report is what --json prints.
type Report struct {
	Machine string   `json:"machine"`
	Notes   []string `json:"notes,omitempty"` // on what the machine does not give
	Figures []Figure `json:"figures"`
	// Of Strategies: all that the figures are made of.
	Sent    []Sent       `json:"sent,omitempty"`
	Ladder  []Rung       `json:"ladder,omitempty"`
	Columns []ColumnRung `json:"p3_ladder,omitempty"`
	Times   []Timed      `json:"times,omitempty"`

	Isolated []Isolated `json:"grappa,omitempty"`
	Turned   []Turned   `json:"grappa_sweeps,omitempty"`

	Volumes []Volume `json:"pipe_volumes,omitempty"`
	Moved   []Moved  `json:"pipe_bytes,omitempty"`
	Piped   []Piped  `json:"pipe_times,omitempty"`
}

// Transport measures what the mesh costs and what it gives.
func Transport(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	return suite(ctx, cfg, stdout, stderr, func(b *bench) []part {
		return []part{
			{what: "bulk throughput", run: b.bulk},
			{what: "control round trip", run: b.roundTrip},
			{what: "forming and losing a leader", run: b.form},
			{what: "Raft commit", run: b.commit},
			{what: "idle node", run: b.idle},
		}
	})
}

// Data measures how graphs come in: cuts beside METIS, imports beside a copy,
// placement beside the transport.
func Data(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	return suite(ctx, cfg, stdout, stderr, func(b *bench) []part {
		return []part{
			{what: "cuts and their balance", run: b.cuts},
			{what: "cutting in a stream, within a bound of memory", run: b.stream},
			{what: "importing", run: b.importing},
			{what: "placing shards", run: b.placing},
		}
	})
}

// Kernels measures the arithmetic of layers: products beside OpenBLAS', what follows
// edges beside reading rows at random, and a step of training made of them.
func Kernels(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	return suite(ctx, cfg, stdout, stderr, func(b *bench) []part {
		return []part{
			{what: "products of matrices", run: b.products},
			{what: "means of neighbours", run: b.aggregations},
			{what: "steps of training", run: b.training},
		}
	})
}

// Sampler measures the sampler beside the same algorithm in C++.
func Sampler(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	return suite(ctx, cfg, stdout, stderr, func(b *bench) []part {
		return []part{{what: "sampling", run: b.sampling}}
	})
}

func table(out io.Writer, r Report) error {
	_, _ = fmt.Fprintln(out, r.Machine)
	for _, n := range r.Notes {
		_, _ = fmt.Fprintf(out, "Note: %s.\n", n)
	}
	_, _ = fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "FIGURE\tMEASURED\tYARDSTICK\tRATIO\tBAR\t")
	for _, f := range r.Figures {
		yardstick, ratio, verdict := "", "", "holds"
		if f.Yardstick != "" {
			yardstick, ratio = fmt.Sprintf("%s %.3g %s", f.Yardstick, f.Ceiling, f.Unit), fmt.Sprintf("%.2fx", f.Ratio)
		}
		switch {
		case f.Bar == "":
			verdict = ""
		case !f.Holds:
			verdict = "FALLS SHORT"
		}
		_, _ = fmt.Fprintf(w, "%s\t%.3g %s\t%s\t%s\t%s\t%s\n", f.Name, f.Value, f.Unit, yardstick, ratio, f.Bar, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return details(out, r)
}

// against makes a figure that is judged by its ratio to a yardstick.
func against(name, unit string, value float64, yardstick string, ceiling float64, bar string, holds func(ratio float64) bool) Figure {
	ratio := value / ceiling
	return Figure{Name: name, Value: value, Unit: unit, Yardstick: yardstick, Ceiling: ceiling, Ratio: ratio, Bar: bar, Holds: holds(ratio)}
}

// below makes a figure that must stay under a limit.
func below(name, unit string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Bar: fmt.Sprintf("under %g %s", limit, unit), Holds: value < limit}
}

// Machine describes the machine in a line, for the head of a table.
func Machine() string {
	model := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
