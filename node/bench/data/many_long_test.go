//go:build long

package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// manyScale is how much of ogbn-products the graph is, and manyRounds how often each case is
// measured: enough to see the bits, not for times. MANY_SCALE=0.1 MANY_ROUNDS=3 is for those.
const (
	manyScale  = 0.01
	manyRounds = 1
)

// Two nodes, each bound to a core of its own, import and generate a graph faster than one
// that is bound to one core. What each node has on its disk is sampled meanwhile.
func TestManyNodesImport(t *testing.T) {
	scale := float64(manyScale)
	if s, err := strconv.ParseFloat(os.Getenv("MANY_SCALE"), 64); err == nil {
		scale = s
	}
	rounds := manyRounds
	if n, err := strconv.Atoi(os.Getenv("MANY_ROUNDS")); err == nil {
		rounds = n
	}
	run := newRun(t)
	program := os.Getenv("MANY_PROGRAM")
	if program == "" {
		program = filepath.Join(run.Dir, "hopmesh")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../cli/hopmesh").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	parts := writeParts(t, run.Dir, scale)
	input := uint64(0)
	for _, p := range parts {
		input += onDisk(p)
	}
	one, two := bound(t, run, program, "one", 1), bound(t, run, program, "two", 2)
	kinds := []string{"stream", "multilevel", "random", "generate"}
	if only := os.Getenv("MANY_ONLY"); only != "" {
		kinds = strings.Fields(only)
	}
	for _, what := range kinds {
		var ratios, single, double []float64
		for i := range rounds {
			sources := [][]string{{parts[0], parts[1]}, {"n1:" + parts[0], "n2:" + parts[1]}}
			var took [2]measured
			for k, m := range []*boundMesh{one, two} {
				took[k] = m.make(t, fmt.Sprintf("%s-%d", what, i), what, sources[k], scale)
			}
			ratios = append(ratios, took[0].seconds/took[1].seconds)
			single, double = append(single, took[0].seconds), append(double, took[1].seconds)
			if took[0].content != took[1].content {
				t.Errorf("%s: other shards by two nodes", what)
			}
			if i == 0 {
				t.Logf("%s: input %d MB; one node: disk at most %v MB, its shards %v, processor %v; two: disk at most %v MB, their shards %v, processor %v",
					what, input>>20, mb(took[0].peak), mb(took[0].shards), took[0].cpu, mb(took[1].peak), mb(took[1].shards), took[1].cpu)
				t.Logf("one: %v; two: %v", took[0].stages, took[1].stages)
			}
		}
		t.Logf("%s: one node %.1f s, two %.1f s: %.2fx as fast (median of %d, one after the other)", what, stats.Median(single), stats.Median(double), stats.Median(ratios), rounds)
	}
}

func mb(bytes []uint64) (list []uint64) {
	for _, b := range bytes {
		list = append(list, b>>20)
	}
	return list
}

// writeParts writes a graph as two folders of CSV.
func writeParts(t *testing.T, dir string, scale float64) []string {
	t.Helper()
	src, err := generate.New(generate.Options{Preset: "products", Scale: scale, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	meta := src.Meta()
	var parts []string
	var edges, features, labels [2]*bufio.Writer
	var all []func() error
	for i := range 2 {
		part := filepath.Join(dir, fmt.Sprint("part-", i))
		parts = append(parts, part)
		if err := os.Mkdir(part, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]*[2]*bufio.Writer{"edges.csv": &edges, "features.csv": &features, "labels.csv": &labels} {
			f, err := os.Create(filepath.Join(part, name))
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriterSize(f, 1<<20)
			to[i] = w
			all = append(all, func() error { return errors.Join(w.Flush(), f.Close()) })
		}
	}
	half := func(v uint32) int { return int(uint64(v) * 2 / uint64(meta.Vertices)) }
	var line []byte
	err = errors.Join(
		src.Edges(t.Context(), func(b graph.EdgeBatch) error {
			for i, s := range b.Src {
				line = strconv.AppendUint(line[:0], uint64(s), 10)
				line = strconv.AppendUint(append(line, ','), uint64(b.Dst[i]), 10)
				_, _ = edges[half(b.Dst[i])].Write(append(line, '\n')) // Flush says
			}
			return nil
		}),
		src.Features(t.Context(), func(b graph.FeatureBatch) error {
			for i := range len(b.Dense) / meta.Features {
				v := b.Vertex(i)
				line = strconv.AppendUint(line[:0], uint64(v), 10)
				for _, x := range b.Dense[i*meta.Features : (i+1)*meta.Features] {
					line = strconv.AppendFloat(append(line, ','), float64(x), 'g', 6, 32)
				}
				_, _ = features[half(v)].Write(append(line, '\n'))
				line = fmt.Appendf(line[:0], "%d,%d\n", v, src.Labels()[v])
				_, _ = labels[half(v)].Write(line)
			}
			return nil
		}))
	for _, end := range all {
		err = errors.Join(err, end())
	}
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// A boundMesh is daemons that are each bound to one core.
type boundMesh struct {
	daemons []*bench.Daemon
	dirs    []string
}

func bound(t *testing.T, run *bench.Run, program, name string, nodes int) *boundMesh {
	t.Helper()
	m := &boundMesh{}
	enter := []string{"--bootstrap"}
	for i := range nodes {
		script := filepath.Join(run.Dir, fmt.Sprintf("%s%d.sh", name, i))
		if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec taskset -c %d %s \"$@\"\n", i, program), 0o700); err != nil {
			t.Fatal(err)
		}
		own := *run
		own.Program, own.Dir = script, filepath.Join(run.Dir, name)
		d, err := own.Launch(t.Context(), fmt.Sprint("n", i+1), append([]string{"--memory", "2GiB"}, enter...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Stop)
		m.daemons, m.dirs = append(m.daemons, d), append(m.dirs, filepath.Join(own.Dir, fmt.Sprint("n", i+1)))
		if i == 0 {
			token, err := d.CreateToken(t.Context(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			members, err := d.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			enter = []string{"--join", members[0].Address, "--token", token.Token}
		}
	}
	return m
}

type measured struct {
	seconds float64
	peak    []uint64
	shards  []uint64
	cpu     []time.Duration
	content string
	stages  []string // with the seconds at which they began
}

// note keeps the stages, each with when it began, in seconds, and the processor seconds that
// each daemon had taken by then.
func (m *measured) note(daemons []*bench.Daemon, before []time.Duration) func(api.DatasetEvent) {
	last, begin := "", time.Now()
	return func(e api.DatasetEvent) {
		if e.Progress == nil || e.Progress.Stage == last {
			return
		}
		last = e.Progress.Stage
		at := fmt.Sprintf("%.1f", time.Since(begin).Seconds())
		for i, d := range daemons {
			now, _ := bench.CPUTime(d.PID())
			at += fmt.Sprintf(" %.2f", (now - before[i]).Seconds())
		}
		m.stages = append(m.stages, at+" "+last)
	}
}

// make imports or generates the dataset, and removes it.
func (m *boundMesh) make(t *testing.T, name, what string, sources []string, scale float64) (r measured) {
	t.Helper()
	r.peak = make([]uint64, len(m.daemons))
	before := make([]time.Duration, len(m.daemons))
	for i, d := range m.daemons {
		before[i], _ = bench.CPUTime(d.PID())
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for i, d := range m.daemons {
		watching.Go(func() {
			for bench.Pause(ctx, 100*time.Millisecond) == nil {
				r.peak[i] = max(r.peak[i], onDisk(m.dirs[i])+unlinked(d.PID()))
			}
		})
	}
	none := 0
	o := api.DatasetOptions{Shards: 16, Replicas: &none, Seed: 1, Partitioner: what, Makers: "all"}
	begin, note := time.Now(), r.note(m.daemons, before)
	var err error
	var d api.Dataset
	if what == "generate" {
		o.Partitioner = "stream"
		d, err = m.daemons[0].GenerateDataset(ctx, api.GenerateRequest{Name: name, Preset: "products", Scale: scale, DatasetOptions: o}, note)
	} else {
		d, err = m.daemons[0].ImportDataset(ctx, api.ImportRequest{Name: name, Sources: sources, DatasetOptions: o}, note)
	}
	r.seconds = time.Since(begin).Seconds()
	stop()
	watching.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Shards {
		r.content += s.SHA256
	}
	for i, daemon := range m.daemons {
		after, _ := bench.CPUTime(daemon.PID())
		r.cpu = append(r.cpu, after-before[i])
		r.shards = append(r.shards, onDisk(filepath.Join(m.dirs[i], "datasets")))
	}
	if err := m.daemons[0].RemoveDataset(t.Context(), name, false); err != nil {
		t.Fatal(err)
	}
	return r
}

// onDisk adds up what the files in a folder take.
func onDisk(dir string) (n uint64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it has just gone
		}
		if info, err := e.Info(); err == nil {
			n += taken(info)
		}
		return nil
	})
	return n
}

// unlinked adds up the files that a process has open and that have no name.
func unlinked(pid int) (n uint64) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink == 0 {
			n += taken(info)
		}
	}
	return n
}

func taken(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blocks) * 512
	}
	return uint64(info.Size())
}
