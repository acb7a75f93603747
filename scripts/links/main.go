// Command links trains models of knowledge graphs on their public splits, and prints their filtered
// ranks of test triples: the mean reciprocal rank and Hits@1, 3 and 10 of heads and tails, among all
// entities. With -python it trains the same model by PyG on the same split, too. It fails if a mean
// is below its bar.
//
// Finished runs are kept in a file with the commit they ran on, and are not repeated unless their
// protocol changes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/graphs"
	"github.com/hopmesh/hopmesh/scripts/kept"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// options are those of the command.
type options struct {
	runs.Asked
	more   string // a folder of graphs that are not in this repository
	python string // PyG's Python; "": hopmesh alone
	list   []row
}

func main() {
	var t options
	t.Flags("scripts/links/runs.jsonl")
	flag.StringVar(&t.more, "more", "", "a folder of further graphs, such as wn18rr")
	flag.StringVar(&t.python, "python", "", "a Python that has PyTorch and PyG")
	_ = flag.Set("graphs", "engine/graph/read/triples/testdata")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := t.all(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A run is a finished seed: a line of the file of runs.
type run struct {
	Row      string     `json:"row"`
	By       string     `json:"by"` // hopmesh or PyG
	Seed     uint64     `json:"seed"`
	Protocol protocol   `json:"protocol"`
	Commit   string     `json:"commit"`
	Epoch    int        `json:"epoch"` // the best by validation
	Val      float64    `json:"val"`   // its filtered MRR
	MRR      float64    `json:"mrr"`   // of test triples, as are hits
	Hits     [3]float64 `json:"hits"`
	Seconds  float64    `json:"seconds"`
}

const ours, theirs = "hopmesh", "PyG"

func (t *options) all(ctx context.Context) (err error) {
	if t.list, err = runs.Select(rows(), t.Rows, row.id); err != nil {
		return err
	}
	if err := result.Writable(t.Out); err != nil {
		return err
	}
	done, err := kept.Load[run](t.Kept)
	if err != nil {
		return err
	}
	var failed error
	if !t.Show {
		failed = t.finish(ctx, done)
	}
	page := &result.Page{Title: "Knowledge graphs", Command: "make links"}
	failed = errors.Join(failed, t.table(done.Items, page))
	return errors.Join(failed, page.Print(os.Stdout), page.Write(t.Out))
}

// of returns the kept runs of a row by a program, for its present protocol.
func of(all []run, r row, by string) (some []run) {
	for _, one := range all {
		if one.Row == r.id() && one.By == by && one.Protocol == r.protocol && one.Seed < uint64(r.Seeds) {
			some = append(some, one)
		}
	}
	return some
}

// finish does the runs that are not kept yet.
func (t *options) finish(ctx context.Context, all *kept.File[run]) error {
	var failed error
	for _, r := range t.list {
		folder, err := t.folder(r.Graph)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, by := range []string{ours, theirs} {
			if by == theirs && (r.Alone || t.python == "") {
				continue
			}
			done := map[uint64]bool{}
			for _, one := range of(all.Items, r, by) {
				done[one.Seed] = true
			}
			for seed := range uint64(r.Seeds) {
				if done[seed] {
					continue
				}
				one := run{Row: r.id(), By: by, Seed: seed, Protocol: r.protocol}
				if one.Commit, err = runs.Commit(); err != nil {
					return err
				}
				begun := time.Now()
				if by == ours {
					err = one.train(ctx, folder)
				} else {
					err = one.python(ctx, t.python, folder)
				}
				if err != nil {
					return fmt.Errorf("%s by %s, seed %d: %w", r.id(), by, seed, err)
				}
				one.Seconds = time.Since(begun).Seconds()
				fmt.Fprintf(os.Stderr, "%s by %s, seed %d: MRR %.4f (epoch %d, %.0f s)\n", r.id(), by, seed, one.MRR, one.Epoch, one.Seconds)
				if err := all.Add(one); err != nil {
					return err
				}
			}
		}
	}
	return failed
}

// folder finds the triples of a graph.
func (t *options) folder(graph string) (string, error) {
	for _, in := range []string{t.Graphs, t.more} {
		folder := filepath.Join(in, graph)
		if _, err := os.Stat(folder); in != "" && err == nil {
			return folder, nil
		}
	}
	return "", fmt.Errorf("the folder of %s is not there: give the folder that it is in with -more", graph)
}

// train trains by hopmesh on one node.
func (r *run) train(ctx context.Context, folder string) (err error) {
	scratch, err := os.MkdirTemp("", "hopmesh-links-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	src, err := read.Open(ctx, folder, read.Options{})
	if err != nil {
		return err
	}
	types := src.Meta().Types
	if err := src.Close(); err != nil {
		return err
	}
	g, err := graphs.ReadCut(ctx, folder, build.Options{Dir: filepath.Join(scratch, "shards")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	about := dataset.Describe(g.Shards)
	about.Given = types.Given
	recipe, err := r.Protocol.recipe(about, r.Seed)
	if err != nil {
		return err
	}
	got, err := train.Run(ctx, recipe, g.Shards, train.Options{Strategies: strategies.All, Report: func(e trained.Epoch) {
		if m := e.Scores; m != nil && m.Metrics != nil {
			fmt.Fprintf(os.Stderr, "%s, seed %d, epoch %d: loss %.4f, MRR of validation %.4f, of test %.4f\n", r.Row, r.Seed, e.Epoch, e.Loss, m.Metrics.Val[task.MRR], m.Metrics.Test[task.MRR])
		}
	}})
	if err != nil {
		return err
	}
	best := got.Best
	m := best.Scores.Metrics
	r.Epoch, r.Val, r.MRR = best.Epoch, m.Val[task.MRR], m.Test[task.MRR]
	for i, name := range task.OfRanks[1:] {
		r.Hits[i] = m.Test[name]
	}
	return nil
}

// python trains by PyG.
func (r *run) python(ctx context.Context, python, folder string) error {
	asked, err := json.Marshal(struct {
		Folder string `json:"folder"`
		Seed   uint64 `json:"seed"`
		protocol
	}{folder, r.Seed, r.Protocol})
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, python, "-W", "ignore", "scripts/links/theirs.py")
	c.Stdin, c.Stderr = bytes.NewReader(asked), os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("run PyG: %w", err)
	}
	return json.Unmarshal(out, r)
}

var errBelow = errors.New("a mean is below its bar")

// table adds the means of all rows to a page. It returns an error if one is below its bar.
func (t *options) table(kept []run, p *result.Page) error {
	table := result.Table{Head: []string{"Graph", "Model", "By", "Seeds", "MRR", "Hits@1", "Hits@3", "Hits@10", "Bar", "", "Seconds a run", "Commits"}}
	var below error
	for _, r := range t.list {
		for _, by := range []string{ours, theirs} {
			some := of(kept, r, by)
			if len(some) == 0 {
				continue
			}
			column := func(value func(run) float64) string {
				var all []float64
				for _, one := range some {
					all = append(all, value(one))
				}
				mean, deviation := stats.Spread(all)
				if len(all) < 2 {
					return fmt.Sprintf("%.4f", mean)
				}
				return fmt.Sprintf("%.4f ± %.4f", mean, deviation)
			}
			mean, seconds := 0.0, 0.0
			var commits []string
			for _, one := range some {
				mean, seconds = mean+one.MRR/float64(len(some)), seconds+one.Seconds/float64(len(some))
				if !strings.Contains(strings.Join(commits, " "), one.Commit) {
					commits = append(commits, one.Commit)
				}
			}
			bar, verdict := "", ""
			if r.Bar > 0 && by == ours {
				if bar, verdict = fmt.Sprintf("%.2f", r.Bar), "holds"; mean < r.Bar {
					verdict, below = "BELOW", errBelow
				}
			}
			table.Add(r.Graph, r.Name, by, fmt.Sprintf("%d of %d", len(some), r.Seeds), column(func(one run) float64 { return one.MRR }),
				column(func(one run) float64 { return one.Hits[0] }), column(func(one run) float64 { return one.Hits[1] }), column(func(one run) float64 { return one.Hits[2] }),
				bar, verdict, fmt.Sprintf("%.0f", seconds), strings.Join(commits, " "))
		}
	}
	p.Table(table)
	for _, r := range t.list {
		p.Text(r.describe())
	}
	return below
}

// describe returns the protocol of a row in words.
func (r row) describe() string {
	model := "embeddings alone"
	if r.Layers > 0 {
		model = fmt.Sprintf("embeddings, %d layers of R-GCN", r.Layers)
	}
	optimizer := "Adam"
	if r.Decay > 0 {
		optimizer = fmt.Sprintf("AdamW with a decay of %g", r.Decay)
	}
	rate := fmt.Sprintf("lr %g", r.Rate)
	if r.Falls {
		rate += ", which falls to 0 along half a cosine"
	}
	return fmt.Sprintf("%s, %s: %s, all %d wide, DistMult; batches of %d, %d negatives each, loss %s, %s, %s, up to %d epochs; filtered MRR of validation every %d epochs, ended after %d without a better one.",
		r.Graph, r.Name, model, r.Width, r.Batch, r.Negatives, r.Loss, optimizer, rate, r.Epochs, r.Every, r.Patience)
}
