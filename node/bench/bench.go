// Package bench measures this machine and a mesh on it, each figure beside a baseline
// from the same run: where others share the machine, ratios say more than times. It runs
// the suites of `hopmesh bench` and holds what they have in common; what they measure is
// in the packages below. It is no test: it says only whether a figure is within its bar.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/hopmesh/hopmesh/node/bench/result"
)

// Config says how to measure.
type Config struct {
	JSON bool
	// Out is a Markdown file for the result; "": none.
	Out     string
	Version string
	// Program is the hopmesh binary, whose idle cost and peak memory are measured.
	Program string
	// Graphs is a folder of graphs in NPZ files to cut; "": generated ones alone.
	Graphs string
	// Nodes is how many share the jobs of the suite strategies, and Plot a file for a
	// picture of leap's ladder; "": none.
	Nodes int
	Plot  string
	// PlotPipe is a file for the times of pipe beside those of graph; "": none.
	PlotPipe string
	// PipeGraphs names the graphs on which pipe is timed; none: all.
	PipeGraphs []string
	// Only names parts of a suite; none: all.
	Only []string
	// Scale is of the suite scale.
	Scale ScaleConfig
	// Minutes is how long the suite soak takes.
	Minutes int
}

// ScaleConfig says which cells of the suite scale are measured.
type ScaleConfig struct {
	Dir    string  // for what is kept between runs; "": in the user's cache
	Rows   string  // parts of the names of cells, between commas; "": all
	Quick  bool    // small graphs and few nodes, for trying out
	Show   bool    // measure nothing, print what is kept
	Older  bool    // also take what other versions have measured
	Papers float64 // the share of papers100M in the part papers; 0: a tenth
}

// A Figure is one measurement.
type Figure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Baseline string  `json:"yardstick,omitempty"` // what it is compared with
	Ceiling  float64 `json:"ceiling,omitempty"`   // the baseline's value, same unit, same run
	Ratio    float64 `json:"ratio,omitempty"`     // value / ceiling
	Bar      string  `json:"bar"`                 // "": none
	Holds    bool    `json:"holds"`
}

// A Bar is what a ratio to a baseline must be.
type Bar struct {
	Text  string
	Holds func(ratio float64) bool
}

// Least is met by ratios of at least a limit.
func Least(limit float64) Bar {
	return Bar{fmt.Sprintf("at least %gx", limit), func(r float64) bool { return r >= limit }}
}

// Most is met by ratios of at most a limit.
func Most(limit float64) Bar {
	return Bar{fmt.Sprintf("at most %gx", limit), func(r float64) bool { return r <= limit }}
}

// Exactly is met by one ratio alone.
func Exactly(ratio float64) Bar {
	return Bar{fmt.Sprintf("exactly %gx", ratio), func(r float64) bool { return r == ratio }}
}

// Against makes a figure whose ratio to a baseline has a bar.
func Against(name, unit string, value float64, baseline string, ceiling float64, bar Bar) Figure {
	ratio := value / ceiling
	return Figure{Name: name, Value: value, Unit: unit, Baseline: baseline, Ceiling: ceiling, Ratio: ratio, Bar: bar.Text, Holds: bar.Holds(ratio)}
}

// Beside makes a figure beside a baseline, without a bar.
func Beside(name, unit string, value float64, baseline string, ceiling float64) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Baseline: baseline, Ceiling: ceiling, Ratio: value / ceiling}
}

// Below makes a figure that must stay under a limit.
func Below(name, unit string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Bar: fmt.Sprintf("under %g %s", limit, unit), Holds: value < limit}
}

// AtMost makes a figure that must not be over a limit.
func AtMost(name, unit string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Bar: fmt.Sprintf("at most %.3g %s", limit, unit), Holds: value <= limit}
}

// AtLeast makes a ratio that must reach a limit.
func AtLeast(name string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: "x", Bar: fmt.Sprintf("at least %g x", limit), Holds: value >= limit}
}

// A Report is what --json prints. A suite with more to report embeds it.
type Report struct {
	Machine string   `json:"machine"`
	Notes   []string `json:"notes,omitempty"` // on what the machine does not give
	Figures []Figure `json:"figures"`
}

// A Result is a report that can be shown.
type Result interface {
	Common() *Report
	// Show adds the report's tables and remarks to a page.
	Show(p *result.Page)
}

var _ Result = (*Report)(nil)

// Common returns what reports of all suites have.
func (r *Report) Common() *Report { return r }

// Show adds the notes and the table of figures.
func (r *Report) Show(p *result.Page) {
	for _, n := range r.Notes {
		p.Note(n)
	}
	t := result.Table{Head: []string{"Figure", "Measured", "Baseline", "Ratio", "Bar", ""}}
	for _, f := range r.Figures {
		baseline, ratio, verdict := "", "", "holds"
		if f.Baseline != "" {
			baseline, ratio = fmt.Sprintf("%s %.3g %s", f.Baseline, f.Ceiling, f.Unit), fmt.Sprintf("%.2fx", f.Ratio)
		}
		switch {
		case f.Bar == "":
			verdict = ""
		case !f.Holds:
			verdict = "FALLS SHORT"
		}
		t.Add(f.Name, fmt.Sprintf("%.3g %s", f.Value, f.Unit), baseline, ratio, f.Bar, verdict)
	}
	p.Table(t)
}

// A Part of a suite measures some figures that belong together.
type Part struct {
	Name    string // by which it can be asked for alone, or ""
	What    string
	Measure func(ctx context.Context, run *Run) ([]Figure, error)
}

// A Suite is what one command measures.
type Suite struct {
	Title string
	Parts []Part
}

// A Run is one run of a suite.
type Run struct {
	Config
	Dir string // for files, and gone afterwards
	Log *slog.Logger
	// Notes are for people while they wait. They are no part of the result.
	Notes io.Writer
}

// Progress tells people how far the run is.
func (r *Run) Progress(format string, args ...any) { _, _ = fmt.Fprintf(r.Notes, format+"\n", args...) }

// Measure runs the parts of a suite, or those that are asked for, and prints the report
// that they fill. Figures are added to it when their part is done.
func Measure(ctx context.Context, cfg Config, s Suite, report Result, stdout, stderr io.Writer) error {
	// Before anything takes long.
	if err := result.Writable(cfg.Out); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hopmesh-bench")
	if err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	defer os.RemoveAll(dir)
	common := report.Common()
	common.Machine = result.ThisMachine().String()
	run := &Run{Config: cfg, Dir: dir, Log: slog.New(slog.DiscardHandler), Notes: stderr}
	for _, p := range s.Parts {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, p.Name) {
			continue
		}
		run.Progress("measuring: %s", p.What)
		figures, err := p.Measure(ctx, run)
		if err != nil {
			return fmt.Errorf("measure %s: %w", p.What, err)
		}
		common.Figures = append(common.Figures, figures...)
	}
	page := Page(s.Title, cfg.Version, report)
	if err := page.Write(cfg.Out); err != nil {
		return err
	}
	if cfg.JSON {
		return json.NewEncoder(stdout).Encode(report)
	}
	head := common.Machine + "\n"
	if len(common.Notes) == 0 {
		head += "\n"
	}
	if _, err := io.WriteString(stdout, head); err != nil {
		return err
	}
	return page.Print(stdout)
}

// Page returns a report as a page.
func Page(title, version string, report Result) *result.Page {
	p := &result.Page{Title: title, Command: result.Command("hopmesh"), Version: version}
	report.Show(p)
	return p
}
