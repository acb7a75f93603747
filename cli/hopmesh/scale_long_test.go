//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/bench/scale"
)

// agentsIn returns the processes whose command line names a folder.
func agentsIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), dir) {
			list = append(list, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// The memory table is measured on daemons, kept, and gone on with; an interrupt leaves no
// daemon behind.
func TestMemoryTable(t *testing.T) {
	dir := box(t)
	args := []string{"bench", "scale", "--quick", "--dir", dir, "--only", "memory", "--rows", "products leap 1", "--json"}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cut := exec.CommandContext(t.Context(), path, args...)
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	kept := func() int {
		text, err := os.ReadFile(filepath.Join(dir, "quick", "cells.jsonl"))
		if err != nil {
			return 0
		}
		return strings.Count(string(text), `"cell"`)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for kept() == 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no cell is kept")
		}
	}
	if err := cut.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cut.Wait(); err == nil {
		t.Error("an interrupted run ends as if it were done")
	}
	if list := agentsIn(t, dir); len(list) > 0 {
		t.Errorf("daemons that an interrupt leaves: %v", list)
	}
	before := kept()

	stdout, stderr, code := hopmesh(t, args...)
	if code != 0 || !strings.Contains(stderr, fmt.Sprintf("%d are kept", before)) {
		t.Fatalf("%d: %s", code, stderr)
	}
	var report scale.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	bars := map[string]string{}
	for _, l := range report.Lines {
		bars[l.Cell] += l.Verdict + " "
	}
	if len(bars) != 4 || bars["products leap 1"] == "" || !strings.Contains(report.Lines[0].Measured, "needs ") {
		t.Errorf("%v, %+v", bars, report.Lines)
	}
	if again, _, code := hopmesh(t, append(args, "--show")...); code != 0 || again != stdout {
		t.Errorf("%d: kept are\n%s\nand were\n%s", code, again, stdout)
	}
	if list := agentsIn(t, dir); len(list) > 0 {
		t.Errorf("daemons that are left: %v", list)
	}
}

// Partners and learnt rows are measured on daemons within bounds. The job of which a daemon is killed goes on.
func TestLinksAndLearntRows(t *testing.T) {
	dir := box(t)
	stdout, stderr, code := hopmesh(t, "bench", "scale", "--quick", "--dir", dir, "--only", "links", "--json")
	if code != 0 {
		t.Fatalf("%d: %s", code, stderr)
	}
	var report scale.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	cells := map[string]int{}
	for _, l := range report.Lines {
		cells[l.Cell]++
		// Times, and what bounds are compared with, are for graphs of the whole size.
		if strings.HasPrefix(l.Bar, "done, peak at most ") && l.Verdict != "ok" {
			t.Errorf("%+v", l)
		}
	}
	if len(cells) != 3 || len(report.Lines) != 9 || !strings.Contains(stdout, "n2 was killed in step ") {
		t.Errorf("%v\n%s", cells, stdout)
	}
	if list := agentsIn(t, dir); len(list) > 0 {
		t.Errorf("daemons that are left: %v", list)
	}
}
