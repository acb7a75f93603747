package main

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// kepts returns runs of the whole list: DistDGL takes 10 s and 4 GB, DDP 5 s, all of ours 1.5 s and
// 1 GB. change may change a run, or leave it out.
func kepts(t *testing.T, change func(c cell, r *run) bool) report {
	t.Helper()
	k, err := load(filepath.Join(t.TempDir(), "runs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells() {
		for n := range 2 {
			seconds, memory := 1.5, uint64(1e9)
			switch c.side.framework {
			case "distdgl":
				seconds, memory = 10, 4e9
			case "ddp":
				seconds = 5
			}
			r := run{
				Cell: c.key(), Settings: c.settings(), Repetition: n + 1, Seconds: []float64{seconds + 1, seconds, seconds, seconds}, Bytes: []uint64{9, 8, 8, 1000}, Processor: []float64{3, 1, 1, 70},
				Memory: memory, Accuracy: 0.5, Chosen: "leap", Version: "v1",
			}
			if change == nil || change(c, &r) {
				k.Items = append(k.Items, r)
			}
		}
	}
	return report{cells(), k, takes{}, 2, ""}
}

func barsOf(r report) (values map[string]bar) {
	values = map[string]bar{}
	var found all
	for _, c := range r.cells {
		if runs := r.kept.of(c, r.takes); len(runs) > 0 {
			found = append(found, figuresOf(c, runs))
		}
	}
	for _, b := range found.bars() {
		values[b.what] = b
	}
	return values
}

func TestBars(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c cell, r *run) bool
		bar    string
		value  float64
		cases  int
		says   string
	}{
		"holds": {nil, "leap over DistDGL, later epochs, geometric mean", 0.15, 4, "holds"},
		"the better cut counts": {func(c cell, r *run) bool {
			if c.side.name == byOwn {
				r.Seconds = []float64{4, 3, 3, 3}
			}
			return true
		}, "leap over DistDGL, later epochs, worst case", 0.5, 4, "FALLS SHORT"},
		"one case is slow": {func(c cell, r *run) bool {
			if c.side.name == byLeap && c.setup == usual && c.model.String() == "3x128" {
				r.Seconds = []float64{4, 3, 3, 3}
			}
			return true
		}, "leap over DDP, later epochs, worst case", 0.6, 4, "FALLS SHORT"},
		"the average":  {nil, "leap over DDP, later epochs, average", 0.3, 4, "holds"},
		"first epochs": {nil, "leap over DistDGL, first epoch, worst case", 2.5 / 11, 4, "holds"},
		"all epochs":   {nil, "leap over DistDGL, all epochs together, worst case", 7.0 / 41, 4, ""},
		"no cache":     {nil, "leap without cache and copies over DistDGL, later epochs, worst case", 0.15, 4, "holds"},
		"auto chose badly on two nodes": {func(c cell, r *run) bool {
			if c.side.name == byAuto && c.nodes == 2 {
				r.Seconds = []float64{3, 2, 2, 2}
			}
			return true
		}, "auto over our best exact strategy, worst of all cells", 2 / 1.5, 22, "FALLS SHORT"},
		"grappa is no measure for auto": {func(c cell, r *run) bool {
			if c.side.other {
				r.Seconds = []float64{0.1, 0.1, 0.1, 0.1}
			}
			return true
		}, "auto over our best exact strategy, worst of all cells", 1, 22, "holds"},
		"one strategy is large": {func(c cell, r *run) bool {
			if c.side.name == "grappa" {
				r.Memory = 3e9
			}
			return true
		}, "memory of all our processes over DistDGL's, worst case and strategy but p3", 0.75, 4, "FALLS SHORT"},
		"half of the cases": {func(c cell, _ *run) bool { return c.side.name != byBare || c.layers == 2 },
			"leap without cache and copies over DistDGL, later epochs, worst case", 0.15, 2, "holds so far"},
		"nothing to compare with": {func(c cell, _ *run) bool { return c.side.framework != "ddp" }, "leap over DDP, later epochs, average", 0, 0, "not measured"},
	} {
		t.Run(name, func(t *testing.T) {
			got := barsOf(kepts(t, c.change))[c.bar]
			if math.Abs(got.value-c.value) > 1e-9 || got.cases != c.cases || got.verdict() != c.says {
				t.Errorf("%+v %s, want %.3f of %d cases: %s", got, got.verdict(), c.value, c.cases, c.says)
			}
		})
	}
}

