package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// operate tells what an import tells, and ends as the backend is meant to end.
func (b *backend) operate(ctx context.Context, asked any, tell func(api.DatasetEvent)) error {
	b.mu.Lock()
	b.made = append(b.made, asked)
	b.mu.Unlock()
	if b.err != nil && !b.midway {
		return b.err
	}
	if _, verify := asked.(string); !verify {
		tell(api.DatasetEvent{Forecast: &api.Forecast{
			Vertices: 2708, Edges: 10858, Partitioner: "multilevel\x1b[2J", Shards: 4, ShardBytes: 3 << 20, PeakMemory: 3 << 23, Scratch: 1 << 20, CutAtMost: 0.75, Replicas: 1,
		}})
	}
	tell(api.DatasetEvent{Progress: &api.Progress{Stage: "reading edges\x1b[2J", Done: 5000, Total: 10858, Unit: "edges"}})
	tell(api.DatasetEvent{Note: "the labels\x1b[2J of 3 vertices are missing"})
	tell(api.DatasetEvent{Progress: &api.Progress{Stage: "cutting", Done: 3, Total: 3, Unit: "levels"}})
	if b.open {
		<-ctx.Done()
		return ctx.Err()
	}
	return b.err
}

func (b *backend) ImportDataset(ctx context.Context, r api.ImportRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return cora(), b.operate(ctx, r, tell)
}

func (b *backend) GenerateDataset(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return cora(), b.operate(ctx, r, tell)
}

func (b *backend) VerifyDataset(ctx context.Context, name string, tell func(api.DatasetEvent)) error {
	return b.operate(ctx, name, tell)
}

func (b *backend) Datasets(context.Context) ([]api.DatasetSummary, error) {
	if b.empty || b.err != nil {
		return nil, b.err
	}
	return []api.DatasetSummary{
		{Name: "products", Stage: "placing", Vertices: 2449029, Edges: 123718280, Features: 100, Classes: 47, Shards: 64, Bytes: 3 << 29, Problems: 1},
		{Name: "cora", Stage: "ready", Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, Shards: 4, Bytes: 1 << 20},
	}, nil
}

func (b *backend) Dataset(context.Context, string) (api.Dataset, error) {
	if b.empty {
		return api.Dataset{Name: "cora", Stage: "importing"}, b.err
	}
	d := cora()
	d.Shards[2].Owner, d.Shards[2].Replicas = "", nil
	d.Problems = []string{"shard 2 is on no node that answers: start beta", "2 shards have fewer copies than wanted: add a node"}
	return d, b.err
}

func (b *backend) RemoveDataset(_ context.Context, _ string, force bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, force)
	return b.err
}

func cora() api.Dataset {
	d := api.Dataset{
		Name: "cora", Stage: "ready", Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, Splits: 1,
		SplitSizes: []api.SplitSizes{{Train: 140, Val: 500, Test: 1000}}, DType: "f32",
		EdgeCut: 1234, EdgeCutShare: 0.1169, Balance: 1.0155, BalanceEdges: 1.09, BalanceTraining: 1.1, Partitioner: "multilevel", Seed: 7,
	}
	for i, owner := range []string{"alpha", "alpha", "beta\x1b[2J", "alpha"} {
		d.Shards = append(d.Shards, api.DatasetShard{
			ID: i, Vertices: 677, Edges: 2639, Halo: uint64(100 * (4 - i)), Bytes: 3 << 18, SHA256: strings.Repeat(fmt.Sprint(i), 64),
			Owner: owner, Replicas: []string{"gamma"},
		})
	}
	return d
}

func TestWhatIsMade(t *testing.T) {
	b := healthy()
	addr := serve(t, b)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"import cora graphs/cora.npz",
		"import cora /g --format csv --shards 8 --partitioner stream --dtype bf16 --replicas 0 --memory 2GiB --undirected --seed 18446744073709551615",
		"generate big --kind sbm --vertices 10 --edges 20 --features 3 --classes 2 --communities 4 --inside 0.9 --homophily 0.5 --seed 3 --replicas 2",
		"generate small --preset products --scale 0.1",
	} {
		if _, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields("dataset "+args), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	none, two, inside, homophily := 0, 2, 0.9, 0.5
	usual := api.DatasetOptions{Partitioner: "auto", DType: "f32"}
	own := usual
	own.Seed, own.Replicas = 3, &two
	want := []any{
		api.ImportRequest{Name: "cora", Source: filepath.Join(dir, "graphs/cora.npz"), Format: "auto", DatasetOptions: usual},
		api.ImportRequest{Name: "cora", Source: "/g", Format: "csv", DatasetOptions: api.DatasetOptions{
			Shards: 8, Partitioner: "stream", DType: "bf16", Replicas: &none, Memory: 2 << 30, Undirected: true, Seed: 1<<64 - 1,
		}},
		api.GenerateRequest{Name: "big", Kind: "sbm", Vertices: 10, Edges: 20, Features: 3, Classes: 2, Communities: 4, Inside: &inside, Homophily: &homophily, DatasetOptions: own},
		api.GenerateRequest{Name: "small", Preset: "products", Scale: 0.1, DatasetOptions: usual},
	}
	if !reflect.DeepEqual(b.made, want) {
		t.Errorf("made %+v", b.made)
	}
}

// An interrupted import says that it leaves nothing, and really ends.
func TestInterruptedImport(t *testing.T) {
	for _, flags := range []string{"", " --json"} {
		b := healthy()
		b.open = true
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		var out, diag strings.Builder
		stop := func() { interrupt(errors.New("signal")) }
		args := strings.Fields("dataset import cora /g --addr " + serve(t, b) + flags)
		code := Execute(ctx, New(echo(), ""), args, &out, firstWrite{&diag, stop})
		if code != 1 || !strings.HasSuffix(diag.String(), "hopmesh: interrupted: nothing of cora is kept\n") {
			t.Errorf("%d %q", code, diag.String())
		}
		if strings.Contains(out.String(), "Name") || flags != "" && out.String() != "" {
			t.Errorf("%q", out.String())
		}
	}
}

func TestRuns(t *testing.T) {
	for want, ids := range map[string][]int{
		"shard 3": {3}, "shards 0-1": {1, 0}, "shards 0-21, 40": append([]int{40}, upTo(22)...), "shards 1, 3, 5-7": {1, 3, 5, 6, 7},
	} {
		if got := runs(ids); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func upTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestThousands(t *testing.T) {
	for want, n := range map[string]uint64{"0": 0, "999": 999, "1,000": 1000, "18,446,744,073,709,551,615": 1<<64 - 1} {
		if got := thousands(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
