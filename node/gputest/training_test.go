//go:build cuda && emulator

package gputest

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// nearly is how far losses may be off: products are of rounded numbers on a GPU.
const nearly = 1e-3

// learned is the share of Cora's test papers that must be told right after some epochs;
// who calls all of them the most frequent of seven classes has less than a third.
const learned = 0.6

// trained is a job that three nodes have done on loopback, all with this device.
func trained(t *testing.T, device string, bring func(ctx context.Context, n api.Backend) error, r api.TrainRequest) api.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	f := fleet.New(t.TempDir(), "test")
	f.Device = device
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		if _, err := f.Launch(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Until(ctx, "three nodes have formed a mesh", func() bool { return f.AllReady() && len(f.Nodes[0].Members()) == 3 }); err != nil {
		t.Fatal(err)
	}
	n := f.Nodes[0].API()
	if err := bring(ctx, n); err != nil {
		t.Fatal(err)
	}
	id, err := n.StartJob(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	j, err := n.WatchJob(ctx, id, func(api.JobEvent) {})
	if err != nil || j.State != "done" || len(j.Nodes) != 3 {
		t.Fatalf("on %s the job is %s on %d nodes: %s, %v", device, j.State, len(j.Nodes), j.Error, err)
	}
	return j
}

// uncached has processors keep no rows of other nodes, as GPUs do not.
var uncached = []api.Setting{{Key: "leap.cache", Value: "off"}}

// alike holds the epochs of GPUs against those of processors.
func alike(t *testing.T, gpu, cpu api.Job) {
	t.Helper()
	if len(gpu.History) != len(cpu.History) {
		t.Fatalf("%d epochs, want %d", len(gpu.History), len(cpu.History))
	}
	for i, want := range cpu.History {
		got := gpu.History[i]
		t.Logf("epoch %d: a loss of %v, and %v on processors", want.Epoch, got.Loss, want.Loss)
		if math.Abs(got.Loss-want.Loss) > nearly*want.Loss {
			t.Errorf("epoch %d: the loss is %v, and %v on processors", want.Epoch, got.Loss, want.Loss)
		}
		if got.Rows.Remote != want.Rows.Remote || got.Rows.Remote == 0 {
			t.Errorf("epoch %d: %d rows are remote, and %d on processors", want.Epoch, got.Rows.Remote, want.Rows.Remote)
		}
	}
	// Devices that failed, or had no room for the graph, would say so.
	if len(gpu.Notes) > len(cpu.Notes) {
		t.Errorf("the notes are %q, and %q on processors", gpu.Notes, cpu.Notes)
	}
	if !slices.Contains(gpu.Devices, "cuda:0") || slices.Contains(cpu.Devices, "cuda:0") {
		t.Errorf("the devices are %q and %q", gpu.Devices, cpu.Devices)
	}
}

// Three nodes train by leap with small fan-outs: blocks are drawn and trained by kernels,
// and rows of other nodes are received where the GPU copies from.
func TestNodesTrainByLeap(t *testing.T) {
	bring := func(ctx context.Context, n api.Backend) error {
		_, err := n.GenerateDataset(ctx, api.GenerateRequest{
			Name: "g", Kind: "sbm", Vertices: 900, Edges: 4000, Features: 24, Classes: 4, Communities: 8,
			DatasetOptions: api.DatasetOptions{Shards: 6, Seed: 3, Replicas: new(int)},
		}, func(api.DatasetEvent) {})
		return err
	}
	epochs, hidden, batch, seed, dropout := 3, 16, 150, uint64(1), 0.2
	r := api.TrainRequest{
		Dataset: "g", Model: "sage", Hidden: &hidden, Batch: &batch, Fanout: []int{4, 3}, Epochs: &epochs, Seed: &seed, Dropout: &dropout, Strategy: "leap", Set: uncached,
	}
	alike(t, trained(t, "cuda", bring, r), trained(t, "cpu", bring, r))
}

// The demo's training of Cora, for as many epochs as an emulated GPU does in a while and
// judged in the end only, comes to the processors' losses and accuracy.
func TestNodesTrainCora(t *testing.T) {
	bring := func(ctx context.Context, n api.Backend) error {
		path, err := cora.Write(t.TempDir())
		if err == nil {
			_, err = n.ImportDataset(ctx, api.ImportRequest{Name: "cora", Source: path}, func(api.DatasetEvent) {})
		}
		return err
	}
	epochs, hidden, batch, seed := 20, 16, 70, uint64(1)
	r := api.TrainRequest{
		Dataset: "cora", Model: "gcn", Hidden: &hidden, Batch: &batch, Fanout: []int{10, 10}, Epochs: &epochs, EvalEvery: &epochs, Seed: &seed, Strategy: "leap", Set: uncached, Deterministic: true,
	}
	gpu, cpu := trained(t, "cuda", bring, r), trained(t, "cpu", bring, r)
	alike(t, gpu, cpu)
	last := len(cpu.History) - 1
	got, want := *gpu.History[last].TestAccuracy, *cpu.History[last].TestAccuracy
	t.Logf("%.3f of the test papers are told right, and %.3f on processors", got, want)
	if math.Abs(got-want) > 0.01 || got < learned {
		t.Errorf("%.3f of the test papers are told right, and %.3f on processors: at least %.3f had to be", got, want, learned)
	}
}
