package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/node/shape"
)

// This file compares loaders: what a PyTorch loop gets batches from, ours by the Python package,
// theirs by DistDGL. Loops train nothing. The protocol was fixed before anything was measured.

const (
	loaderNodes = 3
	loaderBatch = 342 * loaderNodes // seed vertices, over all nodes
	overLoader  = 0.5               // our loop's later epochs over DistDGL's: at least twice the batches a second
)

// Names of loops.
const (
	ourLoop   = "hopmesh's loader"
	ourBare   = "hopmesh's loader, no copies"
	loopMETIS = "DistDGL's loader, METIS"
	loopOwn   = "DistDGL's loader, our cut"
)

var loops = []side{
	{name: loopMETIS, framework: "distdgl", cut: "metis", loop: true},
	{name: loopOwn, framework: "distdgl", cut: "own", loop: true},
	{name: ourLoop, loop: true, copies: 1},
	{name: ourBare, loop: true},
}

// hops are what a batch has.
var hops = []model{{layers: 2, fanouts: []int{10, 10}}, {layers: 3, fanouts: []int{15, 10, 5}}}

// loaderCells is the list of loops.
func loaderCells() (list []cell) {
	at := usual
	at.nodes = loaderNodes
	for _, m := range hops {
		for _, s := range loops {
			list = append(list, cell{"loaders", at, m, s})
		}
	}
	return list
}

// loop runs a cell's loop beside each of our nodes.
func (m *mesh) loop(ctx context.Context, field *shape.Field, p python, c cell) (r run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	defer cancel()
	logs := filepath.Join(m.folder, "loops")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return r, err
	}
	at, err := filepath.Abs(filepath.Dir(p.script))
	if err != nil {
		return r, err
	}
	// The mesh remembers what an earlier run was.
	key := "loop-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	err = m.with(ctx, field, func(crew *shape.Crew) error {
		return follow(ctx, c.nodes, logs, &r, func(all *ranks) ([]int, func() []int, error) {
			var daemons []int
			for i, node := range crew.Nodes {
				daemons = append(daemons, node.PID())
				cmd := field.Command(ctx, i, p.program, append([]string{
					"-m", "hopmesh.run", "--addr", node.Addr, "--run", key, filepath.Join(at, "loop.py"),
				}, c.loopArguments()...)...)
				cmd.Env = append(os.Environ(), "PYTHONWARNINGS=ignore", "OMP_NUM_THREADS=1", "PYTHONPATH="+filepath.Join(at, "..", "..", "python"))
				if err := all.start(cmd, i, logs); err != nil {
					return nil, nil, err
				}
			}
			return daemons, func() []int { return append(groups(all.pids), daemons...) }, nil
		})
	})
	return r, err
}

// loopArguments are those of our loop.
func (c cell) loopArguments() []string {
	return []string{
		"--dataset", dataset(min(c.side.copies, c.nodes-1)), "--fanouts", comma(c.fanouts),
		"--batch", strconv.Itoa(c.batch()), "--epochs", strconv.Itoa(c.epochs), "--seed", strconv.Itoa(seed),
	}
}

// loaderBars compares our loops with the faster of DistDGL's, in the later epochs.
func (a all) loaderBars() []bar {
	var ratios, bare []float64
	for _, f := range a {
		best := 0.0
		for _, name := range []string{loopMETIS, loopOwn} {
			if theirs, ok := a.of(f.cell, name); ok && (best == 0 || theirs.later < best) {
				best = theirs.later
			}
		}
		switch {
		case best == 0:
		case f.side.name == ourLoop:
			ratios = append(ratios, f.later/best)
		case f.side.name == ourBare:
			bare = append(bare, f.later/best)
		}
	}
	return []bar{
		{"hopmesh's loader over DistDGL's, later epochs, worst case", worst(ratios), len(ratios), len(hops), overLoader},
		{"the same without copies of shards", worst(bare), len(bare), len(hops), overLoader},
	}
}

// loaderPage is the page of loops.
func (r report) loaderPage() *result.Page {
	p := &result.Page{Title: "The Python loader beside DistDGL's", Command: result.Command("go run ./scripts/distributed")}
	found := r.found(p)
	bars := result.Table{Title: "Bars", Head: []string{"Compared", "Cases", "Measured", "Bar", ""}}
	for _, b := range found.loaderBars() {
		bars.Add(b.line()...)
	}
	p.Table(bars)
	t := result.Table{Title: "Loops", Head: []string{"Hops", "By", "Runs", "First epoch", "Later epochs", "Sent", "Processor", "Memory"}}
	for _, c := range r.cells {
		if f, ok := found.of(c, c.side.name); ok {
			t.Add(comma(c.fanouts), c.side.name, f.runs, fmt.Sprintf("%.2f s", f.first), fmt.Sprintf("%.2f s", f.later),
				fmt.Sprintf("%.1f MB", f.bytes/1e6), fmt.Sprintf("%.2f s", f.processor), fmt.Sprintf("%.2f GB", f.memory/1e9))
		} else if why := r.kept.failed(c, r.takes); why != "" {
			t.Add(comma(c.fanouts), c.side.name, 0, "failed: "+why, "", "", "", "")
		}
	}
	p.Table(t)
	p.Text("## Protocol")
	for _, w := range loaderWords() {
		p.Text(w)
	}
	return p
}

// loaderWords is the protocol for whoever reads the page.
func loaderWords() []string {
	s := loaderCells()[0].setup
	return []string{
		"It was fixed before anything was measured.",
		fmt.Sprintf("The graph is `dataset generate --preset products --scale 0.06 --seed 1`, on %d nodes. Each is a network namespace with a link of %s and %g of a core, "+
			"and has one process with a Python loop. The loop asks for batches of %d seed vertices over all nodes and reads one number of each; it computes nothing. %d epochs. "+
			"Each run starts its own processes, and the sides take turns.", s.nodes, s.bound(), s.cores, loaderBatch, epochs),
		"DistDGL is DGL 2.1.0 with PyTorch 2.2.1: a server and a loop a node, no separate samplers, one thread. Its loop reads the batch's features and labels from the distributed tensors, as its examples do. " +
			"Its seed vertices are dealt by `node_split`; its graph is cut by METIS, or as our shards lie. The faster one counts.",
		"hopmesh's loader has the defaults: PyTorch tensors in memory shared with the daemon, rows of other nodes kept while memory has room, and shards with one copy beside their owner's, unless a row says otherwise.",
		"Times are those of the slowest node, between points where all have met. *Later epochs* is the median of the second to the last epoch over all repetitions.",
	}
}
