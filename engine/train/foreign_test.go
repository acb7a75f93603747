package train_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

var errBus = errors.New("it fell off the bus")

// What is learnt on a device with a memory of its own that computes as the processor does
// is what the processor learns, to the bit.
func TestForeignDevicesLearnTheSame(t *testing.T) {
	dense, sparse, typed := traintest.Communities(t, 1500), traintest.CoraShards(t), traintest.Cut(t, enginetest.Typed(bothWays...), 4)
	for name, c := range map[string]struct {
		shards []*graph.Shard
		nodes  int
		of     func(r *recipe.Recipe)
	}{
		"sparse":        {sparse, 1, func(r *recipe.Recipe) { r.Model.InputDropout, r.Features = 0.3, "row" }},
		"sparse, all":   {sparse, 1, func(r *recipe.Recipe) { r.Batch, r.Fanouts = 0, nil }},
		"dense":         {dense, 1, func(r *recipe.Recipe) { r.Model.InputDropout = 0.3 }},
		"dense, all":    {dense, 1, func(r *recipe.Recipe) { r.Batch, r.Fanouts = 0, nil }},
		"gat":           {dense, 1, func(r *recipe.Recipe) { r.Model = traintest.Small("gat").Model }},
		"hgt":           {typed, 1, func(r *recipe.Recipe) { r.Model = traintest.Small("hgt").Model; tell(r, 4) }},
		"rgcn":          {typed, 1, func(r *recipe.Recipe) { r.Model = traintest.Small("rgcn").Model; tell(r, 4) }},
		"hetero":        {typed, 1, func(r *recipe.Recipe) { r.Model = traintest.Small("hetero:sage").Model; tell(r, 4) }},
		"hetero, gcn":   {typed, 1, func(r *recipe.Recipe) { r.Model = traintest.Small("hetero:gcn").Model; tell(r, 4) }},
		"hetero, gat":   {typed, 2, func(r *recipe.Recipe) { r.Model = traintest.Small("hetero:gat").Model; tell(r, 4) }},
		"bf16":          {dense, 1, func(r *recipe.Recipe) { r.BF16 = true }},
		"deterministic": {dense, 1, func(r *recipe.Recipe) { r.Sharing.Deterministic = true }},
		"sweep":         {dense, 1, func(r *recipe.Recipe) { *r = traintest.Swept(*r, "lr=0.01", "hidden=8", "dropout=0.2") }},
		"p3 is not":     {dense, 2, func(r *recipe.Recipe) { r.Sharing.Strategy = "p3" }},
		"updating":      {dense, 2, func(r *recipe.Recipe) { r.Sharing = traintest.Updating("2", 3) }},
		"swept":         {sparse, 2, func(r *recipe.Recipe) { *r = traintest.Swept(*r, "lr=0.01", "lr=0.1") }},
	} {
		t.Run(name, func(t *testing.T) { sameAbroad(t, c.shards, c.nodes, c.of) })
	}
	for name, sharing := range traintest.Ways() {
		if name == "tuned" {
			continue // which goes by clocks
		}
		t.Run(name, func(t *testing.T) { sameAbroad(t, dense, 3, func(r *recipe.Recipe) { r.Sharing = sharing }) })
		t.Run(name+", sparse", func(t *testing.T) { sameAbroad(t, sparse, 2, func(r *recipe.Recipe) { r.Sharing = sharing }) })
	}
}

func sameAbroad(t *testing.T, shards []*graph.Shard, nodes int, of func(r *recipe.Recipe)) {
	r := traintest.Small("sage")
	r.Epochs = 2
	if nodes > 1 {
		r.Sharing.Strategy = "centric"
	}
	of(&r)
	run := func(o train.Options) []trained.Epoch {
		if nodes == 1 {
			_, reports := traintest.MustRun(t, r, shards, o)
			return reports
		}
		_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, traintest.Columnwise(o))
		return reports[0]
	}
	here, there := traintest.Learnt(run(train.Options{Strategies: strategies.All, Threads: 2})), traintest.Learnt(run(traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2}, nil)))
	if here != there {
		t.Errorf("abroad:\n%s\nand here\n%s", there, here)
	}
}

// Evaluation in parts, with files between layers, sees the same numbers.
func TestForeignDevicesEvaluateInParts(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 6144), "sparse": traintest.CoraShards(t)} {
		for _, nodes := range []int{1, 3} {
			r := traintest.Small("sage")
			r.Epochs, r.Model.Layers, r.Fanouts, r.Sharing.Strategy = 1, 3, []int{2, 2, 2}, "centric"
			if nodes == 1 {
				r.Sharing.Strategy = ""
			}
			scores := func(o train.Options, memory uint64) string {
				o.Dir = t.TempDir()
				all := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Start(t, r, shards, o)
				for _, tr := range all {
					if memory > 0 {
						tr.Run.Infer.Limit(memory)
					}
				}
				return fmt.Sprintf("%+v", scoresOf(traintest.NewMesh(nodes, nil).Evaluated(t, all, 1)))
			}
			want := scores(train.Options{Strategies: strategies.All, Threads: 2}, 0)
			for _, memory := range []uint64{0, 1 << 20, 1} {
				if got := scores(traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2}, nil), memory); got != want {
					t.Errorf("%s on %d nodes with %d bytes: %s, and the processor has %s", name, nodes, memory, got, want)
				}
			}
		}
	}
}

