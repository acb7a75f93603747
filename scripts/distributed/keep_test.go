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

// Runs that are done are not run again, unless they failed or what trains has changed.
func TestFinishedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	k, err := load(file)
	if err != nil || len(k.Items) != 0 {
		t.Fatalf("%+v, %v", k, err)
	}
	now := programs{"a", "b"}
	ours, theirs := cellOf(t, models[0], byLeap), cellOf(t, models[0], byMETIS)
	for _, r := range []run{
		{Cell: ours.key(), Repetition: 1, Program: "a", Seconds: []float64{1}},
		{Cell: ours.key(), Settings: "batch 2048", Repetition: 2, Program: "a", Seconds: []float64{1}},
		{Cell: ours.key(), Repetition: 2, Program: "old", Seconds: []float64{1}},
		{Cell: ours.key(), Repetition: 3, Program: "a", Error: "too slow"},
		{Cell: theirs.key(), Repetition: 1, Program: "b", Seconds: []float64{1}},
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
	if k, err = load(file); err != nil || len(k.Items) != 5 {
		t.Fatalf("%+v, %v", k, err)
	}
	for n, want := range map[int]bool{1: true, 2: false, 3: false} {
		if got := k.done(ours, n, now); got != want {
			t.Errorf("repetition %d is done: %t", n, got)
		}
	}
	if !k.done(theirs, 1, now) || k.done(theirs, 1, programs{"a", "new"}) || k.failed(ours, now) != "too slow" {
		t.Errorf("theirs is done: %t; ours failed: %q", k.done(theirs, 1, now), k.failed(ours, now))
	}
	if err := k.Add(run{Cell: theirs.key(), Repetition: 2, Program: "b"}); err != nil {
		t.Fatal(err)
	}
	if k, err = load(file); err != nil || len(k.Items) != 6 {
		t.Errorf("after a line that was cut off: %d runs, %v", len(k.Items), err)
	}
	if err := os.WriteFile(file, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(file); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
	}
}
