package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// What a daemon may use while it cuts a graph that is larger.
const (
	streamMemory = 256 << 20
	streamEdges  = 80_000_000 // directed: 4 bytes each for the sources alone
)

// stream has a daemon of its own cut a graph that does not fit the memory it is
// allowed, and asks the kernel how much it used at its peak.
func (b *bench) stream(ctx context.Context) (figures []Figure, err error) {
	dir := filepath.Join(b.dir, "stream")
	d := exec.CommandContext(ctx, b.cfg.Program, "agent", "--data-dir", dir, "--name", "s1", "--listen", "127.0.0.1:0",
		"--device", "cpu", "--log-level", "error", "--bootstrap")
	if err := d.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", b.cfg.Program, err)
	}
	defer func() {
		_ = d.Process.Signal(syscall.SIGTERM)
		_ = d.Wait()
		_ = os.RemoveAll(dir)
	}()
	c, err := api.NewClient("unix:" + filepath.Join(dir, "hopmesh.sock"))
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, c); err != nil {
		return nil, err
	}
	var begin, end time.Time
	made, err := c.GenerateDataset(ctx, api.GenerateRequest{
		Name: "stream", Kind: "sbm", Vertices: 4_000_000, Edges: streamEdges, Classes: 16, Communities: 2000,
		DatasetOptions: api.DatasetOptions{Partitioner: "stream", Memory: streamMemory},
	}, func(e api.DatasetEvent) {
		// From the first edge read to the first that is put into a shard.
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
	peak, err := peakMB(d.Process.Pid)
	if err != nil {
		return nil, err
	}
	speed := float64(made.Edges) / 1e6 / end.Sub(begin).Seconds()
	return []Figure{
		{Name: fmt.Sprintf("cutting %.2g M edges in a stream, read, sorted and all", float64(made.Edges)/1e6), Value: speed, Unit: "M edges/s",
			Bar: "at least 5 M edges/s", Holds: speed >= 5},
		atMost("cutting in a stream: peak resident, the daemon and all", "MB", peak, streamMemory/1e6),
		against("cutting in a stream: edges cut", "of all", made.EdgeCutShare, "at random", 1-1.0/64, "", func(float64) bool { return true }),
	}, nil
}

// peakMB is the most that a process has ever had resident.
func peakMB(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read a daemon's memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("read a daemon's memory: %w", err)
			}
			return kb * 1024 / 1e6, nil
		}
	}
	return 0, fmt.Errorf("read a daemon's memory: no peak in its status")
}
