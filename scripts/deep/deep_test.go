package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A few rows are trained in short, kept and told; nothing is trained twice, though two
// tables have it.
func TestRowsAreTrainedOnceAndTold(t *testing.T) {
	one := task{
		Asked: runs.Asked{Kept: filepath.Join(t.TempDir(), "runs.jsonl"), Rows: "cora/gcnii-16/graph,cora/gcnii-16/pipe W=1"},
		seeds: 1, epochs: 5,
	}
	var told bytes.Buffer
	if err := all(t.Context(), one, &told); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if len(lines) != 5 || strings.Count(told.String(), "1 of 1") != 4 {
		t.Fatalf("told is\n%s", told.String())
	}
	kept, err := os.ReadFile(one.Kept)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(kept, []byte("\n")); n != 2 {
		t.Errorf("%d runs are kept", n)
	}
	var again bytes.Buffer
	if err := all(t.Context(), one, &again); err != nil || again.String() != told.String() {
		t.Errorf("once more: %v\n%s", err, again.String())
	}
	if now, err := os.ReadFile(one.Kept); err != nil || !bytes.Equal(now, kept) {
		t.Errorf("once more, %d bytes are kept, and not %d: %v", len(now), len(kept), err)
	}
	one.seeds, one.Show = 2, true
	var more bytes.Buffer
	if err := all(t.Context(), one, &more); err != nil || strings.Count(more.String(), "1 of 2") != 4 {
		t.Errorf("of two seeds: %v\n%s", err, more.String())
	}
}

// The first seed of all rows of a subject is trained before the second.
func TestFirstSeedsComeFirst(t *testing.T) {
	list := rows(0)[:4]
	if todo := (task{}).todo(list); len(todo) != runs.Seeds*4 || todo[4*runs.Seeds-1].Seeds != runs.Seeds {
		t.Errorf("all seeds are %d rows", len(todo))
	}
	names := ""
	for _, r := range (task{seeds: 2}).todo(list) {
		names += fmt.Sprintf("%s %d; ", strings.TrimPrefix(r.Name, "cora/"), r.Seeds)
	}
	want := "gcnii-16/graph 1; gcnii-16/pipe W=1 1; gcnii-16/pipe W=2 1; gcnii-16/graph 2; gcnii-16/pipe W=1 2; gcnii-16/pipe W=2 2; " +
		"resgcn-16/graph 1; resgcn-16/graph 2; "
	if names != want {
		t.Errorf("trained are\n%s", names)
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
		if got := verdictOf(c.r, c.apart, c.whole); got != c.want {
			t.Errorf("%s, %+.2f: %q", c.r.table, c.apart, got)
		}
	}
}

func TestWhatCanNotBeRun(t *testing.T) {
	for want, wrong := range map[string]task{
		`no row has "nothing" in its name`: {Asked: runs.Asked{Rows: "nothing"}, seeds: 1},
		"-seeds -1":                        {seeds: -1},
		"-epochs -1":                       {seeds: 1, epochs: -1},
	} {
		wrong.Kept = filepath.Join(t.TempDir(), "none")
		if err := all(t.Context(), wrong, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// All rows can be trained, and what has one name is one recipe.
func TestRowsAreWhatTheyAreCalled(t *testing.T) {
	about := dataset.About{Vertices: 1000, Edges: 3000, Features: 20, Classes: 5, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}}}
	recipes, names := map[string]string{}, map[string]string{}
	for _, r := range rows(0) {
		recipe := r.run(1).Recipe
		if err := recipe.Check(about, strategies.All); err != nil {
			t.Errorf("%s: %v", r.id(), err)
		}
		text, err := json.Marshal(recipe)
		if err != nil {
			t.Fatal(err)
		}
		of := string(text)
		if was, ok := recipes[r.id()]; ok && was != of {
			t.Errorf("%s is two recipes", r.id())
		}
		if was, ok := names[r.graph+of]; ok && was != r.id() {
			t.Errorf("%s is %s, too", r.id(), was)
		}
		if strings.Contains(r.id(), ",") {
			t.Errorf("%s can't be asked for: a comma is between names", r.id())
		}
		recipes[r.id()], names[r.graph+of] = of, r.id()
	}
	if len(recipes) != 4*3+2*5+6 {
		t.Errorf("%d rows", len(recipes))
	}
}
