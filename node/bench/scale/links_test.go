package scale

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// Bounds are below what they are compared with, and jobs ask for what their cells are about.
func TestLinkCells(t *testing.T) {
	const vertices = 100_000
	for _, c := range linkCells(1) {
		r := c.Job.request()
		switch c.Kind {
		case partners:
			if c.vertices() != vertices || c.Job.width() == 0 || r.Task != "link" || c.Nodes != 1 || c.Bound >= c.Trains || c.Bound >= 4*vertices*vertices {
				t.Errorf("%+v", c)
			}
			if c.Job.width() == 256 && c.Bound >= vertices*(4*256+8*perVertex) {
				t.Errorf("embeddings and partners take less than the bound of %s", c.name())
			}
		case killed:
			if c.Nodes != 4 || c.Bound >= tableBytes(c.vertices()) || *r.EvalEvery != 1 || *r.Epochs != 2 || !slices.Contains(r.Set, api.Setting{Key: "train.embeddings_at", Value: "owners"}) || c.graph().request.Features != 0 {
				t.Errorf("%+v", c)
			}
		}
	}
}

func TestLinkLines(t *testing.T) {
	all := linkCells(1)
	found := Measured{Bound: partnersRoom, Peak: []uint64{partnersTrain}, Later: []uint64{partnersRoom}, Predicted: 50, Worked: 20, Products: 10}
	change := func(m Measured, do func(*Measured)) Measured {
		do(&m)
		return m
	}
	rows := Measured{Bound: rowsRoom, Peak: []uint64{rowsRoom, 1}, Later: []uint64{rowsRoom, 1}, Predicted: 20, Events: "n2 was killed"}
	for what, c := range map[string]struct {
		cell cell
		m    Measured
		want string
	}{
		"found":                   {all[0], found, "ok ok ok"},
		"trained in too much":     {all[0], change(found, func(m *Measured) { m.Peak = []uint64{2 * partnersTrain} }), "MISSED ok ok"},
		"found in too much":       {all[0], change(found, func(m *Measured) { m.Later = []uint64{2 * partnersRoom} }), "ok MISSED ok"},
		"found slowly":            {all[0], change(found, func(m *Measured) { m.Worked = 21 }), "ok ok MISSED"},
		"not found":               {all[1], change(found, func(m *Measured) { m.Failed, m.Products = "predict: no", 0 }), "ok MISSED"},
		"not trained":             {all[1], Measured{Bound: partnersRoom, Refused: "it needs more memory"}, "MISSED MISSED"},
		"killed":                  {all[2], rows, "ok ok ok"},
		"took too much":           {all[2], change(rows, func(m *Measured) { m.Peak = []uint64{1, 2 * rowsRoom} }), "ok MISSED ok"},
		"did not go on":           {all[2], change(rows, func(m *Measured) { m.Failed = "no end" }), "ok ok MISSED"},
		"took too much after it":  {all[2], change(rows, func(m *Measured) { m.Later = []uint64{1, 2 * rowsRoom} }), "ok ok MISSED"},
		"a table that is smaller": {linkCells(0.05)[2], rows, "MISSED ok ok"},
	} {
		var got []string
		for _, l := range linkLines(c.cell, c.m) {
			got = append(got, l.Verdict)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", what, got, c.want)
		}
	}
}

// A graph of twice the vertices takes the products of four times the pairs.
func TestProducts(t *testing.T) {
	for _, perceptron := range []bool{false, true} {
		few, many := products(t.Context(), perceptron, 5000, 8), products(t.Context(), perceptron, 500_000, 8)
		if few <= 0 || many < 100*few {
			t.Errorf("%t: %g s and %g s", perceptron, few, many)
		}
	}
}

func TestCounter(t *testing.T) {
	var c counter
	for _, s := range []string{"a,b\nc", ",d\n\n", ""} {
		if _, err := io.WriteString(&c, s); err != nil {
			t.Fatal(err)
		}
	}
	if c.n != 3 || c.bytes != 9 {
		t.Errorf("%+v", c)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		job             api.Job
		refused, failed string
	}{
		{api.Job{State: "done"}, "", ""},
		{api.Job{State: "failed", Error: "it needs more memory"}, "it needs more memory", ""},
		{api.Job{State: "failed", Error: "it needs more memory", History: make([]api.JobEpoch, 2)}, "", "failed after 2 epochs: it needs more memory"},
		{api.Job{State: "stopped"}, "", "stopped after 0 epochs: "},
	} {
		if refused, failed := ended(c.job); refused != c.refused || failed != c.failed {
			t.Errorf("%+v: %q, %q", c.job, refused, failed)
		}
	}
}

// A daemon that is killed starts again in the same place, with another bound.
func TestADaemonStartsAgain(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hopmesh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec tail -f /dev/null\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := &mesh{program: program, dir: t.TempDir(), ports: []int{1}}
	was, err := m.start(t.Context(), program, m.dir, 0, 1, limit{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.daemons = []*daemon{was}
	if err := m.restart(t.Context(), 0, syscall.SIGKILL, 7); err != nil {
		t.Fatal(err)
	}
	now := m.daemons[0]
	if was.err == nil || was.err.Error() != "signal: killed" || now.addr != was.addr || !slices.Contains(now.cmd.Args, "7") || now.cmd.Process.Pid == was.cmd.Process.Pid {
		t.Errorf("%v, then %v", was.err, now.cmd.Args)
	}
	if err := m.stop(); err != nil {
		t.Error(err)
	}
}
