package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// A counted source makes up its edges and features, and holds none of them.
type counted struct {
	meta graph.Meta
}

var _ graph.Source = counted{}

func (c counted) Meta() graph.Meta     { return c.meta }
func (counted) Labels() []int32        { return nil }
func (counted) Targets() graph.Columns { return graph.Columns{} }
func (counted) Splits() [][]graph.Mark { return nil }
func (counted) IDs() graph.IDs         { return graph.IDs{} }
func (counted) Notes() []string        { return nil }
func (counted) Close() error           { return nil }

func (c counted) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	b := graph.EdgeBatch{Src: make([]uint32, 1<<14), Dst: make([]uint32, 1<<14)}
	n := uint64(c.meta.Vertices)
	x := uint64(88172645463325252)
	for left := int(c.meta.Edges); left > 0; left -= len(b.Src) {
		b.Src, b.Dst = b.Src[:min(left, 1<<14)], b.Dst[:min(left, 1<<14)]
		for i := range b.Src {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			b.Src[i], b.Dst[i] = uint32(x>>32*n>>32), uint32(x&0xffffffff*n>>32)
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (c counted) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if c.meta.Features == 0 {
		return nil
	}
	dense := make([]float32, 1024*c.meta.Features)
	for v := uint32(0); v < c.meta.Vertices; v += 1024 {
		rows := min(1024, int(c.meta.Vertices-v))
		dense[0] = float32(v)
		if err := yield(graph.FeatureBatch{First: v, Dense: dense[:rows*c.meta.Features]}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// child is set for the process that imports and then tells its peak.
const child = "HOPMESH_TEST_IMPORT"

// TestMemoryStaysWithinTheBound imports more than the bound, in a process of its own.
func TestMemoryStaysWithinTheBound(t *testing.T) {
	const bound = overhead * 96 << 20
	if partitioner := os.Getenv(child); partitioner != "" {
		src := counted{graph.Meta{Vertices: 100_000, Edges: 4_000_000 / overhead, Features: 160}}
		dir := filepath.Join(t.TempDir(), "out")
		o := Options{Dir: dir, Partitioner: partitioner, Undirected: true, Memory: bound}
		f, err := Plan(src, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), src, o); err != nil {
			t.Fatal(err)
		}
		peak := budget.Field("/proc/self/status", "VmHWM:", 0)
		fmt.Printf("peak %d forecast %d\n", peak>>20, f.PeakMemory>>20)
		if peak > f.PeakMemory*overhead || f.PeakMemory > bound {
			t.Errorf("%s: the peak was %s, forecast %s, bound %s", partitioner, inBytes(peak), inBytes(f.PeakMemory), inBytes(bound))
		}
		return
	}
	for _, partitioner := range []string{random, stream} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		command.Env = append(os.Environ(), child+"="+partitioner)
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "forecast") {
			t.Errorf("%v: %s", err, out)
		}
		t.Logf("%s: %s", partitioner, out)
	}
}

func TestPlanChoosesByMemory(t *testing.T) {
	src := counted{graph.Meta{Vertices: 1 << 20, Edges: 20 << 20, Features: 100}}
	dir := filepath.Join(t.TempDir(), "out")
	whole := partition.MultilevelMemory(1<<20, 40<<20, 2) // and this process comes on top
	for _, c := range []struct {
		memory uint64
		asked  string
		want   string
	}{
		{2 * whole, auto, multilevel},
		{whole, auto, stream},
		{whole, "", stream},
		{2 * whole, random, random},
		{2 * whole, stream, stream},
		{2 * whole, multilevel, multilevel},
	} {
		f, err := Plan(src, Options{Dir: dir, Partitioner: c.asked, Memory: c.memory, Undirected: true})
		if err != nil || f.Partitioner != c.want {
			t.Errorf("%s with %s becomes %q, %v", c.asked, inBytes(c.memory), f.Partitioner, err)
			continue
		}
		data := f.Vertices * 400
		if f.PeakMemory > c.memory || f.Vertices != 1<<20 || f.Edges != 40<<20 || f.Shards != 64 || f.CutAtMost != 63.0/64 {
			t.Errorf("the forecast is %+v", f)
		}
		if all := f.ShardBytes * 64; all < data+4*f.Edges || all > (data+4*f.Edges)*11/10 {
			t.Errorf("shards of %d bytes are forecast", f.ShardBytes)
		}
		if f.Scratch < 8*f.Edges || f.Scratch > 32*f.Edges {
			t.Errorf("scratch of %d bytes is forecast for %d edges", f.Scratch, f.Edges)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a plan made the folder")
	}
}

// TestForecastsHold compares what is on disk in the end with what was forecast.
func TestForecastsHold(t *testing.T) {
	for i, s := range shapes {
		m := s.source(4)
		o := Options{Partitioner: random, Undirected: i%2 == 0, Dir: filepath.Join(t.TempDir(), "out")}
		f, err := Plan(m, o)
		if err != nil {
			t.Fatal(err)
		}
		manifest, _ := build(t, m, o, nil)
		bytes := uint64(0)
		for _, shard := range manifest.Shards {
			bytes += shard.Bytes
		}
		if manifest.Edges > f.Edges || bytes/uint64(f.Shards) > f.ShardBytes || len(manifest.Shards) != f.Shards || manifest.Vertices != f.Vertices {
			t.Errorf("%+v: forecast was %+v, and there are %d edges in %d bytes", s, f, manifest.Edges, bytes)
		}
	}
}
