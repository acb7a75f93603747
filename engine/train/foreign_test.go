package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

var errBus = errors.New("it fell off the bus")

// abroad is Options on a device whose memory is not the host's. made, if not nil, sees it.
func abroad(o Options, made func(d *foreign.Device)) Options {
	o.Device = func(threads int) (tensor.Device, error) {
		d := foreign.New(threads)
		if made != nil {
			made(d)
		}
		return d, nil
	}
	return o
}

// What is learnt on a device with a memory of its own that computes as the processor does
// is what the processor learns, to the bit.
func TestForeignDevicesLearnTheSame(t *testing.T) {
	dense, sparse := communities(t, 1500), coraShards(t)
	for name, c := range map[string]struct {
		shards []*graph.Shard
		nodes  int
		of     func(r *Recipe)
	}{
		"sparse":        {sparse, 1, func(r *Recipe) { r.Model.InputDropout, r.Features = 0.3, "row" }},
		"sparse, all":   {sparse, 1, func(r *Recipe) { r.Batch, r.Fanouts = 0, nil }},
		"dense":         {dense, 1, func(r *Recipe) { r.Model.InputDropout = 0.3 }},
		"dense, all":    {dense, 1, func(r *Recipe) { r.Batch, r.Fanouts = 0, nil }},
		"gat":           {dense, 1, func(r *Recipe) { r.Model = small("gat").Model }},
		"bf16":          {dense, 1, func(r *Recipe) { r.BF16 = true }},
		"deterministic": {dense, 1, func(r *Recipe) { r.Sharing.Deterministic = true }},
		"sweep":         {dense, 1, func(r *Recipe) { *r = swept(*r, "lr=0.01", "hidden=8", "dropout=0.2") }},
		"p3 is not":     {dense, 2, func(r *Recipe) { r.Sharing.Strategy = strategy.P3 }},
		"updating":      {dense, 2, func(r *Recipe) { r.Sharing = updating("2", 3) }},
		"swept":         {sparse, 2, func(r *Recipe) { *r = swept(*r, "lr=0.01", "lr=0.1") }},
	} {
		t.Run(name, func(t *testing.T) { sameAbroad(t, c.shards, c.nodes, c.of) })
	}
	for name, sharing := range ways() {
		if name == "tuned" {
			continue // which goes by clocks
		}
		t.Run(name, func(t *testing.T) { sameAbroad(t, dense, 3, func(r *Recipe) { r.Sharing = sharing }) })
		t.Run(name+", sparse", func(t *testing.T) { sameAbroad(t, sparse, 2, func(r *Recipe) { r.Sharing = sharing }) })
	}
}

func sameAbroad(t *testing.T, shards []*graph.Shard, nodes int, of func(r *Recipe)) {
	r := small("sage")
	r.Epochs = 2
	if nodes > 1 {
		r.Sharing.Strategy = strategy.Centric
	}
	of(&r)
	run := func(o Options) []Epoch {
		if nodes == 1 {
			_, told := mustRun(t, r, shards, o)
			return told
		}
		_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, columnwise(o))
		return told[0]
	}
	here, there := learnt(run(Options{Threads: 2})), learnt(run(abroad(Options{Threads: 2}, nil)))
	if here != there {
		t.Errorf("abroad:\n%s\nand here\n%s", there, here)
	}
}

// Evaluation in parts, with files between layers, sees the same numbers.
func TestForeignDevicesEvaluateInParts(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": communities(t, 6*grain), "sparse": coraShards(t)} {
		for _, nodes := range []int{1, 3} {
			r := small("sage")
			r.Epochs, r.Model.Layers, r.Fanouts, r.Sharing.Strategy = 1, 3, []int{2, 2, 2}, strategy.Centric
			if nodes == 1 {
				r.Sharing.Strategy = ""
			}
			scores := func(o Options, memory uint64) string {
				o.Dir = t.TempDir()
				all := newMesh(nodes, uneven(len(shards), nodes)).start(t, r, shards, o)
				for _, tr := range all {
					if memory > 0 {
						tr.infer.memory = memory
					}
				}
				return fmt.Sprintf("%+v", scoresOf(newMesh(nodes, nil).evaluated(t, all, 1)))
			}
			want := scores(Options{Threads: 2}, 0)
			for _, memory := range []uint64{0, 1 << 20, 1} {
				if got := scores(abroad(Options{Threads: 2}, nil), memory); got != want {
					t.Errorf("%s on %d nodes with %d bytes: %s, and the processor has %s", name, nodes, memory, got, want)
				}
			}
		}
	}
}

func scoresOf(all []*Eval) (s []Scores) {
	for _, e := range all {
		s = append(s, e.Train, e.Val, e.Test)
	}
	return s
}

func TestForeignDevicesPredictTheSame(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": communities(t, 1500), "sparse": coraShards(t)} {
		dir := checkpointed(t, short("sage"), shards)
		want, _ := predicted(t, dir, shards, Options{Threads: 2}, PredictOptions{})
		got, _ := predicted(t, dir, shards, abroad(Options{Threads: 2}, nil), PredictOptions{})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v abroad, and %v", name, got[:4], want[:4])
		}
	}
}

