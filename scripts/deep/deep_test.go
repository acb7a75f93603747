package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A few rows are trained in short, kept and told; nothing is trained twice, though two
// tables have it.
func TestRowsAreTrainedOnceAndTold(t *testing.T) {
	one := task{
		folder: "../../engine/graph/read/testdata", file: filepath.Join(t.TempDir(), "runs.jsonl"),
		only: "cora/gcnii-16/graph,cora/gcnii-16/pipe W=1", seeds: 1, epochs: 5,
	}
	var told bytes.Buffer
	if err := all(t.Context(), one, &told); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if len(lines) != 5 || strings.Count(told.String(), "1 of 1") != 4 {
		t.Fatalf("told is\n%s", told.String())
	}
	k, err := runs.Load(one.file)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, s := range subjects() {
		s.recipe.Epochs = one.epochs
		for _, w := range ways[s.table] {
			id, err := runs.Digest(row{s, w}.whole())
			if err != nil {
				t.Fatal(err)
			}
			kept += len(k.Of(row{s, w}.id(), id, 0))
		}
	}
	if kept != 4 { // two, in two tables
		t.Errorf("%d rows are kept", kept)
	}
	var again bytes.Buffer
	one.folder = "nowhere"
	if err := all(t.Context(), one, &again); err != nil || again.String() != told.String() {
		t.Errorf("once more: %v\n%s", err, again.String())
	}
	one.seeds = 2
	if err := all(t.Context(), one, io.Discard); err == nil || !strings.Contains(err.Error(), "there is no file") {
		t.Errorf("a seed more, of a graph that is nowhere: %v", err)
	}
}

// What is more than a point below graph's mean is said to be, once all seeds are there.
func TestVerdicts(t *testing.T) {
	of := func(table string) row { return row{subject{table: table}, way{}} }
	for _, c := range []struct {
		r     row
		apart float64
		whole bool
		want  string
	}{
		{of(beside), -0.99, true, "holds"}, {of(beside), -1.01, true, "BELOW"}, {of(beside), 3, true, "holds"},
		{of(beside), -2, false, "not all seeds"}, {of(technique), -9, true, ""},
	} {
		if got := judged(c.r, c.apart, c.whole); got != c.want {
			t.Errorf("%s, %+.2f: %q", c.r.table, c.apart, got)
		}
	}
}

func TestWhatCanNotBeRun(t *testing.T) {
	for want, wrong := range map[string]task{
		`no row has "nothing" in its name`: {only: "nothing", seeds: 1},
		"-seeds 0":                         {},
		"-epochs -1":                       {seeds: 1, epochs: -1},
	} {
		wrong.file = filepath.Join(t.TempDir(), "none")
		if err := all(t.Context(), wrong, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// All rows can be trained, and what has one name is one recipe.
func TestRowsAreWhatTheyAreCalled(t *testing.T) {
	about := train.About{Vertices: 1000, Edges: 3000, Features: 20, Classes: 5, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}}}
	digests, names := map[string]string{}, map[string]string{}
	for _, s := range subjects() {
		for _, w := range ways[s.table] {
			r := row{s, w}
			recipe := r.whole()
			if err := recipe.Check(about); err != nil {
				t.Errorf("%s: %v", r.id(), err)
			}
			id, err := runs.Digest(recipe)
			if err != nil {
				t.Fatal(err)
			}
			if was, ok := digests[r.id()]; ok && was != id {
				t.Errorf("%s is two recipes", r.id())
			}
			if was, ok := names[r.graph+id]; ok && was != r.id() {
				t.Errorf("%s is %s, too", r.id(), was)
			}
			digests[r.id()], names[r.graph+id] = id, r.id()
		}
	}
	if len(digests) != 6*3+2*5+6 {
		t.Errorf("%d rows", len(digests))
	}
}
