package scale

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// Report is what --json prints.
type Report struct {
	bench.Report
	Lines []Line `json:"cells"`
}

var parts = []struct {
	name, what, title string
}{
	{"memory", "what jobs take, and whether a bound holds", "Bounded memory"},
	{"falling", "whether memory falls with nodes", "Memory a node"},
	{"deep", "four layers on the whole graph", "Full-graph training"},
	{"back", "whether memory is given back", "Giving back"},
	{"limits", "daemons under real limits", "Real limits"},
	{papers, "a graph that no daemon could hold", "Papers, on four daemons"},
	{links, "partners and learnt rows within bounds", "Links and learnt rows"},
}

// papers is measured only if it is asked for, and so is links. Their pages stand by themselves.
const papers = "papers"

// papersScale is the share of the real graph's size.
const papersScale = 0.1

// Parts returns the names of the suite's parts.
func Parts() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// quickScale is the share of the graphs' size for trying out.
const quickScale = 0.05

// A run is one run of the suite.
type run struct {
	lab
	cfg    bench.ScaleConfig
	kept   *kept
	report *Report
	sizes  []int
	ver    string
	scale  float64 // of all graphs but papers
	papers float64
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	if len(cfg.Only) == 0 {
		cfg.Only = slices.DeleteFunc(Parts(), func(name string) bool { return name == papers || name == links })
	}
	r, err := open(cfg, stderr)
	if err != nil {
		return err
	}
	if !cfg.Scale.Show {
		r.forecast(cfg.Only)
	}
	s := bench.Suite{Title: "Scale"}
	for _, p := range parts {
		s.Parts = append(s.Parts, bench.Part{Name: p.name, What: p.what, Measure: func(ctx context.Context, _ *bench.Run) ([]bench.Figure, error) {
			return nil, r.part(ctx, p.name)
		}})
	}
	r.report.Notes = notes(r.scale)
	if slices.Contains(cfg.Only, links) {
		r.report.Notes = append(r.report.Notes, linkNotes()...)
	}
	err = bench.Measure(ctx, cfg, s, r.report, stdout, stderr)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: finished cells are kept in %s, and the same command goes on from there", err, r.folder)
	}
	return err
}

func open(cfg bench.Config, stderr io.Writer) (*run, error) {
	folder := cfg.Scale.Dir
	if folder == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for what is kept: %w", err)
		}
		folder = filepath.Join(caches, "hopmesh-scale")
	}
	scale, on := 1.0, sizes
	if cfg.Scale.Quick {
		scale, on = quickScale, []int{1, 2}
		folder = filepath.Join(folder, "quick")
	}
	share := cfg.Scale.Papers
	if share == 0 {
		share = papersScale
	}
	if share < 0 || share > 1 {
		return nil, fmt.Errorf("a share of %g of the papers: choose more than 0 and at most 1", share)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for what is kept: %w", err)
	}
	program, err := digest(cfg.Program)
	if err != nil {
		return nil, err
	}
	taken := program
	if cfg.Scale.Older {
		taken = ""
	}
	k, err := load(filepath.Join(folder, "cells.jsonl"), taken)
	if err != nil {
		return nil, err
	}
	k.program = program
	return &run{
		lab: lab{
			program: cfg.Program, folder: folder,
			say: func(format string, args ...any) { _, _ = fmt.Fprintf(stderr, format+"\n", args...) },
		},
		cfg: cfg.Scale, kept: k, report: &Report{}, sizes: on, ver: cfg.Version, scale: scale, papers: share,
	}, nil
}

