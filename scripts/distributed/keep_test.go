package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func cellOf(t *testing.T, m model, name string) cell {
	t.Helper()
	for _, c := range cells() {
		if c.setup == usual && c.layers == m.layers && c.hidden == m.hidden && c.side.name == name {
			return c
		}
	}
	t.Fatalf("there is no cell of %s with %s", name, m)
	return cell{}
}

// Runs that are done are not run again, unless they failed, their script has changed, or the machine is
// another one. Ours may be of another version, unless a version is asked for.
func TestFinishedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	k, err := load(file)
	if err != nil || len(k.Items) != 0 {
		t.Fatalf("%+v, %v", k, err)
	}
	now := takes{machine: "m", script: "b"}
	ours, theirs := cellOf(t, models[0], byLeap), cellOf(t, models[0], byMETIS)
	for _, r := range []run{
		{Cell: ours.key(), Repetition: 1, Version: "v1", Machine: "m", Seconds: []float64{1}},
		{Cell: ours.key(), Repetition: 1, Version: "v2", Machine: "m", Seconds: []float64{2}},
		{Cell: ours.key(), Settings: "batch 2048", Repetition: 2, Machine: "m", Seconds: []float64{1}},
		{Cell: ours.key(), Repetition: 2, Machine: "another", Seconds: []float64{1}},
		{Cell: ours.key(), Repetition: 3, Machine: "m", Error: "too slow"},
		{Cell: theirs.key(), Repetition: 1, Script: "b", Machine: "m", Seconds: []float64{1}},
	} {
		if r.Settings == "" {
			r.Settings = ours.settings()
			if r.Cell == theirs.key() {
				r.Settings = theirs.settings()
			}
		}
		if err := k.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	// The program was stopped while it wrote.
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(whole, `{"cell":"`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err = load(file); err != nil || len(k.Items) != 6 {
		t.Fatalf("%+v, %v", k, err)
	}
	for n, want := range map[int]bool{1: true, 2: false, 3: false} {
		if got := k.done(ours, n, now); got != want {
			t.Errorf("repetition %d is done: %t", n, got)
		}
	}
	if runs := k.of(ours, now); len(runs) != 1 || runs[0].Version != "v2" {
		t.Errorf("of two runs of a repetition these are taken: %+v", runs)
	}
	for version, want := range map[string]bool{"v1": true, "v3": false} {
		if got := k.done(ours, 1, takes{"m", "b", version}); got != want {
			t.Errorf("with %s repetition 1 is done: %t", version, got)
		}
	}
	if !k.done(theirs, 1, now) || k.done(theirs, 1, takes{"m", "new", ""}) || k.failed(ours, now) != "too slow" {
		t.Errorf("theirs is done: %t; ours failed: %q", k.done(theirs, 1, now), k.failed(ours, now))
	}
	if err := k.Add(run{Cell: theirs.key(), Repetition: 2, Script: "b"}); err != nil {
		t.Fatal(err)
	}
	if k, err = load(file); err != nil || len(k.Items) != 7 {
		t.Errorf("after a line that was cut off: %d runs, %v", len(k.Items), err)
	}
	if err := os.WriteFile(file, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(file); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
	}
}