func scoresOf(all []*evaluate.Result) (s []evaluate.Scores) {
	for _, e := range all {
		s = append(s, e.Train, e.Val, e.Test)
	}
	return s
}

func TestForeignDevicesPredictTheSame(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 1500), "sparse": traintest.CoraShards(t)} {
		dir := checkpointed(t, traintest.Short("sage"), shards)
		want, _ := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All, Threads: 2}, trained.PredictOptions{})
		got, _ := traintest.Predicted(t, dir, shards, traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2}, nil), trained.PredictOptions{})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v abroad, and %v", name, got[:4], want[:4])
		}
	}
}

// A run whose device fails, at whatever operation, ends with a sentence that says so and
// leaves the checkpoint of before; the processor goes on from that to the same end.
func TestADeviceThatFails(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs = 3
	_, reports := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	want := reports[2].Hash
	var counted *foreign.Device
	traintest.MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 1}, func(d *foreign.Device) { counted = d }))
	operations := counted.Operations()
	where := map[string]bool{}
	for at := 1; at < operations; at += operations/40 + 1 {
		o := train.Options{Strategies: strategies.All, Threads: 1, Dir: t.TempDir(), Dataset: "d", Resume: true, Interval: 1}
		var device *foreign.Device
		_, err := train.Run(t.Context(), r, shards, traintest.Abroad(o, func(d *foreign.Device) { device = d; d.FailAt(at, errBus) }))
		broken, is := errors.AsType[*slot.Broken](err)
		if !is || !errors.Is(err, errBus) || !strings.Contains(err.Error(), "the device foreign cpu") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("operation %d of %d fails: %v", at, operations, err)
		}
		if late := device.Operations() - at; late > operations/6 {
			t.Errorf("after operation %d of %d failed, %d more were asked for", at, operations, late)
		}
		where[fmt.Sprint("in an epoch ", broken.Epoch > 0, ", in a step ", broken.Step > 0)] = true
		reports := []trained.Epoch(nil)
		o.Report = func(e trained.Epoch) { reports = append(reports, e) }
		if _, err := train.Run(t.Context(), r, shards, o); err != nil || reports[len(reports)-1].Hash != want {
			t.Fatalf("after operation %d of %d failed, the processor: %v", at, operations, err)
		}
	}
	if len(where) != 3 {
		t.Errorf("it failed only %v", slices.Collect(maps.Keys(where)))
	}
}

// What doesn't fit into a device's memory is said with both sizes, before any is taken.
func TestADeviceThatIsTooSmall(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	_, err := train.Run(t.Context(), traintest.Small("sage"), shards, traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 1}, func(d *foreign.Device) { d.Limit(2<<20 + 1<<18) }))
	broken, is := errors.AsType[*slot.Broken](err)
	if !is || broken.Epoch != 0 || !strings.Contains(err.Error(), "it needs ") || !strings.Contains(err.Error(), "of the device's memory, which has 0.2 MiB free of 2.2 MiB") {
		t.Errorf("got %v", err)
	}
	if _, err := train.Run(t.Context(), traintest.Small("sage"), shards, traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 1}, func(d *foreign.Device) { d.Limit(1 << 10) })); !errors.Is(err, foreign.ErrFull) {
		t.Errorf("got %v", err)
	}
	_, err = train.Run(t.Context(), traintest.Small("sage"), shards, train.Options{Strategies: strategies.All, Device: func(int) (tensor.Device, error) { return nil, errBus }})
	if _, is := errors.AsType[*slot.Broken](err); !is || !errors.Is(err, errBus) {
		t.Errorf("got %v", err)
	}
}

// Devices of two kinds share a job, unless it is to have the same bits everywhere.
func TestMixedDevices(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, deterministic := range []bool{false, true} {
		r := traintest.Small("sage")
		r.Epochs = 2
		r.Sharing = strategy.Settings{Strategy: "leap", Deterministic: deterministic}
		m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		var notes []string
		err := m.Together(t, func(ctx context.Context, node int) error {
			held, o := m.Of(node, shards, train.Options{Threads: 1})
			if node == 1 {
				o = traintest.Abroad(o, nil)
				o.Announce = func(f train.Forecast) { notes = f.Notes }
			}
			_, err := train.Run(ctx, r, held, o)
			return err
		})
		switch {
		case deterministic && (err == nil || !train.Together(err) || !strings.Contains(err.Error(), "node n0 computes on its processor and node n1 on a GPU")):
			t.Errorf("got %v", err)
		case !deterministic && (err != nil || len(notes) == 0 || !strings.Contains(notes[0], "differs in the last digits")):
			t.Errorf("got %v with the notes %q", err, notes)
		}
	}
}
