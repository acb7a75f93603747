package pipe_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// chosen asks for a pipeline whose nodes choose its stages and ways.
func chosen() strategy.Settings { return staging("auto", "auto") }

// staging asks for one with so many.
func staging(stages, ways any) strategy.Settings {
	return strategy.Given(pipe.Name, fmt.Sprint("pipe.stages=", stages), fmt.Sprint("pipe.ways=", ways), "pipe.period=3")
}

// What nodes choose is what is trained: they come to the weights of a job that was told as
// many ways. Each epoch says what was predicted of it, and why.
func TestPipelinesThatChoose(t *testing.T) {
	shards := traintest.Communities(t, 500)
	r := traintest.FullGraph("gcnii", 4)
	r.Epochs, r.Sharing = 3, chosen()
	_, reports := traintest.NewMesh(4, traintest.Uneven(len(shards), 4)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
	for node := range reports {
		if traintest.Learnt(reports[node]) != traintest.Learnt(reports[0]) {
			t.Fatalf("node %d:\n%s\nand node 0\n%s", node, traintest.Learnt(reports[node]), traintest.Learnt(reports[0]))
		}
		for _, e := range reports[node] {
			p := e.Predicted
			if p == nil || p.Stages*p.Ways > 4 || !(p.Seconds > 0) || !strings.Contains(e.Why, " was fastest when tried: ") || p.Seconds != reports[0][0].Predicted.Seconds {
				t.Fatalf("node %d, epoch %d: %+v, %s", node, e.Epoch, p, e.Why)
			}
		}
	}
	p := reports[0][0].Predicted
	r.Sharing = staging(p.Stages, p.Ways)
	_, given := traintest.NewMesh(4, traintest.Uneven(len(shards), 4)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
	if traintest.Learnt(given[0]) != traintest.Learnt(reports[0]) {
		t.Errorf("told %d stages of %d ways:\n%s\nand where they were chosen\n%s", p.Stages, p.Ways, traintest.Learnt(given[0]), traintest.Learnt(reports[0]))
	}
	if e := given[0][0]; e.Why != "" || e.Predicted == nil || e.Predicted.Stages != p.Stages || e.Predicted.Ways != p.Ways {
		t.Errorf("%+v, %s", e.Predicted, e.Why)
	}
}

// Nodes that have no features of their own take part in trials, too, whether features are
// sparse or dense and whether a first layer reads them along edges.
func TestTrialsWithoutOwnFeatures(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 400), "sparse": traintest.CoraShards(t)} {
		for _, model := range []string{"gcn", "sage"} {
			r := traintest.FullGraph(model, 3)
			r.Epochs, r.Sharing = 1, strategy.Given(pipe.GraphName, "pipe.ways=auto")
			owners := make([]int, len(shards))
			for i := range owners {
				owners[i] = 2
			}
			_, all := traintest.NewMesh(3, owners).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
			e := all[0][0]
			if e.Predicted == nil || !strings.Contains(e.Why, " fastest when tried") || e.Predicted.Stages != 1 {
				t.Fatalf("%s, %s: %+v, %s", name, model, e.Predicted, e.Why)
			}
			r.Sharing = strategy.Given(pipe.GraphName, fmt.Sprint("pipe.ways=", e.Predicted.Ways))
			if _, given := traintest.NewMesh(3, owners).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines}); traintest.Learnt(given[0]) != traintest.Learnt(all[0]) {
				t.Errorf("%s, %s with %d ways:\n%s\nand where they were chosen\n%s", name, model, e.Predicted.Ways, traintest.Learnt(given[0]), traintest.Learnt(all[0]))
			}
		}
	}
}

// A job that goes on keeps its ways, on however many nodes: so it comes to what it would
// have come to.
func TestChosenWaysAreKept(t *testing.T) {
	shards := traintest.Communities(t, 400)
	r := traintest.FullGraph("gcnii", 3)
	r.Sharing, r.Epochs = chosen(), 5
	random, folders, reports := rand.New(rand.NewPCG(6, 4)), map[int]string{}, map[int]trained.Epoch{}
	for node := range 4 {
		folders[node] = t.TempDir()
	}
	ways := 0
	for runs, done := 0, false; !done; runs++ {
		nodes := []int{4, 2, 3}[runs%3]
		m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
		ctx := t.Context()
		if runs < 4 {
			ctx = traintest.CancelInEpochs(t, m, int64(nodes*nodes)*(20+random.Int64N(20)))
		}
		known := 0
		for epoch := range reports {
			known = max(known, epoch)
		}
		_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond, Strategies: traintest.Pipelines, Known: known}, func(node int) string {
			return folders[node]
		})
		if err != nil && !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		for _, of := range epochs {
			for _, e := range of {
				reports[e.Epoch] = e
				if ways == 0 {
					ways = e.Predicted.Ways
				}
				if e.Predicted.Ways != ways {
					t.Fatalf("epoch %d has %d ways, and the first had %d", e.Epoch, e.Predicted.Ways, ways)
				}
			}
		}
		done = err == nil
	}
	var all []trained.Epoch
	for n := 1; n <= r.Epochs; n++ {
		all = append(all, reports[n])
	}
	r.Sharing = staging("auto", ways)
	_, undisturbed := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
	if traintest.Learnt(all) != traintest.Learnt(undisturbed[0]) {
		t.Errorf("with %d ways\n%s\nand undisturbed\n%s", ways, traintest.Learnt(all), traintest.Learnt(undisturbed[0]))
	}
}

// With --deterministic nothing is measured, and the weights are the same on any number of
// nodes.
func TestDeterministicPipelinesChooseWithoutMeasuring(t *testing.T) {
	shards := traintest.Communities(t, 300)
	r := traintest.FullGraph("gcn", 3)
	r.Sharing, r.Epochs = chosen(), 2
	r.Sharing.Deterministic = true
	want := ""
	for _, nodes := range []int{1, 3, 5} {
		_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
		if want == "" {
			want = traintest.Learnt(reports[0])
		}
		if got := traintest.Learnt(reports[0]); got != want || reports[0][0].Predicted != nil {
			t.Errorf("%d nodes:\n%s\nand one node\n%s", nodes, got, want)
		}
	}
}

// Nodes that lack the memory for every arrangement time nothing: the job is refused before its
// layers take any.
func TestNothingIsTimedThatFitsNobody(t *testing.T) {
	shards := traintest.Communities(t, 500)
	for memory, timed := range map[uint64]bool{0: true, budget.Program + 1<<20: false} {
		r := traintest.FullGraph("gcn", 3)
		r.Epochs, r.Sharing = 1, chosen()
		var log lines
		_, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, train.Options{
			Threads: 1, Strategies: traintest.Pipelines, Memory: memory, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}, nil)
		if refused := err != nil; refused == timed || refused && !strings.Contains(err.Error(), "of memory and has") {
			t.Errorf("with %d bytes: %v", memory, err)
		}
		if all := log.String(); strings.Count(all, "timed=") != 3 || strings.Count(all, fmt.Sprint("timed=", timed)) != 3 {
			t.Errorf("with %d bytes:\n%s", memory, all)
		}
	}
}

// lines are what several nodes log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