// A run whose device fails, at whatever operation, ends with a sentence that says so and
// leaves the checkpoint of before; the processor goes on from that to the same end.
func TestADeviceThatFails(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Epochs = 3
	_, told := mustRun(t, r, shards, Options{Threads: 1})
	want := told[2].Hash
	var counted *foreign.Device
	mustRun(t, r, shards, abroad(Options{Threads: 1}, func(d *foreign.Device) { counted = d }))
	operations := counted.Operations()
	where := map[string]bool{}
	for at := 1; at < operations; at += operations/40 + 1 {
		o := Options{Threads: 1, Dir: t.TempDir(), Dataset: "d", Resume: true, Interval: 1}
		var device *foreign.Device
		_, err := Run(t.Context(), r, shards, abroad(o, func(d *foreign.Device) { device = d; d.FailAt(at, errBus) }))
		broken, is := errors.AsType[*Broken](err)
		if !is || !errors.Is(err, errBus) || !strings.Contains(err.Error(), "the device foreign cpu") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("operation %d of %d fails: %v", at, operations, err)
		}
		if late := device.Operations() - at; late > operations/6 {
			t.Errorf("after operation %d of %d failed, %d more were asked for", at, operations, late)
		}
		where[fmt.Sprint("in an epoch ", broken.Epoch > 0, ", in a step ", broken.Step > 0)] = true
		told := []Epoch(nil)
		o.Report = func(e Epoch) { told = append(told, e) }
		if _, err := Run(t.Context(), r, shards, o); err != nil || told[len(told)-1].Hash != want {
			t.Fatalf("after operation %d of %d failed, the processor: %v", at, operations, err)
		}
	}
	if len(where) != 3 {
		t.Errorf("it failed only %v", slices.Collect(maps.Keys(where)))
	}
}

// What a device that failed has made is told to no other node: all end, and what is left
// of each is of before.
func TestADeviceThatFailsAmongOthers(t *testing.T) {
	shards := communities(t, 1500)
	for way, sharing := range map[string]strategy.Settings{"leap": ways()["leap"], "migrate": ways()["migrate"], "updating": updating("2", 3)} {
		r := small("sage")
		r.Epochs, r.Sharing = 2, sharing
		whole := newMesh(2, uneven(len(shards), 2))
		_, told := whole.mustRun(t, r, shards, Options{Threads: 1})
		want := told[0][1].Hash
		for at := 120; at < 155; at++ { // more than a step has
			folders := []string{t.TempDir(), t.TempDir()}
			m := newMesh(2, uneven(len(shards), 2))
			err := m.together(t, func(ctx context.Context, node int) error {
				held, o := m.of(node, shards, Options{Threads: 1, Dir: folders[node], Dataset: "d", Resume: true, Interval: 1})
				if node == 1 {
					o = abroad(o, func(d *foreign.Device) { d.FailAt(at, errBus) })
				}
				_, err := Run(ctx, r, held, o)
				return err
			})
			if _, is := errors.AsType[*Broken](err); !is {
				t.Fatalf("%s, operation %d: %v", way, at, err)
			}
			m = newMesh(2, uneven(len(shards), 2))
			_, told, err := m.run(t.Context(), r, shards, Options{Threads: 1, Dataset: "d", Resume: true}, func(node int) string { return folders[node] })
			if err != nil || told[0][len(told[0])-1].Hash != want {
				t.Errorf("%s: after operation %d failed: %v, %s", way, at, err, learnt(told[0]))
			}
		}
	}
}

// What doesn't fit into a device's memory is said with both sizes, before any is taken.
func TestADeviceThatIsTooSmall(t *testing.T) {
	shards := communities(t, 1500)
	_, err := Run(t.Context(), small("sage"), shards, abroad(Options{Threads: 1}, func(d *foreign.Device) { d.Limit(2<<20 + 1<<18) }))
	broken, is := errors.AsType[*Broken](err)
	if !is || broken.Epoch != 0 || !strings.Contains(err.Error(), "it needs ") || !strings.Contains(err.Error(), "of the device's memory, which has 0.2 MiB free of 2.2 MiB") {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), small("sage"), shards, abroad(Options{Threads: 1}, func(d *foreign.Device) { d.Limit(1 << 10) })); !errors.Is(err, foreign.ErrFull) {
		t.Errorf("got %v", err)
	}
	_, err = Run(t.Context(), small("sage"), shards, Options{Device: func(int) (tensor.Device, error) { return nil, errBus }})
	if _, is := errors.AsType[*Broken](err); !is || !errors.Is(err, errBus) {
		t.Errorf("got %v", err)
	}
}

// Devices of two kinds share a job, unless it is to have the same bits everywhere.
func TestMixedDevices(t *testing.T) {
	shards := communities(t, 1500)
	for _, deterministic := range []bool{false, true} {
		r := small("sage")
		r.Epochs = 2
		r.Sharing = strategy.Settings{Strategy: strategy.Leap, Deterministic: deterministic}
		m := newMesh(2, uneven(len(shards), 2))
		var notes []string
		err := m.together(t, func(ctx context.Context, node int) error {
			held, o := m.of(node, shards, Options{Threads: 1})
			if node == 1 {
				o = abroad(o, nil)
				o.Announce = func(f Forecast) { notes = f.Notes }
			}
			_, err := Run(ctx, r, held, o)
			return err
		})
		switch {
		case deterministic && (err == nil || !Together(err) || !strings.Contains(err.Error(), "node n0 computes on its processor and node n1 on a GPU")):
			t.Errorf("got %v", err)
		case !deterministic && (err != nil || len(notes) == 0 || !strings.Contains(notes[0], "differs in the last digits")):
			t.Errorf("got %v with the notes %q", err, notes)
		}
	}
}
