package data

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/node/bench"
)

func newRun(t *testing.T) *bench.Run {
	t.Helper()
	return &bench.Run{Dir: t.TempDir(), Notes: io.Discard}
}

// The built-in graph is cut, within what cuts may be out of balance by.
func TestCuts(t *testing.T) {
	run := newRun(t)
	list, err := graphs(run)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := cutOne(t.Context(), run, list[0])
	if err != nil || len(figures) != 12 {
		t.Fatalf("%+v, %v", figures, err)
	}
	for _, f := range figures {
		if f.Value <= 0 || f.Bar != "" && f.Baseline == "" && !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	run.Graphs = t.TempDir()
	if _, err := graphs(run); err == nil {
		t.Error("there are graphs in an empty folder")
	}
}

// The file that is imported has the graph that it was made of.
func TestWrittenGraphIsRead(t *testing.T) {
	made, err := generate.New(generate.Options{Kind: "rmat", Vertices: 100, Edges: 500, Features: 7, Classes: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "graph.npz")
	if err := errors.Join(writeNPZ(t.Context(), file, made), made.Close()); err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(t.Context(), file, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := src.Meta(); m.Vertices != 100 || m.Edges != 500 || m.Features != 7 {
		t.Errorf("%+v", m)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	run := newRun(t)
	if seconds, err := importOnce(t.Context(), run, file, "import"); err != nil || seconds <= 0 {
		t.Errorf("%g s, %v", seconds, err)
	}
	if took, n, err := copyFile(file, filepath.Join(run.Dir, "copy")); err != nil || took <= 0 || n == 0 {
		t.Errorf("%s for %d bytes, %v", took, n, err)
	}
}
