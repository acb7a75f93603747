package train

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// chosen asks for a pipeline whose nodes choose its stages and ways.
func chosen() strategy.Settings {
	return piping(strategy.Pipe, strategy.PipeSettings{Stages: strategy.Asked, Ways: strategy.Asked, Period: 3})
}

// What nodes choose is what is trained: they come to the weights of a job that was told as
// many ways. Each epoch says what was predicted of it, and why.
func TestPipelinesThatChoose(t *testing.T) {
	shards := communities(t, 500)
	r := fullGraph("gcnii", 4)
	r.Epochs, r.Sharing = 3, chosen()
	_, told := newMesh(4, uneven(len(shards), 4)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
	for node := range told {
		if learnt(told[node]) != learnt(told[0]) {
			t.Fatalf("node %d:\n%s\nand node 0\n%s", node, learnt(told[node]), learnt(told[0]))
		}
		for _, e := range told[node] {
			p := e.Predicted
			if p == nil || p.Stages*p.Ways > 4 || !(p.Seconds > 0) || p.Memory == 0 || !strings.Contains(e.Why, " an epoch (") || p.Seconds != told[0][0].Predicted.Seconds {
				t.Fatalf("node %d, epoch %d: %+v, %s", node, e.Epoch, p, e.Why)
			}
		}
	}
	p := told[0][0].Predicted
	r.Sharing.Pipe.Stages, r.Sharing.Pipe.Ways = p.Stages, p.Ways
	_, given := newMesh(4, uneven(len(shards), 4)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
	if learnt(given[0]) != learnt(told[0]) {
		t.Errorf("told %d stages of %d ways:\n%s\nand where they were chosen\n%s", p.Stages, p.Ways, learnt(given[0]), learnt(told[0]))
	}
	if e := given[0][0]; e.Why != "" || e.Predicted == nil || e.Predicted.Stages != p.Stages || e.Predicted.Ways != p.Ways {
		t.Errorf("%+v, %s", e.Predicted, e.Why)
	}
}

// A job that goes on keeps its ways, on however many nodes: so it comes to what it would
// have come to.
func TestChosenWaysAreKept(t *testing.T) {
	shards := communities(t, 400)
	r := fullGraph("gcnii", 3)
	r.Sharing, r.Epochs = chosen(), 5
	random, folders, told := rand.New(rand.NewPCG(6, 4)), map[int]string{}, map[int]Epoch{}
	for node := range 4 {
		folders[node] = t.TempDir()
	}
	ways := 0
	for runs, done := 0, false; !done; runs++ {
		nodes := []int{4, 2, 3}[runs%3]
		m := newMesh(nodes, uneven(len(shards), nodes))
		ctx := t.Context()
		if runs < 4 {
			ctx = cancelInEpochs(t, m, int64(nodes*nodes)*(20+random.Int64N(20)))
		}
		known := 0
		for epoch := range told {
			known = max(known, epoch)
		}
		_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond, Strategies: pipelines, Known: known}, func(node int) string {
			return folders[node]
		})
		if err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		for _, of := range epochs {
			for _, e := range of {
				told[e.Epoch] = e
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
	var all []Epoch
	for n := 1; n <= r.Epochs; n++ {
		all = append(all, told[n])
	}
	r.Sharing.Pipe.Ways = ways
	_, undisturbed := newMesh(2, uneven(len(shards), 2)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
	if learnt(all) != learnt(undisturbed[0]) {
		t.Errorf("with %d ways\n%s\nand undisturbed\n%s", ways, learnt(all), learnt(undisturbed[0]))
	}
}

// With --deterministic nothing is measured, and the weights are the same on any number of
// nodes.
func TestDeterministicPipelinesChooseWithoutMeasuring(t *testing.T) {
	shards := communities(t, 300)
	r := fullGraph("gcn", 3)
	r.Sharing, r.Epochs = chosen(), 2
	r.Sharing.Deterministic = true
	want := ""
	for _, nodes := range []int{1, 3, 5} {
		_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, Options{Threads: 1, Strategies: pipelines})
		if want == "" {
			want = learnt(told[0])
		}
		if got := learnt(told[0]); got != want || told[0][0].Predicted != nil {
			t.Errorf("%d nodes:\n%s\nand one node\n%s", nodes, got, want)
		}
	}
}

// What forward makes is kept for backward where memory has room, and made again where it
// has not, which is no reason to refuse a job, and changes no bit.
func TestPipelinesKeepWhatFits(t *testing.T) {
	shards := communities(t, 4000)
	r := fullGraph("gcnii", 8)
	r.Epochs, r.Model.Hidden = 2, 32
	taken := func(p strategy.PipeSettings, memory uint64) (bytes uint64, recomputes bool) {
		r.Sharing = piping(strategy.Pipe, p)
		l := started(t, r, shards, Options{Threads: 1, Memory: memory})
		return l.piped.bytes(), l.piped.worker.Recompute
	}
	keeps, _ := taken(strategy.PipeSettings{Keep: true}, 0)
	again, recomputes := taken(strategy.PipeSettings{Again: true}, 0)
	if !recomputes || again >= keeps {
		t.Fatalf("%d bytes where all is kept, and %d where it is made again", keeps, again)
	}
	if bytes, recomputes := taken(strategy.PipeSettings{}, 0); recomputes || bytes != keeps {
		t.Errorf("with all memory: %d bytes, made again: %v", bytes, recomputes)
	}
	// least is what a run needs at least, to a page.
	least := func(p strategy.PipeSettings) (enough uint64) {
		r.Sharing = piping(strategy.Pipe, p)
		few, enough := uint64(0), uint64(1<<30)
		for enough-few > 4096 {
			memory := (few + enough) / 2
			if _, err := Run(t.Context(), r, shards, Options{Threads: 1, Memory: memory}); err != nil {
				few = memory
			} else {
				enough = memory
			}
		}
		return enough
	}
	r.Epochs = 1
	if auto, again := least(strategy.PipeSettings{}), least(strategy.PipeSettings{Again: true}); auto != again {
		t.Errorf("a run needs %d bytes, and %d where all is made again", auto, again)
	}
	tight := least(strategy.PipeSettings{Keep: true}) - 8192
	r.Epochs = 2
	if bytes, recomputes := taken(strategy.PipeSettings{}, tight); !recomputes || bytes != again {
		t.Errorf("with %d bytes: %d, made again: %v", tight, bytes, recomputes)
	}
	var want string
	for _, memory := range []uint64{0, tight} {
		r.Sharing = piping(strategy.Pipe, strategy.PipeSettings{})
		_, told := mustRun(t, r, shards, Options{Threads: 1, Memory: memory})
		if want == "" {
			want = learnt(told)
		}
		if got := learnt(told); got != want {
			t.Errorf("with %d bytes:\n%s\nand with all\n%s", memory, got, want)
		}
	}
}
