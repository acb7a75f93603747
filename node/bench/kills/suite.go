package kills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// A Row is an event with what it cost.
type Row struct {
	event
	Program string  `json:"program"` // its digest
	Node    string  `json:"node"`
	Leader  bool    `json:"leader"`         // whether it was the mesh's
	Epoch   float64 `json:"epoch"`          // epochs done when the signal came
	Lost    int     `json:"lost"`           // steps
	Noticed float64 `json:"noticed"`        // seconds until the others had the job
	Rested  float64 `json:"rested"`         // seconds until the next step
	Same    bool    `json:"same"`           // weights after every epoch, as undisturbed
	From    int     `json:"from,omitempty"` // the first epoch with other weights, if any has
	Failed  string  `json:"failed,omitempty"`
}

// Report is what --json prints.
type Report struct {
	bench.Report
	Rows []Row `json:"events"`
}

// Show adds the events to the figures.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	t := result.Table{Title: "Events", Head: []string{"Event", "Node", "Epochs done", "Steps lost", "Noticed after", "Next step after", "Same weights", ""}}
	for _, e := range r.Rows {
		node, same := e.Node, "yes"
		if e.Leader {
			node += ", the leader"
		}
		switch {
		case !e.compares():
			same = "not compared"
		case e.From > 0:
			same = fmt.Sprintf("NO, from epoch %d on", e.From)
		case !e.Same:
			same = "NO"
		}
		t.Add(e.String(), node, fmt.Sprintf("%.1f", e.Epoch), e.Lost, fmt.Sprintf("%.2f s", e.Noticed), fmt.Sprintf("%.2f s", e.Rested), same, e.Failed)
	}
	p.Table(t)
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	k, err := load(cfg)
	if err != nil {
		return err
	}
	report := &Report{}
	suite := bench.Suite{Title: "Kills", Parts: []bench.Part{{What: "what the loss of a node costs a job", Measure: func(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
		list := all(cfg.Scale.Rows, cfg.Scale.Quick)
		if err := measure(ctx, run, cfg, k, list, report); err != nil {
			return nil, err
		}
		for _, e := range list {
			if r, is := k.rows[e.String()]; is {
				report.Rows = append(report.Rows, r)
			}
		}
		return figures(report.Rows), nil
	}}}}
	if err := bench.Measure(ctx, cfg, suite, report, stdout, stderr); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: finished events are kept in %s, and the same command goes on from there", err, k.file)
		}
		return err
	}
	return nil
}

// measure does the events that are not kept, on one mesh.
func measure(ctx context.Context, run *bench.Run, cfg bench.Config, k *kept, list []event, report *Report) (err error) {
	todo := slices.DeleteFunc(slices.Clone(list), func(e event) bool { _, is := k.rows[e.String()]; return is })
	if len(todo) == 0 || cfg.Scale.Show {
		return nil
	}
	run.Progress("%d of %d events are to be measured: about %d minutes", len(todo), len(list), 1+len(todo)/4)
	m, err := begin(ctx, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	report.Notes = append(report.Notes, m.notes()...)
	for _, e := range todo {
		r, err := m.disturb(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
		run.Progress("  %s: %s after %.1f epochs, %d lost, noticed after %.2f s, next step after %.2f s, same %v %s", e, r.Node, r.Epoch, r.Lost, r.Noticed, r.Rested, r.Same, r.Failed)
		if err := k.add(r); err != nil {
			return err
		}
	}
	return nil
}

// figures sums up the events of each strategy.
func figures(rows []Row) (list []bench.Figure) {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Strategy) {
			names = append(names, r.Strategy)
		}
	}
	for _, name := range names {
		for _, signal := range []string{"kill", "term"} {
			var noticed, rested []float64
			count, lost, same := 0, 0, 0
			for _, r := range rows {
				if r.Strategy != name || r.Signal != signal {
					continue
				}
				count++
				if r.Failed != "" {
					continue
				}
				noticed, rested, lost = append(noticed, r.Noticed), append(rested, r.Rested), max(lost, r.Lost)
				if r.Same {
					same++
				}
			}
			if count == 0 {
				continue
			}
			what := fmt.Sprintf("%s, %d times %s", name, count, map[string]string{"kill": "kill -9", "term": "SIGTERM"}[signal])
			learned := "same weights"
			if e := (event{Strategy: name}); !e.compares() {
				learned = "trained to the end"
			}
			list = append(list, bench.Figure{Name: what + ": " + learned, Value: float64(same), Unit: "times", Bar: fmt.Sprintf("%d times", count), Holds: same == count})
			if len(rested) == 0 {
				continue
			}
			list = append(list, bench.AtMost(what+": steps lost at worst", "steps", float64(lost), mostSteps))
			if e := (event{Strategy: name}); !e.alone() {
				list = append(list, bench.AtMost(what+": noticed, at worst", "s", slices.Max(noticed), mostNotes))
			}
			list = append(list,
				bench.AtMost(what+": next step, at worst", "s", slices.Max(rested), mostRests),
				bench.Figure{Name: what + ": next step, median", Value: stats.Median(rested), Unit: "s"})
		}
	}
	return list
}

// kept is the events that are done, in a file that is whole at any time.
type kept struct {
	file, program string
	rows          map[string]Row
}

func load(cfg bench.Config) (*kept, error) {
	folder := cfg.Scale.Dir
	if folder == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for what is kept: %w", err)
		}
		folder = filepath.Join(caches, "hopmesh-kills")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for what is kept: %w", err)
	}
	program, err := os.ReadFile(cfg.Program)
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	sum := sha256.Sum256(program)
	k := &kept{file: filepath.Join(folder, "events.json"), program: hex.EncodeToString(sum[:6]), rows: map[string]Row{}}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	var rows []Row
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("read the finished events in %s: %w", k.file, err)
	}
	for _, r := range rows {
		if r.Program == k.program || cfg.Scale.Older {
			k.rows[r.String()] = r
		}
	}
	return k, nil
}

func (k *kept) add(r Row) error {
	r.Program = k.program
	k.rows[r.String()] = r
	var rows []Row
	for _, of := range k.rows {
		rows = append(rows, of)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.String(), b.String()) })
	text, err := json.MarshalIndent(rows, "", " ")
	if err == nil {
		err = os.WriteFile(k.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(k.file+".new", k.file)
	}
	if err != nil {
		return fmt.Errorf("keep a finished event: %w", err)
	}
	return nil
}
