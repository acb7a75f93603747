// Command reproduce holds the claims of three papers beside what this project measures of the same
// methods: LeapGNN, Grappa and GNNPipe. For each paper it writes a page with each headline claim, the
// published figure, ours on the nearest configuration that runs here, the same by formula at the
// paper's size where there is one, and whether the claim was reproduced, partly, or not.
//
// It measures by `hopmesh bench strategies`, a part at a time, and keeps each finished part in a
// folder. Accuracies are those that `make ablation` and `make deep` have kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/bench/strategies"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// task holds the command's options.
type task struct {
	program string // hopmesh
	kept    string // the folder of finished parts
	only    string // names of papers between commas; "": all
	show    bool   // measure nothing
	out     string // the folder for pages; "": they are printed
	means   func(ctx context.Context, program string) ([]runs.Sum, error)
}

func main() {
	t := task{means: meansOf}
	flag.StringVar(&t.program, "program", "bin/hopmesh", "the program that measures")
	flag.StringVar(&t.kept, "kept", "scripts/reproduce/kept", "the folder of finished measurements: remove it to measure anew")
	flag.StringVar(&t.only, "only", "", "names of papers between commas: leapgnn, grappa, gnnpipe")
	flag.BoolVar(&t.show, "show", false, "measure nothing, print what is there")
	flag.StringVar(&t.out, "out", "", "also write pages and their plots into this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := t.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reproduce:", err)
		os.Exit(1)
	}
}

func (t task) run(ctx context.Context, to io.Writer) error {
	list, err := runs.Select(papers(), t.only, func(p paper) string { return p.name })
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.kept, 0o700); err != nil {
		return fmt.Errorf("make a folder for what is measured: %w", err)
	}
	for _, p := range list {
		m, err := t.measure(ctx, p)
		if err != nil {
			return err
		}
		picture := ""
		if t.out != "" {
			picture = filepath.Join(t.out, p.name+".svg")
		}
		page, err := p.page(m, picture)
		if err != nil {
			return err
		}
		if err := page.Print(to); err != nil {
			return err
		}
		if t.out == "" {
			continue
		}
		if err := page.Write(filepath.Join(t.out, p.name+".md")); err != nil {
			return err
		}
	}
	return nil
}

// measured is what is known of the claims of a paper.
type measured struct {
	strategies.Report            // of all parts
	means             []runs.Sum // of the accuracies
	missing           []string   // parts that have not been measured
	by                []string   // versions and machines that measured the parts, in words
}

// A part is what is kept of a finished part.
type part struct {
	Version string            `json:"version"`
	Report  strategies.Report `json:"report"`
}

// measure runs the parts of a paper that are not kept, and reads all of them.
func (t task) measure(ctx context.Context, p paper) (*measured, error) {
	m := new(measured)
	for _, name := range p.parts {
		file := filepath.Join(t.kept, strings.ReplaceAll(name, "/", "-")+".json")
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			if t.show {
				m.missing = append(m.missing, name)
				continue
			}
			text, err = t.finish(ctx, name, file)
		}
		if err != nil {
			return nil, err
		}
		var one part
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("%s is damaged: remove it to measure anew: %w", file, err)
		}
		m.add(&one)
	}
	for _, program := range p.means {
		means, err := t.means(ctx, program)
		if err != nil {
			return nil, err
		}
		m.means = append(m.means, means...)
	}
	return m, nil
}

// add adds a part.
func (m *measured) add(one *part) {
	m.Join(&one.Report)
	if by := "measured with " + one.Version + " on " + one.Report.Machine; !slices.Contains(m.by, by) {
		m.by = append(m.by, by)
	}
}

// finish measures a part, and keeps it in a file.
func (t task) finish(ctx context.Context, name, file string) ([]byte, error) {
	version, err := exec.CommandContext(ctx, t.program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", t.program, err)
	}
	fmt.Fprintf(os.Stderr, "measuring %s\n", name)
	only, graph, one := strings.Cut(name, "/")
	ask := []string{"bench", "strategies", "--json", "--only", only}
	if one {
		ask = append(ask, "--pipe-graphs", graph)
	}
	bench := exec.CommandContext(ctx, t.program, ask...)
	bench.Stderr = os.Stderr
	bench.Cancel = func() error { return bench.Process.Signal(os.Interrupt) } // it ends its nodes
	report, err := bench.Output()
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", name, err)
	}
	words := strings.Fields(string(version))
	if len(words) == 0 {
		return nil, fmt.Errorf("%s says no version", t.program)
	}
	text, err := json.Marshal(map[string]any{"version": words[len(words)-1], "report": json.RawMessage(report)})
	if err != nil {
		return nil, fmt.Errorf("what %s printed is no report: %w", name, err)
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return nil, err
	}
	return text, os.Rename(file+".new", file)
}

// meansOf returns the means that another command has kept runs of.
func meansOf(ctx context.Context, program string) (means []runs.Sum, err error) {
	folder, err := os.MkdirTemp("", "hopmesh-means-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "means.json")
	show := exec.CommandContext(ctx, "go", "run", "./scripts/"+program, "-show", "-means", file)
	if program == "accuracy" {
		show.Args = append(show.Args, "-nodes", "3")
	}
	said, err := show.CombinedOutput() // it fails, too, where a mean is below its bar
	text, wrong := os.ReadFile(file)
	if wrong != nil {
		return nil, fmt.Errorf("ask scripts/%s for its means: %w: %s", program, errors.Join(err, wrong), said)
	}
	return means, json.Unmarshal(text, &means)
}

// command is how a page is made again.
func (paper) command() string { return "make reproduce RESULTS=docs/results" }
