package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A few rows are trained in short, kept, told and drawn; and nothing is trained twice. A
// halo as deep as the model comes to what one machine does.
func TestRowsAreTrainedOnceAndTold(t *testing.T) {
	folder := t.TempDir()
	one := task{
		folder: "../../engine/graph/read/testdata", file: filepath.Join(folder, "runs.jsonl"), plot: filepath.Join(folder, "means.svg"),
		only: "cora/sage 2/one machine,cora/sage 2/halo of 2 hops", seeds: 1, epochs: 3,
	}
	var told bytes.Buffer
	if err := all(t.Context(), one, &told); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(one.file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if len(lines) != 4 || bytes.Count(kept, []byte("\n")) != 3 {
		t.Fatalf("%d runs are told as\n%s", bytes.Count(kept, []byte("\n")), told.String())
	}
	if !strings.Contains(lines[2], "halo of 2 hops fixed") || !strings.Contains(lines[2], "+0.00") || !strings.Contains(lines[2], "100.0 %") {
		t.Errorf("a halo of all hops beside one machine: %s", lines[2])
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
	picture, err := os.ReadFile(one.plot)
	if err != nil {
		t.Fatal(err)
	}
	dots := 0
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("what is drawn is no picture: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "circle" {
			dots++
		}
	}
	if dots != 3 {
		t.Errorf("%d dots are drawn", dots)
	}
}

// In short, two seeds of Cora are trained, and nothing of them stays.
func TestBriefly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var told bytes.Buffer
	if err := briefly(t.Context(), task{folder: "../../engine/graph/read/testdata", only: "cora/sage 2/one machine SGD"}, &told); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(told.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "2 of 2") {
		t.Errorf("told is\n%s", told.String())
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

func TestWhatCanNotBeRun(t *testing.T) {
	for want, wrong := range map[string]task{
		`no row has "nothing" in its name`: {only: "nothing", file: filepath.Join(t.TempDir(), "none")},
	} {
		if err := all(t.Context(), wrong, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// All rows differ in name and in what is trained, and all of them can be.
func TestRowsAreAllDifferent(t *testing.T) {
	var ids []string
	for _, r := range rows() {
		ids = append(ids, r.id())
		recipe := r.whole()
		if err := recipe.Sharing.Check(); err != nil {
			t.Errorf("%s: %v", r.id(), err)
		}
		if err := recipe.Sharing.Grappa.CheckShards(shards); err != nil {
			t.Errorf("%s: %v", r.id(), err)
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != 229 {
		t.Errorf("%d rows, %d different", len(ids), n)
	}
}
