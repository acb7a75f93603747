package forecast

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// Every strategy that can be forecast for several nodes is compared, on all meshes, graphs
// and models.
func TestCells(t *testing.T) {
	if n := len(cells("", false)); n != 3*2*2*len(compared) {
		t.Errorf("%d cells", n)
	}
	for _, name := range strategies.All.Names() {
		if !strategies.All.Of(name).Elsewhere && (cell{Strategy: name}).strategy() == nil {
			t.Errorf("%s is not compared", name)
		}
	}
	if some := cells("sbm gcn leap 4,graph 8", false); len(some) != 5 {
		t.Errorf("%v", some)
	}
	for _, c := range cells("", true) {
		if r := c.job(); c.strategy().whole == (r.Batch != nil) || *r.EvalEvery <= *r.Epochs {
			t.Errorf("%s: %+v", c, r)
		}
	}
}

// A cell holds where all three are within their bars, and the mean of times has one, too.
func TestJudging(t *testing.T) {
	rows := []Row{
		{cell: cell{"sbm", "gcn", 2, "leap"}, Bytes: [2]uint64{104, 100}, Memory: [2]uint64{125, 100}, Seconds: [2]float64{1.5, 1}},
		{cell: cell{"sbm", "gcn", 4, "leap"}, Bytes: [2]uint64{106, 100}, Memory: [2]uint64{65, 100}, Seconds: [2]float64{0.25, 1}},
	}
	figures := figuresOf(rows)
	for i, want := range []float64{1, 1, 1, 62.5} {
		if figures[i].Value != want || figures[i].Holds {
			t.Errorf("%+v", figures[i])
		}
	}
	if figures = figuresOf(rows[:1]); !figures[0].Holds || !figures[1].Holds || !figures[2].Holds || figures[3].Holds {
		t.Errorf("%+v", figures)
	}
	rows = append(rows, Row{cell: cell{"rmat", "gcn", 4, "p3"}, Failed: "no"})
	if figures = figuresOf(rows); figures[0].Bar != "of 3" || figuresOf(nil) != nil {
		t.Errorf("%+v", figures)
	}
	var text bytes.Buffer
	r := Report{Rows: rows}
	p := &result.Page{}
	r.Show(p)
	if err := p.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"holds", "MISSES bytes, memory, time", "+25.0 %", "no"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

// Finished cells are kept for the program that measured them.
func TestCellsAreKept(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := bench.Config{Program: program, Scale: bench.ScaleConfig{Dir: dir}}
	c := cell{"sbm", "gcn", 2, "leap"}
	for i, want := range []int{0, 1, 0, 1} {
		s, err := open(cfg, io.Discard)
		if err != nil || len(s.kept) != want {
			t.Fatalf("%d: %v, %v", i, s, err)
		}
		if i == 0 {
			if err := s.keep(Row{cell: c, Bytes: [2]uint64{1, 2}}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 && s.kept[c.String()].Bytes != [2]uint64{1, 2} {
			t.Errorf("%+v", s.kept)
		}
		if i == 1 {
			if err := os.WriteFile(program, []byte("two"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg.Scale.Older = i == 2
	}
	if err := os.WriteFile(filepath.Join(dir, "cells.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "finished cells") {
		t.Error(err)
	}
}