// digest returns the digest of a program.
func digest(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// cells returns the cells of a part.
func (r *run) cells(part string) []cell {
	switch part {
	case "memory":
		return memoryCells(r.scale, r.sizes)
	case "falling":
		return fallingCells(r.scale, r.sizes)
	case "deep":
		return deepCells(r.scale, r.sizes)
	case "back":
		return backCells(r.scale, r.sizes)
	case links:
		return linkCells(r.scale)
	}
	if part == papers {
		return papersCells(r.papers)
	}
	return limitCells(r.scale)
}

// wanted reports whether a cell is asked for.
func (r *run) wanted(c cell) bool {
	return r.cfg.Rows == "" || slices.ContainsFunc(strings.Split(r.cfg.Rows, ","), func(part string) bool { return strings.Contains(c.name(), part) })
}

// forecast says how long the parts take, by cells that are kept, and how much disk.
func (r *run) forecast(only []string) {
	todo, done, seconds := 0, 0, 0.0
	seen := map[string]bool{}
	meshes := map[int]bool{}
	for _, p := range parts {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		for _, c := range r.cells(p.name) {
			if seen[c.key()] || !r.wanted(c) {
				continue
			}
			seen[c.key()], meshes[c.Nodes] = true, true
			if _, ok := r.kept.rows[c.key()]; ok {
				done++
				continue
			}
			todo++
			seconds += cellSeconds(c)
		}
	}
	disk := float64(len(meshes)) * meshDisk * r.scale
	if slices.Contains(only, papers) {
		disk += papersDisk * r.papers
	}
	r.say("%d cells are to be measured and %d are kept in %s: about %.0f minutes, and at most %s of disk there", todo, done, r.folder, 1+seconds/60, size(uint64(disk)))
}

// About what meshes take of the disk, and the whole of ogbn-papers100M with what its
// import needs meanwhile.
const (
	meshDisk   = 800 * mib
	papersDisk = 130 * gib
)

// cellSeconds is about what a cell takes on two cores.
func cellSeconds(c cell) float64 {
	one := (5 + 15*c.Scale) * (1 + float64(c.Nodes)/8)
	switch c.Kind {
	case partners:
		return 20 + 400*c.Scale*c.Scale
	case killed:
		return 20 + 200*c.Scale
	case imported:
		return 10 + 3000*c.Papers
	case trip:
		return 15 + 6000*c.Papers
	case after:
		return one + 60
	case repeat:
		return one + 250
	}
	return one
}

// part measures the cells of a part that are not kept, and judges all.
func (r *run) part(ctx context.Context, part string) error {
	spent, missing := 0.0, false
	for _, c := range r.cells(part) {
		if !r.wanted(c) {
			missing = true
			continue
		}
		one, ok, err := r.row(ctx, c)
		if err != nil {
			return err
		}
		if ok {
			if err := r.judge(ctx, part, c, one); err != nil {
				return err
			}
			if note := one.Graph; note != "" && !slices.Contains(r.report.Notes, note) {
				r.report.Notes = append(r.report.Notes, note)
			}
			spent += one.Seconds + one.Predicted
			missing = missing || one.Refused+one.Failed != ""
		} else {
			missing = true
		}
	}
	if part == papers && !missing {
		l := judgeTime(spent)
		l.Part, l.Cell, l.Version = part, "all of it", r.ver
		r.report.Lines = append(r.report.Lines, l)
	}
	return nil
}

// row returns a cell's row, which it measures if it is not kept. ok is false if nothing
// may be measured and it is not there.
func (r *run) row(ctx context.Context, c cell) (got row, ok bool, err error) {
	bound := c.Bound
	if c.Share > 0 {
		one, ok, err := r.row(ctx, c.alone())
		if err != nil || !ok {
			return got, false, err
		}
		bound = largest(one.Peak) / uint64(c.Share)
		if one.Refused+one.Failed != "" {
			return row{Name: c.name(), Measured: Measured{Failed: "unknown what one node needs: " + one.Refused + one.Failed}}, true, nil
		}
	}
	if got, ok = r.kept.of(c, bound); ok || r.cfg.Show {
		return got, ok, nil
	}
	m, err := r.measure(ctx, c, bound)
	if err != nil {
		return got, false, fmt.Errorf("%s: %w", c.name(), err)
	}
	got = row{Key: c.key(), Name: c.name(), Program: r.kept.program, Version: r.ver, Measured: m}
	r.say("  %s: bound %s, idle %s, peak %s, %.1f s %s", c.name(), size(bound), size(largest(m.Idle)), size(largest(m.Peak)), m.Seconds, line(later(m)+" "+m.Refused+m.Failed))
	return got, true, r.kept.add(got)
}

// later says what was held after a job, or in what came after it.
func later(m Measured) string {
	if m.Later == nil {
		return ""
	}
	return "then " + size(largest(m.Later))
}

// judge adds a cell's lines to the report.
func (r *run) judge(ctx context.Context, part string, c cell, one row) error {
	var lines []Line
	switch {
	case part == "memory":
		lines = append(lines, judgeBound(one.Measured))
		if l, ok := judgeForecast(one.Measured); ok {
			lines = append(lines, l)
		}
		lines[0].Remark = strings.Join(append(slices.Clip(one.Fell), lines[0].Remark), "; ")
	case part == links:
		lines = linkLines(c, one.Measured)
	case part == papers:
		lines = papersLines(c, one.Measured)
	case part == "limits":
		lines = append(lines, judgeLimit(one.Measured))
	case c.Kind == after:
		lines = append(lines, judgeLater(one.Measured))
	case c.Kind == repeat:
		lines = append(lines, judgeRepeat(one.Measured))
	case c.Job.Graph == "thousand":
		lines = append(lines, judgeAnswer(one.Measured))
	case part == "falling", part == "deep":
		base, bar := c.alone(), map[int]float64{4: onFour, 8: onEight}[c.Nodes]
		if part == "deep" {
			base, bar = cell{Nodes: 1, Job: deep("single"), Scale: c.Scale}, map[int]float64{3: deepOnThree, 8: deepOnEight}[c.Nodes]
		}
		if slices.Equal(c.Job.Set, cached(c.Scale).Set) { // beside the same without a cache
			base, bar = cell{Nodes: c.Nodes, Job: jobOf("leap", "leap.cache=0", sharded), Scale: c.Scale}, 0
		}
		alone, ok, err := r.row(ctx, base)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		lines = append(lines, judgeFall(alone.Measured, one.Measured, bar))
	}
	for _, l := range lines {
		l.Part, l.Cell, l.Version = part, c.name(), one.Version
		r.report.Lines = append(r.report.Lines, l)
	}
	return nil
}

// papersLines are the lines of a cell of the large graph.
func papersLines(c cell, m Measured) []Line {
	if c.Kind == imported {
		return []Line{judgeStep(m, "made by all four, each a part", m.Peak, m.Seconds)}
	}
	trained := m
	if m.Later != nil { // it was trained
		trained.Failed = ""
	}
	return []Line{
		judgeStep(trained, fmt.Sprintf("trained (an epoch %.0f s) and evaluated (%.0f s)", m.Trained, m.Evaluated), m.Peak, m.Seconds),
		judgeStep(m, "predicted", m.Later, m.Predicted),
	}
}

func notes(scale float64) []string {
	list := []string{
		"memory is RssAnon + RssShmem of each daemon, read every 50 ms; idle is the reading two seconds after the daemons are ready, right before the job",
		"a bound is what one node needs for the same job (its peak without a bound), divided by 2, 4 or 8; a forecast is what the daemon logs before the first step, beside the whole peak, since it counts the program too",
		"on several nodes each shard lies on one node alone",
		"the lines on falling memory compare peaks above idle",
	}
	if scale < 1 {
		list = append(list, fmt.Sprintf("QUICK: graphs have %g of their size, which no bar is meant for", scale))
	}
	return list
}

// Show adds the tables, a count of bars first.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	count := result.Table{Head: []string{"Table", "Bars", "Met", "Missed"}}
	for _, part := range parts {
		met, all := 0, 0
		for _, l := range r.Lines {
			if l.Part == part.name && l.Bar != "" {
				all++
				if l.Verdict == holds {
					met++
				}
			}
		}
		if all > 0 {
			count.Add(part.title, all, met, all-met)
		}
	}
	p.Table(count)
	for _, part := range parts {
		t := result.Table{Title: part.title, Head: []string{"Graph, strategy, nodes", "Measured", "Bar", "", "Remark"}}
		for _, l := range r.Lines {
			if l.Part == part.name {
				t.Add(l.Cell, l.Measured, l.Bar, l.Verdict, l.Remark)
			}
		}
		p.Table(t)
	}
	p.Text(strings.Join(r.versions(), "\n"))
}

func (r *Report) versions() (list []string) {
	for _, l := range r.Lines {
		if v := "Measured with version " + l.Version + "."; l.Version != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
