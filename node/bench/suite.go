package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
)

// A part of a suite measures some figures that belong together.
type part struct {
	name string // by which it can be asked for alone
	what string
	run  func(context.Context) ([]Figure, error)
}

// suite measures the parts, or those that are asked for, in a folder that is gone
// afterwards, and prints the report.
func suite(ctx context.Context, cfg Config, stdout, stderr io.Writer, parts func(*bench) []part) error {
	dir, err := os.MkdirTemp("", "hopmesh-bench")
	if err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	defer os.RemoveAll(dir)
	r := Report{Machine: Machine()}
	b := &bench{cfg: cfg, dir: dir, log: slog.New(slog.DiscardHandler), notes: stderr, report: &r}
	for _, p := range parts(b) {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, p.name) {
			continue
		}
		b.note("measuring: %s", p.what)
		figures, err := p.run(ctx)
		if err != nil {
			return fmt.Errorf("measure %s: %w", p.what, err)
		}
		r.Figures = append(r.Figures, figures...)
	}
	if cfg.JSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	return table(stdout, r)
}

// bench is one run of a suite.
type bench struct {
	cfg   Config
	dir   string
	log   *slog.Logger
	notes io.Writer // for people, while they wait

	report *Report // so far; suite adds what parts return
}

func (b *bench) note(format string, args ...any) { _, _ = fmt.Fprintf(b.notes, format+"\n", args...) }
