package train_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A device that has room for it holds the graph and the features; then blocks are drawn
// there, rows gathered, and the outermost hop is added up as it is drawn, where a model's
// first layer takes no more of it. What is learnt is the same.
func TestWhatADeviceHolds(t *testing.T) {
	dense, sparse := traintest.Communities(t, 3000), traintest.CoraShards(t)
	for _, c := range []struct {
		name     string
		shards   []*graph.Shard
		of       func(r *recipe.Recipe)
		edges    bool
		features bool
		summed   bool
	}{
		{"dense", dense, func(*recipe.Recipe) {}, true, true, true},
		{"gcn", dense, func(r *recipe.Recipe) { r.Model = traintest.Small("gcn").Model; r.Model.InputDropout = 0 }, true, true, true},
		{"gin", dense, func(r *recipe.Recipe) { r.Model = traintest.Small("gin").Model; r.Model.InputDropout = 0 }, true, true, false},
		{"gat", dense, func(r *recipe.Recipe) { r.Model = traintest.Small("gat").Model; r.Model.InputDropout = 0 }, true, true, false},
		{"input dropout", dense, func(r *recipe.Recipe) { r.Model.InputDropout = 0.2 }, true, true, false},
		{"scaled", dense, func(r *recipe.Recipe) { r.Features = "row" }, true, true, false},
		{"many neighbours", dense, func(r *recipe.Recipe) { r.Fanouts = []int{3, 33} }, true, true, false},
		{"bf16 rows", dense, func(r *recipe.Recipe) { r.Features = "binary" }, true, true, true},
		{"sweep", dense, func(r *recipe.Recipe) { *r = traintest.Swept(*r, "hidden=8", "lr=0.1") }, true, true, true},
		{"grains", dense, func(r *recipe.Recipe) { r.Sharing.Deterministic = true }, true, true, true},
		{"sparse", sparse, func(*recipe.Recipe) {}, true, false, false},
		{"all at once", dense, func(r *recipe.Recipe) { r.Batch, r.Fanouts = 0, nil }, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := plainSage()
			c.of(&r)
			var f train.Forecast
			var device *foreign.Device
			tr := traintest.Started(t, r, c.shards, traintest.Abroad(train.Options{Threads: 2, Announce: func(got train.Forecast) { f = got }}, func(d *foreign.Device) { device = d }))
			y := tr.Run.Uploader
			if (y.Resident != nil) != c.edges || (y.Store != nil) != c.features || y.Summed != c.summed || len(f.Notes) > 0 {
				t.Errorf("it holds edges: %v, features: %v, adds up: %v, and notes %q", y.Resident != nil, y.Store != nil, y.Summed, f.Notes)
			}
			if free, total := device.Free(); f.There+3*slot.Slab < total-free { // weights and a window are no part of it
				t.Errorf("it is forecast to take %d bytes there, and takes %d already", f.There, total-free)
			}
			sameThere(t, r, c.shards, traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2}, nil), c.summed)
		})
	}
}

// plainSage has a first layer that is a sum of features.
func plainSage() recipe.Recipe {
	r := traintest.Small("sage")
	r.Epochs, r.Model.InputDropout = 2, 0
	return r
}

// sameThere trains here and there: to the same bits, or nearly so.
func sameThere(t *testing.T, r recipe.Recipe, shards []*graph.Shard, o train.Options, nearly bool) {
	t.Helper()
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	_, got := traintest.MustRun(t, r, shards, o)
	if len(got) != len(want) {
		t.Fatalf("%d epochs, want %d", len(got), len(want))
	}
	for i := range want {
		near(t, fmt.Sprint("the loss of epoch ", want[i].Epoch), got[i].Loss, want[i].Loss, 1e-4)
		if got[i].Edges != want[i].Edges {
			t.Errorf("epoch %d: %d edges, want %d", want[i].Epoch, got[i].Edges, want[i].Edges)
		}
		// Who adds up an edge's row as it comes reads some of them several times.
		if got, least := got[i].Rows.Total(), want[i].Rows.Total(); got != least && !nearly || got < least || got > least+want[i].Edges {
			t.Errorf("epoch %d: %d rows, and %d here", want[i].Epoch, got, least)
		}
	}
	if !nearly && traintest.Hashes(got) != traintest.Hashes(want) {
		t.Errorf("there\n%sand here\n%s", traintest.Hashes(got), traintest.Hashes(want))
	}
}

