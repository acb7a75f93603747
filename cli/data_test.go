package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

func TestWhatIsMade(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"import cora graphs/cora.npz",
		"import cora /g --format csv --shards 8 --partitioner stream --dtype bf16 --replicas 0 --memory 2GiB --undirected --seed 18446744073709551615",
		"import web n1:/d/0 graphs/1 /d/2",
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
		api.ImportRequest{Name: "web", Sources: []string{"n1:/d/0", filepath.Join(dir, "graphs/1"), "/d/2"}, Format: "auto", DatasetOptions: usual},
		api.GenerateRequest{Name: "big", Kind: "sbm", Vertices: 10, Edges: 20, Features: 3, Classes: 2, Communities: 4, Inside: &inside, Homophily: &homophily, DatasetOptions: own},
		api.GenerateRequest{Name: "small", Preset: "products", Scale: 0.1, DatasetOptions: usual},
	}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("made %+v", b.Made)
	}
}

// An interrupted import says that it leaves nothing, and really ends.
func TestInterruptedImport(t *testing.T) {
	for _, flags := range []string{"", " --json"} {
		b := clitest.Healthy()
		b.Open = true
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		var out, diag strings.Builder
		stop := func() { interrupt(errors.New("signal")) }
		args := strings.Fields("dataset import cora /g --addr " + clitest.Serve(t, b) + flags)
		code := Execute(ctx, New(echo(), ""), args, &out, clitest.FirstWrite(&diag, stop))
		if code != 1 || !strings.HasSuffix(diag.String(), "hopmesh: interrupted: nothing of cora is kept\n") {
			t.Errorf("%d %q", code, diag.String())
		}
		if strings.Contains(out.String(), "Name") || flags != "" && out.String() != "" {
			t.Errorf("%q", out.String())
		}
	}
}
