//go:build long

package evaluate

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/task"
)

// A cell is an evaluation in a process of its own, whose memory is measured.
type cell struct {
	Model, Metric string
	Nodes         int
	Shards        string // folder
	Count         int
	Share         float64 // of what the whole takes; 0: the least
	Dir           string
}

// outcome is what a cell's process says, in bytes.
type outcome struct{ May, Forecast, Taken uint64 }

// cellVariable has a process of the test run a cell.
const cellVariable = "HOPMESH_TEST_EVALUATION"

func specOf(model string) nn.Spec {
	name, wide := strings.CutSuffix(model, "-wide")
	s := nn.Defaults("sage")
	if name == "jump" {
		s.Head, s.Jump = nn.HeadLinear, nn.JumpCat
	} else {
		s = nn.Defaults(name)
	}
	s.Layers, s.Hidden = 3, 32
	if wide {
		s.Hidden = 128
	}
	return s
}

func (c *cell) open(t *testing.T, shards []*graph.Shard) (all []*member, m *mesh) {
	t.Helper()
	of := setup{spec: specOf(c.Model), metric: c.Metric, dir: c.Dir}
	m = newMesh(c.Nodes, nil)
	if c.Nodes == 1 {
		return []*member{of.alone(t, shards)}, m
	}
	of.topology = "sharded"
	for i := range shards {
		m.owners = append(m.owners, i*c.Nodes/len(shards))
	}
	return m.start(t, of, shards), m
}

// TestMeasuredEvaluation is the process of a cell.
func TestMeasuredEvaluation(t *testing.T) {
	text := os.Getenv(cellVariable)
	if text == "" {
		return // it is run by TestEvaluationTakesWhatIsForecast
	}
	var c cell
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	var shards []*graph.Shard
	for i := range c.Count {
		s, err := graph.OpenShard(filepath.Join(c.Shards, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, s)
	}
	// What the program takes when it evaluates for the first time is not measured.
	few, m := c.open(t, enginetest.Communities(t, 1000))
	evaluate := func(all []*member, m *mesh, epoch int) {
		err := m.each(func(node int) error {
			all[node].epoch = epoch
			_, err := all[node].evaluate(t.Context())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	evaluate(few, m, 1)
	for _, f := range few {
		f.Close()
	}
	all, m := c.open(t, shards)
	runtime.GC()
	debug.FreeOSMemory()
	peak := budget.WatchPeak(time.Millisecond)
	var o outcome
	for _, of := range all {
		least := of.Least()
		may := max(least, uint64(c.Share*float64(of.wholeBytes(of.all()))))
		of.Limit(may)
		o.May += may
		o.Forecast += max(least, of.Takes(may))
	}
	for epoch := range 2 {
		evaluate(all, m, epoch+1)
	}
	o.Taken = peak.Stop()
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		t.Fatal(err)
	}
}

// measured runs a cell.
func (c cell) measured(t *testing.T) (o outcome) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMeasuredEvaluation$")
	cmd.Env = append(os.Environ(), cellVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = json.NewDecoder(strings.NewReader(string(out))).Decode(&o)
	}
	if err != nil {
		t.Fatalf("%+v: %v\n%s", c, err, out)
	}
	return o
}

// Evaluation takes what is forecast, and no more than it may, for each model and from all
// that it could use down to the least. The table is logged.
func TestEvaluationTakesWhatIsForecast(t *testing.T) {
	// What threads keep for products and attention, and the runtime rounds up; a job counts
	// it in budget.Program.
	const program = 12 << 20
	dir, count := filepath.Join(t.TempDir(), "shards"), 8
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 200_000, Edges: 4_000_000, Features: 100, Classes: 16, Communities: 64, Inside: 0.8, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: count, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []cell{
		{Model: "gcn"}, {Model: "gcn", Metric: task.ROCAUC}, {Model: "gcn-wide"}, {Model: "sage"}, {Model: "sage-wide"}, {Model: "gat"},
		{Model: "gin"}, {Model: "gcnii"}, {Model: "resgcn"}, {Model: "jump"}, {Model: "gcn", Nodes: 3}, {Model: "sage-wide", Nodes: 3, Metric: task.ROCAUC},
	} {
		if c.Metric == "" {
			c.Metric = task.Accuracy
		}
		c.Nodes, c.Shards, c.Count, c.Dir = max(1, c.Nodes), dir, count, t.TempDir()
		for _, c.Share = range []float64{1, 0.999, 0.5, 0.25, 0} {
			o := c.measured(t)
			t.Logf("%-9s %-8s %d nodes, %3.0f %% of the whole: may take %6.1f MiB, forecast %6.1f, taken %6.1f, ratio %.2f", c.Model, c.Metric, c.Nodes, 100*c.Share,
				float64(o.May)/(1<<20), float64(o.Forecast)/(1<<20), float64(o.Taken)/(1<<20), float64(o.Forecast)/float64(o.Taken))
			extra := uint64(c.Nodes * program)
			if least := o.Taken * 85 / 100; o.Forecast+extra < least || o.Forecast > o.Taken*130/100 || o.Taken > o.May*115/100+extra {
				t.Errorf("%+v: %+v", c, o)
			}
		}
	}
	left, err := os.ReadDir(dir)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil || len(left) != count {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}