// What a device has no room for stays on the host, and a note says so.
func TestWhatADeviceHasNoRoomFor(t *testing.T) {
	dense, sparse := traintest.Communities(t, 3000), traintest.CoraShards(t)
	for _, c := range []struct {
		what   string
		shards []*graph.Shard
		stays  func(y *slot.Uploader) bool
	}{
		{"edges", dense, func(y *slot.Uploader) bool { return y.Resident == nil }},
		{"edges", sparse, func(y *slot.Uploader) bool { return y.Resident == nil }},
		{"features", dense, func(y *slot.Uploader) bool { return y.Store == nil }},
	} {
		r := plainSage()
		// The largest device on which it stays.
		stays := func(limit int) bool {
			tr, err := train.NewTrainer(t.Context(), r, c.shards, traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2}, func(d *foreign.Device) { d.Limit(uint64(limit)) }))
			if err != nil {
				return true
			}
			defer tr.Close()
			return tr.Prepare(t.Context()) != nil || c.stays(tr.Uploader)
		}
		const unit = 256 << 10
		limit := unit * (sort.Search(1<<10, func(n int) bool { return !stays(n * unit) }) - 1)
		var f train.Forecast
		o := traintest.Abroad(train.Options{Strategies: strategies.All, Threads: 2, Announce: func(got train.Forecast) { f = got }}, func(d *foreign.Device) { d.Limit(uint64(limit)) })
		tr := traintest.Started(t, r, c.shards, o)
		if said := strings.Join(f.Notes, "\n"); !c.stays(tr.Run.Uploader) || !strings.Contains(said, "the graph's "+c.what+" stay in the host's memory: the device foreign cpu") || !strings.Contains(said, "MiB free") {
			t.Errorf("%s: with %d bytes the notes are %q", c.what, limit, f.Notes)
		}
		sameThere(t, r, c.shards, o, tr.Run.Uploader.Summed)
	}
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if diff := got - want; diff > relative*want || -diff > relative*want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Several nodes whose devices hold the edges and their own features: rows of others are
// received where devices copy from, and are gathered there among the rest.
func TestNodesWhoseDevicesHoldTheirParts(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 1500), "sparse": traintest.CoraShards(t)} {
		for way, sharing := range map[string]strategy.Settings{
			"leap": strategy.Given("leap"), "kept": strategy.Given("centric", "centric.cache=200"), "sharded": strategy.Given("centric", "topology=sharded"),
		} {
			for _, how := range []string{"none", "row"} {
				r := traintest.Small("sage")
				r.Epochs, r.Sharing, r.Features = 2, sharing, how
				_, want := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 2})
				_, got := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 2}, nil))
				if traintest.Learnt(got[0]) != traintest.Learnt(want[0]) {
					t.Errorf("%s, %s, %s: abroad\n%s\nand here\n%s", name, way, how, traintest.Learnt(got[0]), traintest.Learnt(want[0]))
				}
			}
		}
	}
}

// A lane that fails ends the run as its device does, and the processor goes on.
func TestALaneThatFails(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	_, reports := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	want := reports[len(reports)-1].Loss
	var counted *foreign.Device
	traintest.MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 1}, func(d *foreign.Device) { d.OnLane(func(l *foreign.Device) { counted = l }) }))
	for at, all := 1, counted.Operations(); at < all; at += 1 + all/9 {
		o := train.Options{Strategies: strategies.All, Threads: 1, Dir: t.TempDir(), Dataset: "d", Resume: true, Interval: 1}
		_, err := train.Run(t.Context(), r, shards, traintest.Abroad(o, func(d *foreign.Device) {
			d.OnLane(func(l *foreign.Device) { l.FailAt(at, errBus) })
		}))
		if _, is := errors.AsType[*slot.Broken](err); !is || !errors.Is(err, errBus) {
			t.Fatalf("operation %d of the lane fails: %v", at, err)
		}
		reports := []trained.Epoch(nil)
		o.Report = func(e trained.Epoch) { reports = append(reports, e) }
		if _, err := train.Run(t.Context(), r, shards, o); err != nil {
			t.Fatalf("after operation %d of the lane failed, the processor: %v", at, err)
		}
		near(t, "the loss that the processor comes to", reports[len(reports)-1].Loss, want, 1e-3)
	}
}
