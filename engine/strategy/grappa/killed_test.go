package grappa_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A death is a kill -9 of one of the nodes that run a job: after so many questions between
// them in that run, 0: never. Who is killed leaves what its folder has at that moment.
type death struct {
	victim int // of three
	after  int64
	comes  bool // it takes part in the next run again
	late   bool // the others find out by themselves, and are not stopped at once
}

// killing trains a job of three nodes that are killed.
type killing struct {
	r       recipe.Recipe
	shards  []*graph.Shard
	one     []trained.Epoch // of the undisturbed job on one node
	layouts func(nodes int) []int
	options train.Options
	asked   int64 // questions of a run of three nodes that nothing happens to
}

// killings returns a job by settings of grappa; links: it learns pairs.
func killings(t *testing.T, links bool, settings ...string) *killing {
	t.Helper()
	k := &killing{shards: traintest.Communities(t, 300), r: traintest.Small("sage")}
	k.r.Epochs, k.r.Rate, k.r.Batch = 7, 0.2, 90 // which brings validation up and down
	k.r.Sharing = apart(settings...)
	if links {
		k.r = linking(k.r, settings...)
		k.r.Batch = 250
	}
	k.r.Sharing.Deterministic = true
	k.options = train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}
	_, k.one = traintest.MustRun(t, k.r, k.shards, train.Options{Threads: 1})
	return k
}