// Bytes and processor time are of epochs that nothing but training is in.
func TestFigures(t *testing.T) {
	c := cellOf(t, models[0], byAuto)
	f := figuresOf(c, []run{
		{Seconds: []float64{3, 1, 2, 3}, Bytes: []uint64{90, 10, 20, 500}, Processor: []float64{9, 1, 3, 70}, Memory: 5, Accuracy: 0.5, Chosen: "leap"},
		{Seconds: []float64{3, 1, 2, 4}, Bytes: []uint64{90, 10, 20, 500}, Processor: []float64{9, 1, 3, 70}, Memory: 5, Accuracy: 0.5, Chosen: "centric"},
		{Seconds: []float64{3, 2, 2, 4}, Bytes: []uint64{90, 10, 20, 500}, Processor: []float64{9, 1, 3, 70}, Memory: 5, Accuracy: 0.5, Chosen: "leap"},
	})
	if f.first != 3 || f.second != 1 || f.later != 2 || math.Abs(f.whole-10) > 1e-9 || f.bytes != 15 || f.processor != 2 || f.memory != 5 || f.chosen != "centric or leap" || f.runs != 3 {
		t.Errorf("%+v", f)
	}
}

// Where two epochs end at once, what both took is shared out.
func TestEpochsThatEndAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		bytes     []uint64
		processor []float64
	}{
		"none":               {[]uint64{90, 10, 20, 500}, []float64{9, 1, 3, 70}},
		"the last two":       {[]uint64{90, 15, 30, 0}, []float64{9, 2, 4, 0.1}},
		"always two":         {[]uint64{90, 30, 0, 30, 0, 80}, []float64{9, 4, 0, 4, 0, 70}},
		"and the last three": {[]uint64{90, 30, 0, 45, 0}, []float64{9, 4, 0, 4, 0}},
	} {
		if bytes, processor := perEpoch(&run{Bytes: c.bytes, Processor: c.processor}); bytes < 15 || bytes > 19 || processor != 2 {
			t.Errorf("%s: %v bytes, %v s", name, bytes, processor)
		}
	}
}

// The plot has each side's speed over that of one node of the same side. A side that was not measured on
// both is left out.
func TestChart(t *testing.T) {
	r := kepts(t, func(c cell, r *run) bool {
		switch {
		case c.setup == usual && c.side.name == byLeap:
			r.Seconds = []float64{9, 0.5, 0.5, 0.5}
		case c.nodes == 1 && c.side.name == byMETIS:
			r.Seconds = []float64{9, 25, 25, 25}
		}
		return c.side.name != byDDP || c.nodes != 8
	})
	c := chart(r.found(&result.Page{}))
	if len(c.Rows) != 6 || c.Rows[1] != "2x16, 4 nodes" || c.Rows[2] != "2x16, 8 nodes of half its share" {
		t.Fatalf("the rows are %q", c.Rows)
	}
	for i, want := range [][]plot.Mark{ // of two, four and eight nodes
		{{Value: 2.5, Label: "2.50"}, {Value: 2.5, Label: "2.50"}, {Value: 2.5, Label: "2.50"}},
		{{Value: 1, Label: "1.00"}, {Value: 1, Label: "1.00"}, {Missing: true}},
		{{Value: 1, Label: "1.00"}, {Value: 3, Label: "3.00"}, {Value: 1, Label: "1.00"}},
	} {
		if got := c.Panels[0].Marks[i][:3]; !slices.Equal(got, want) {
			t.Errorf("%s: %+v", c.Series[i], got)
		}
	}
}

// The page has all that is there, says what is missing, and what failed.
func TestPage(t *testing.T) {
	text := func(r report) string {
		var s bytes.Buffer
		if err := r.page().Markdown(&s, ""); err != nil {
			t.Fatal(err)
		}
		return s.String()
	}
	whole := text(kepts(t, nil))
	for _, want := range []string{"leap", "grappa (another algorithm)", "auto (chose leap)", "holds", "## Bars", "## Headline", "## Graphs", "no bound", "## Protocol", "fixed before", "measured with v1"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is not in\n%s", want, whole)
		}
	}
	if strings.Contains(whole, "INCOMPLETE") || strings.Contains(whole, "FALLS SHORT") {
		t.Errorf("a whole page that holds says\n%s", whole)
	}
	some := kepts(t, func(c cell, r *run) bool {
		if c.side.name == byMETIS && c.part == "headline" {
			r.Error = "no memory"
		}
		return c.part == "headline" && r.Repetition == 1
	})
	got := text(some)
	for _, want := range []string{"INCOMPLETE: missing are 16 of 24 runs of the part headline", fmt.Sprint("of the part ", parts[1]), "failed: no memory", "not measured"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
