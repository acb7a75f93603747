// Package baseline holds the sampler's baseline: the same algorithm in C++, which
// is compiled where it is wanted, run on the same graph, and must draw the same.
package baseline

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/sample"
)

//go:embed source/sampler.cc
var source []byte

// Work is what both sides do: the roots, in batches, each a step of the epoch.
type Work struct {
	Fanouts     []int
	Seed, Epoch uint64
	Roots       []uint32
	Batch       int // roots of a step
	Threads     int
}

// A Result is what one side did.
type Result struct {
	Edges    uint64  // drawn
	Checksum uint64  // of all that was drawn, whoever drew it
	Seconds  float64 // of which the checksum took none
	CPU      float64 // seconds of all threads in that time; 0 where they can't be known
}

// Rate is in edges a second.
func (r Result) Rate() float64 { return float64(r.Edges) / r.Seconds }

// A Program is the compiled baseline with a graph for it. It has a folder of its own until
// it is closed.
type Program struct {
	dir string
	t   *sample.Topology
}

// Build compiles the baseline for a graph.
func Build(ctx context.Context, t *sample.Topology) (w *Program, err error) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return nil, fmt.Errorf("the sampler's baseline is in C++, and there is no g++ to compile it: install it, for example with `apt install g++`: %w", err)
	}
	dir, err := os.MkdirTemp("", "hopmesh-sampler-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the sampler's baseline: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	code := filepath.Join(dir, "sampler.cc")
	if err := os.WriteFile(code, source, 0o600); err != nil {
		return nil, fmt.Errorf("write the sampler's baseline: %w", err)
	}
	compile := exec.CommandContext(ctx, compiler, "-std=c++17", "-O3", "-march=native", "-pthread", "-o", filepath.Join(dir, "sampler"), code)
	if said, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s cannot compile the sampler's baseline: %w: %s", compiler, err, said)
	}
	return &Program{dir, t}, nil
}

// Close removes the folder.
func (w *Program) Close() error { return os.RemoveAll(w.dir) }

// Run does the work in C++.
func (w *Program) Run(ctx context.Context, work Work) (Result, error) {
	path := filepath.Join(w.dir, "graph")
	if err := w.write(path, work.Roots); err != nil {
		return Result{}, fmt.Errorf("give the graph to the sampler's baseline: %w", err)
	}
	args := []string{path}
	for _, n := range []uint64{work.Seed, work.Epoch, uint64(work.Batch), uint64(work.Threads)} {
		args = append(args, strconv.FormatUint(n, 10))
	}
	for _, k := range work.Fanouts {
		args = append(args, strconv.Itoa(k))
	}
	run := exec.CommandContext(ctx, filepath.Join(w.dir, "sampler"), args...)
	var complaint bytes.Buffer
	run.Stderr = &complaint
	said, err := run.Output()
	if err != nil {
		return Result{}, fmt.Errorf("run the sampler's baseline: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	var r Result
	if _, err := fmt.Sscan(string(said), &r.Edges, &r.Checksum, &r.Seconds, &r.CPU); err != nil {
		return Result{}, fmt.Errorf("the sampler's baseline printed %q: %w", said, err)
	}
	return r, nil
}

// write hands the graph over, and the roots.
func (w *Program) write(path string, roots []uint32) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, 1<<20)
	vertices := w.t.Vertices()
	put := func(data any) {
		if err == nil {
			err = binary.Write(b, binary.LittleEndian, data)
		}
	}
	put([]uint64{uint64(vertices), uint64(w.t.Edges()), uint64(len(roots))})
	put(int64(0))
	bound := int64(0)
	for v := range vertices {
		bound += int64(w.t.Degree(v))
		put(bound)
	}
	for v := range vertices {
		sources, _ := w.t.Row(v)
		put(sources)
	}
	put(roots)
	return errors.Join(err, b.Flush())
}