// left copies the checkpoints of a folder while a run writes there: each is whole or not there.
func left(t *testing.T, from, to string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(from, "*.safetensors"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just replaced
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(path)), b, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// verifier is the Verify of a run that finds its shards whole when it has to know.
func verifier() train.Verify {
	var known atomic.Bool
	return func(ctx context.Context, wait bool) error {
		if !wait && !known.Load() {
			return train.ErrUnverified
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		known.Store(true)
		return nil
	}
}

var errDead = errors.New("it was killed")

// run runs the job on some of the nodes, by their folders, until it is done or d happens, and returns
// the epochs that they have reported, and whether it is done.
func (k *killing) run(t *testing.T, nodes []int, folders []string, d death) (epochs []trained.Epoch, done bool) {
	t.Helper()
	m := traintest.NewMesh(len(nodes), k.layouts(len(nodes)))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	victim, at := slices.Index(nodes, d.victim), ""
	var asked atomic.Int64
	var once sync.Once
	var dead atomic.Bool
	m.Net.Trouble = func(_ context.Context, from, to int, _ peer.Query) error {
		if n := asked.Add(1); d.after > 0 && n >= d.after {
			once.Do(func() {
				at = t.TempDir()
				left(t, folders[d.victim], at)
				dead.Store(true)
				if !d.late {
					cancel(errDead)
				}
			})
		}
		if dead.Load() && (from == victim || to == victim) {
			return errDead
		}
		return nil
	}
	var mu sync.Mutex
	err := m.Each(func(node int) error {
		held, o := m.Of(node, k.shards, isolation(k.options))
		o.Dir, o.Verify = folders[nodes[node]], verifier()
		o.Report = func(e trained.Epoch) {
			if node == victim && dead.Load() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			epochs = append(epochs, e)
		}
		_, err := train.Run(ctx, k.r, held, o)
		if err != nil {
			cancel(err) // the plan gives the job to others
		}
		return err
	})
	if k.asked == 0 {
		k.asked = asked.Load()
	}
	if dead.Load() { // nothing that the victim wrote afterwards was ever there
		if err := errors.Join(os.RemoveAll(folders[d.victim]), os.Rename(at, folders[d.victim])); err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return epochs, err == nil
}

// suffer trains the job through all deaths, and to its end. It fails the test unless every epoch that
// a node reports is that of the undisturbed job.
func (k *killing) suffer(t *testing.T, name string, deaths ...death) {
	t.Helper()
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := []int{0, 1, 2}
	seen, done := map[int]bool{}, false
	for _, d := range append(deaths, death{}) {
		if done {
			break
		}
		var epochs []trained.Epoch
		epochs, done = k.run(t, nodes, folders, d)
		for _, e := range epochs {
			seen[e.Epoch] = true
			want := k.one[e.Epoch-1]
			if got, want := traintest.Learnt([]trained.Epoch{e}), traintest.Learnt(k.one[e.Epoch-1:e.Epoch]); got != want {
				t.Fatalf("%s, %+v: epoch %d on nodes %v is\n%s\nand undisturbed\n%s", name, deaths, e.Epoch, nodes, got, want)
			}
			if e.Super != want.Super || e.Seen != want.Seen {
				t.Fatalf("%s, %+v: epoch %d is of super-epoch %d with %g of edges seen, and undisturbed of %d with %g", name, deaths, e.Epoch, e.Super, e.Seen, want.Super, want.Seen)
			}
		}
		nodes = []int{0, 1, 2}
		if !d.comes {
			nodes = slices.DeleteFunc(nodes, func(n int) bool { return n == d.victim })
		}
	}
	if !done || len(seen) != len(k.one) {
		t.Fatalf("%s, %+v: %d epochs", name, deaths, len(seen))
	}
}

// killed are settings of jobs that are killed.
func killed() map[string][]string {
	return map[string][]string{
		"halo":    {"period=2", "groups=3"},
		"strict":  {"period=1", "loader=strict", "swept=1", "groups=3", "correction=self-normalised"},
		"sampled": {"period=2", "loader=halo-sampled", "cap=30", "groups=4"},
		"plateau": {"period=2", "switch=plateau", "loader=strict", "swept=1"},
		"phases":  {"period=2", "groups=5", "phases=2", "prefetch=off"},
		"links":   {"period=2", "groups=3"},
	}
}

// owners are who owns shards: in runs, one after another, and as frayed as after many moves.
func owners(shards int) map[string]func(nodes int) []int {
	of := func(owner func(shard, nodes int) int) func(nodes int) []int {
		return func(nodes int) (list []int) {
			for i := range shards {
				list = append(list, owner(i, nodes))
			}
			return list
		}
	}
	random := rand.New(rand.NewPCG(3, 1))
	return map[string]func(nodes int) []int{
		"runs":   of(func(i, nodes int) int { return i * nodes / shards }),
		"turns":  of(func(i, nodes int) int { return i % nodes }),
		"behind": of(func(i, nodes int) int { return (shards - 1 - i) * nodes / shards }),
		"frayed": of(func(i, nodes int) int {
			if i < nodes {
				return nodes - 1 - i // each has some
			}
			return random.IntN(nodes)
		}),
	}
}

// Whichever node is killed, and whenever: the epochs are those of the undisturbed job.
func TestAnyNodeMayBeKilledAtAnyMoment(t *testing.T) { killAny(t, 1, 1, 1) }

// killAny kills each node of each job at so many moments, and so many times two in a row, with some of
// the layouts.
func killAny(t *testing.T, layouts int, moments int64, pairs int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(moments)))
	kills := 0
	for i, name := range slices.Sorted(maps.Keys(killed())) {
		k := killings(t, name == "links", killed()[name]...)
		of := owners(len(k.shards))
		each := slices.Sorted(maps.Keys(of))
		for j := range layouts {
			layout := each[(i+j)%len(each)]
			k.layouts, k.asked = of[layout], 0
			name := name + ", " + layout
			k.suffer(t, name) // by which the questions are counted
			for i := range 3 * moments {
				// The moments are spread over the job, and differ between victims.
				d := death{victim: int(i % 3), after: 1 + i*k.asked/(3*moments) + random.Int64N(max(1, k.asked/(3*moments)))}
				d.comes, d.late = random.IntN(2) == 0, random.IntN(2) == 0
				k.suffer(t, name, d)
				kills++
			}
			for range pairs {
				first := death{victim: random.IntN(3), after: 1 + random.Int64N(k.asked*2/3), comes: random.IntN(2) == 0, late: random.IntN(2) == 0}
				second := death{victim: random.IntN(3), after: 1 + random.Int64N(k.asked/2), comes: true}
				if !first.comes && second.victim == first.victim {
					second.victim = (first.victim + 1) % 3
				}
				k.suffer(t, name, first, second)
				kills += 2
			}
		}
	}
	t.Logf("%d kills", kills)
}
