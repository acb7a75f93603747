package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// streamMemory is what a daemon may use while it cuts a larger graph.
const (
	streamMemory = 256 << 20
	streamEdges  = 80_000_000 // directed: 4 bytes each for the sources alone
)

// stream has a daemon cut a graph that does not fit the memory it is allowed, and reads
// its peak memory from the kernel.
func stream(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	d, err := run.Launch(ctx, "stream", "--bootstrap")
	if err != nil {
		return nil, err
	}
	defer func() {
		d.Stop()
		_ = os.RemoveAll(filepath.Join(run.Dir, "stream"))
	}()
	var begin, end time.Time
	made, err := d.GenerateDataset(ctx, api.GenerateRequest{
		Name: "stream", Kind: "sbm", Vertices: 4_000_000, Edges: streamEdges, Classes: 16, Communities: 2000,
		DatasetOptions: api.DatasetOptions{Partitioner: "stream", Memory: streamMemory},
	}, func(e api.DatasetEvent) {
		// From the first edge that is read to the first that is put into a shard.
		switch {
		case e.Progress == nil || !end.IsZero():
		case begin.IsZero():
			begin = time.Now()
		case !slices.Contains([]string{"reading edges", "sorting edges", "cutting"}, e.Progress.Stage):
			end = time.Now()
		}
	})
	if err != nil {
		return nil, err
	}
	peak, err := bench.PeakMB(d.PID())
	if err != nil {
		return nil, err
	}
	speed := float64(made.Edges) / 1e6 / end.Sub(begin).Seconds()
	return []bench.Figure{
		{Name: fmt.Sprintf("cutting %.2g M edges in a stream, read, sorted and all", float64(made.Edges)/1e6), Value: speed, Unit: "M edges/s",
			Bar: "at least 5 M edges/s", Holds: speed >= 5},
		bench.AtMost("cutting in a stream: peak resident, the daemon and all", "MB", peak, streamMemory/1e6),
		bench.Beside("cutting in a stream: edges cut", "of all", made.EdgeCutShare, "at random", 1-1.0/64),
	}, nil
}
