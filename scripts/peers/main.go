// Command peers trains the same models on the same shard files, with the same number of
// threads, by hopmesh and by PyG and DGL on this machine's CPU. It prints hopmesh's time
// relative to the fastest of the others. It is for developers; nothing in hopmesh needs
// it.
//
// It needs a Python with scripts/peers/requirements.txt, which `make bench-peers` sets
// up, and takes some minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

const (
	// rounds is how often each side is timed, in turn. The medians are compared.
	rounds = 3
	// limit is how long a framework may train in a round. Slow ones do fewer steps.
	limit = 30 * time.Second
)

func main() {
	program := flag.String("python", ".tools/peers/bin/python", "the Python that has PyG and DGL")
	folder := flag.String("graphs", "engine/graph/read/testdata", "the folder of real graphs")
	only := flag.String("only", "", "a part of the name of the graphs to train on")
	typed := flag.Bool("typed", false, "compare an R-GCN on a typed graph with DGL's instead")
	scale := flag.Float64("scale", typedScale, "the size of the typed graph, as a share of ogbn-mag's")
	out := flag.String("out", "", "write the result into a Markdown file too, with the machine and the date")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return compare(ctx, *program, *folder, *only, *out) }
	if *typed {
		run = func() error { return compareTyped(ctx, *program, *scale, *out) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, program, folder, only, out string) (err error) {
	if err := result.Writable(out); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hopmesh-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	threads := runtime.GOMAXPROCS(0)
	p, err := newPython(ctx, program, "scripts/peers/peers.py", threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	page := &result.Page{Title: "Beside PyG and DGL", Command: result.Command("go run ./scripts/peers")}
	how := fmt.Sprintf("training alone, %d threads, medians of %d rounds in turn", threads, rounds)
	page.Note(how)
	fmt.Printf("%s\n\n", how)
	for i, b := range beds(folder) {
		if !strings.Contains(b.name, only) {
			continue
		}
		g, err := b.cut(ctx, filepath.Join(scratch, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if _, err := p.ask(map[string]any{"do": "open", "folder": g.Folder, "row": b.row}); err != nil {
			return errors.Join(fmt.Errorf("open %s in Python: %w", b.name, err), g.Close())
		}
		for _, t := range b.cases {
			if err := compareOne(ctx, p, b, t, g, threads, page); err != nil {
				return errors.Join(err, g.Close())
			}
		}
		if err := errors.Join(g.Close(), os.RemoveAll(g.Folder)); err != nil {
			return err
		}
	}
	return page.Write(out)
}

func (b bed) cut(ctx context.Context, folder string) (*graphs.Graph, error) {
	fmt.Fprintf(os.Stderr, "cutting %s\n", b.name)
	switch {
	case b.made.Preset != "":
		return graphs.Generate(ctx, b.made, b.undirected, folder)
	case b.file != "":
		return graphs.Read(ctx, b.file, folder)
	}
	dir, err := os.MkdirTemp("", "hopmesh-cora-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := cora.Write(dir)
	if err != nil {
		return nil, err
	}
	return graphs.Read(ctx, file, folder)
}

// side is one way to train, and its times.
type side struct {
	name    string
	train   func() (seconds []float64, test float64, err error) // one epoch each
	seconds []float64
	test    float64
	err     error
}

func compareOne(ctx context.Context, p *python, b bed, t task, g *graphs.Graph, threads int, page *result.Page) error {
	fmt.Fprintf(os.Stderr, "%s: %s hidden %d, load %s\n", b.name, t.model, t.hidden, load())
	sides := []*side{{name: "hopmesh", train: func() ([]float64, float64, error) { return ours(ctx, t, b.row, false, g, threads) }}}
	if t.bf16 {
		sides = append(sides, &side{name: "hopmesh, BF16 products", train: func() ([]float64, float64, error) { return ours(ctx, t, b.row, true, g, threads) }})
	}
	own := len(sides)
	for _, who := range frameworks {
		if who == "pyg-csr" && t.batch > 0 {
			continue // this loader supports only full-graph steps
		}
		s := &side{name: who, err: p.build(who, t)}
		s.train = func() ([]float64, float64, error) { return theirs(p, who, t) }
		sides = append(sides, s)
	}
	for range rounds {
		for _, s := range sides {
			if s.err != nil {
				continue
			}
			var seconds []float64
			seconds, s.test, s.err = s.train()
			s.seconds = append(s.seconds, seconds...)
		}
	}
	table := report(b, t, sides, own)
	page.Table(table)
	if err := table.Text(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	for _, s := range sides[:own] {
		if s.err != nil {
			return fmt.Errorf("train %s with %s: %w", b.name, s.name, s.err)
		}
	}
	return ctx.Err()
}

// report makes the table of one case. The first sides are hopmesh's.
func report(b bed, t task, sides []*side, own int) result.Table {
	fastest := 0.0
	for _, s := range sides[own:] {
		if m := stats.Median(s.seconds); s.err == nil && (fastest == 0 || m < fastest) {
			fastest = m
		}
	}
	name := t.name
	if name == "" {
		name = fmt.Sprintf("SAGE %v, batch %d, hidden %d", t.fanouts, t.batch, t.hidden)
	}
	table := result.Table{
		Title: fmt.Sprintf("%s, %s (load at the end: %s)", b.name, name, load()),
		Head:  []string{"By", "A step", "Test accuracy", "Over the fastest other", "Bar", ""},
	}
	for i, s := range sides {
		if s.err != nil {
			table.Add(s.name, s.err, "", "", "", "")
			continue
		}
		test, over, limit, verdict := "", "", "", ""
		if t.score {
			test = fmt.Sprintf("%.3f", s.test)
		}
		bar := t.bar
		if i == 1 && own == 2 {
			bar = t.bar16
		}
		if i < own && fastest > 0 {
			ratio := stats.Median(s.seconds) / fastest
			over, limit, verdict = fmt.Sprintf("%.2fx", ratio), fmt.Sprintf("at most %.2fx", bar), "holds"
			if ratio > bar {
				verdict = "FALLS SHORT"
			}
		}
		table.Add(s.name, fmt.Sprintf("%.2f ms", stats.Median(s.seconds)*1e3), test, over, limit, verdict)
	}
	return table
}

// theirs returns the seconds of each step of a framework.
func theirs(p *python, who string, t task) ([]float64, float64, error) {
	steps := 0
	if t.batch > 0 {
		steps = t.steps
	}
	a, err := p.ask(map[string]any{"do": "train", "who": who, "epochs": t.epochs, "steps": steps, "limit": limit.Seconds()})
	if err != nil {
		return nil, 0, err
	}
	for i := range a.Seconds {
		a.Seconds[i] /= float64(a.Steps[i])
	}
	if !t.score {
		return a.Seconds, 0, nil
	}
	score, err := p.ask(map[string]any{"do": "score", "who": who})
	return a.Seconds, score.Test, err
}

// ours trains by hopmesh, from the start each time.
func ours(ctx context.Context, t task, row, bf16 bool, g *graphs.Graph, threads int) ([]float64, float64, error) {
	var seconds []float64
	epochs := t.epochs
	if t.batch == 0 {
		epochs *= rounds // as many as the others have done by their last round
	}
	result, err := train.Run(ctx, t.recipe(row, bf16, epochs), g.Shards, train.Options{Strategies: strategies.All,
		Threads: threads, Report: func(e trained.Epoch) { seconds = append(seconds, e.Seconds/float64(e.Steps)) },
	})
	if err != nil {
		return nil, 0, err
	}
	test := 0.0
	if result.Last.Eval != nil {
		test = result.Last.Scores.Test.Accuracy
	}
	return seconds, test, nil
}

// load describes the load average of the last minute. Other programs slow down all sides,
// but OpenMP the most, since it waits for its slowest thread. Only ratios from an idle
// machine count.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
