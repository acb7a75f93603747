package strategies

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// What is fixed can be asked for, and has steps enough to be measured.
func TestCasesCanBeAskedFor(t *testing.T) {
	on := map[string][]load{"sbm": append([]load{ladderLoad, interrupted}, shared...)}
	for _, w := range byteCases {
		on["sbm"], on["rmat"] = append(on["sbm"], w.load), append(on["rmat"], w.load)
		if w.planted <= 0 || w.planted > 1 {
			t.Errorf("%s: leap may send %gx", w, w.planted)
		}
	}
	for _, model := range timedModels {
		for _, hidden := range timedHidden {
			on["half"] = append(on["half"], load{model, hidden, timedFanouts, timedBatch})
		}
	}
	for _, g := range append(slices.Clone(graphSpecs), halfGraph) {
		for _, width := range widths {
			if err := g.made(width, 3).Check(); err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
		}
		if len(on[g.name]) == 0 {
			t.Errorf("nothing is trained on %s", g.name)
		}
		for _, l := range on[g.name] {
			if err := l.ask(g.name, "leap", 4).Check(); err != nil {
				t.Errorf("%s: %v", l, err)
			}
			if steps := g.vertices * 6 / 10 / uint64(l.batch); steps < 4 {
				t.Errorf("%s has %d steps an epoch on %s", l, steps, g.name)
			}
		}
	}
	declared := strategies.All.Declared()
	for nodes := 2; nodes <= 16; nodes++ {
		for _, s := range append(ladder(nodes), columnLadder()...) {
			r := recipe.DefaultRecipe("sage")
			r.Sharing.Strategy = s.strategy
			for _, set := range s.set {
				if err := r.Set(set.Key, set.Value, declared); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			}
			if err := errors.Join(declared.Check(&r.Sharing), declared.CheckNodes(&r.Sharing, nodes)); err != nil || s.epochs <= measured {
				t.Errorf("%s: %d epochs, %v", s.name, s.epochs, err)
			}
		}
		if l := link(nodes); l.Rate == 0 || l.Cores <= 0 || l.Cores > 0.45 {
			t.Errorf("%d nodes: %+v", nodes, l)
		}
	}
}

// The counts of a small mesh: what is printed is what the jobs' records say, and those
// say what the formulas do.
func TestCountsOfASmallMesh(t *testing.T) {
	t.Parallel() // it mostly waits
	const nodes, width = 3, 8
	dir := t.TempDir()
	f := fleet.New(filepath.Join(dir, "f"), "test")
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range nodes {
		if _, err := f.Launch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Until(t.Context(), "all nodes are in", f.AllReady); err != nil {
		t.Fatal(err)
	}
	on := f.Nodes[0].API()
	b := newSuite(t, bench.Config{Nodes: nodes, Plot: filepath.Join(dir, "ladder.svg")})
	small := []graphSpec{
		{name: "sbm", kind: "sbm", vertices: 2048, edges: 20_000, classes: 4, communities: 12, inside: 0.9, shards: 12, partitioner: "multilevel", planted: true},
		{name: "rmat", kind: "rmat", vertices: 2048, edges: 20_000, classes: 4, shards: 12, partitioner: "multilevel"},
	}
	l := load{"sage", 8, []int{4, 4}, 128}
	figures, err := countBytes(t.Context(), b, on, small, []int{width}, []byteCase{{l, 0.7}})
	if err != nil {
		t.Fatal(err)
	}
	sent := b.report.Sent
	if len(figures) != 3 || len(sent) != 4 {
		t.Fatalf("%+v of %+v", figures, sent)
	}
	for i, s := range sent {
		if s.Strategy != []string{"centric", "leap"}[i%2] || s.Graph != small[i/2].name || s.Steps != 10 || s.Width != width || s.Rows.Remote == 0 {
			t.Errorf("%+v", s)
		}
		want := s.Rows.Remote*(4*width+4) + s.Requests.Feature*(peer.QueryFraming+peer.AnswerFraming)
		if s.Bytes.Feature != want {
			t.Errorf("%s on %s: %d bytes of features, want %d", s.Strategy, s.Graph, s.Bytes.Feature, want)
		}
	}
	for i, f := range figures[:2] {
		if f.Value != float64(sent[2*i+1].Bytes.Feature)/1e6 || f.Ceiling != float64(sent[2*i].Bytes.Feature)/1e6 || !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	if f := figures[2]; f.Value <= 0 || f.Value > nodes*(nodes-1) || !f.Holds {
		t.Errorf("%+v", f)
	}
	d, err := on.GenerateDataset(t.Context(), small[0].made(16, 0), func(api.DatasetEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	swept, err := sweepBytes(t.Context(), b, on, small[0].named(width, 0), l, sweptRates)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range swept {
		if f.Value != float64(sent[1].Bytes.Feature)/1e6 || f.Ratio != []float64{1, 0.25}[i] || !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	checkLadder(t, b, on, d, l)
	checkColumns(t, b, on, d, l)
	if _, err := runJob(t.Context(), on, l.ask(d.Name, "graph", 1), silent); !isRefusal(err) {
		t.Errorf("a strategy that there is not: %v", err)
	}
	if _, err := runJob(t.Context(), on, l.ask("none", "leap", 1), silent); err == nil || isRefusal(err) {
		t.Errorf("a dataset that there is not: %v", err)
	}
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[errRefusal](err)
	return ok
}

func checkLadder(t *testing.T, b *suite, on host, d api.Dataset, l load) {
	t.Helper()
	figures, err := runLadder(t.Context(), b, on, d, l, ladder(b.run.Nodes))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	r := b.report.Ladder
	var slots []int
	for _, g := range r {
		slots = append(slots, g.Slots)
		if hops := g.Model / r[1].Model * 2; math.Abs(hops-float64(g.Slots-1)) > 0.001 {
			t.Errorf("%s sends %g bytes of models in %d slots", g.Name, g.Model, g.Slots)
		}
	}
	if len(r) != 6 || !slices.Equal(slices.Delete(slots, 3, 4), []int{1, 3, 3, 1, 1}) || r[3].Slots < 1 || r[3].Slots > 3 {
		t.Fatalf("%+v", r)
	}
	if r[1].Requests <= 2*r[2].Requests || r[4].Feature != r[5].Feature || r[4].Feature != r[2].Feature {
		t.Errorf("%+v", r)
	}
	drawnWith(t, ladderChart(r, "a < b"), "+pre-gathering (3)", "a < b", "requests for features, a step")
}

func checkColumns(t *testing.T, b *suite, on host, d api.Dataset, l load) {
	t.Helper()
	figures, err := runColumnLadder(t.Context(), b, on, d, l, columnLadder())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	r := b.report.Columns
	if len(r) != 5 || r[0].Activation != 0 || r[0].Feature == 0 || r[1].Topology == 0 || r[3].Model != r[1].Model || r[4].Behind != 2 {
		t.Errorf("%+v", r)
	}
	if out := printed(t, &Report{Columns: r}); !strings.Contains(out, "+push=resample") || !strings.Contains(out, "UPDATES BEHIND") {
		t.Error(out)
	}
}

// newSuite returns one that tests fill part by part.
func newSuite(t *testing.T, cfg bench.Config) *suite {
	t.Helper()
	return &suite{&bench.Run{Config: cfg, Dir: t.TempDir(), Notes: io.Discard}, &Report{}}
}

// printed returns a report as it is printed.
func printed(t *testing.T, r *Report) string {
	t.Helper()
	var out strings.Builder
	if err := bench.Page("Strategies", "v1", r).Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// drawnWith fails the test unless a chart's picture has some texts.
func drawnWith(t *testing.T, c *plot.Chart, texts ...string) {
	t.Helper()
	picture, err := c.Encode("svg")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for in := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
	for _, want := range texts {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not in the picture, which has %q", want, all)
		}
	}
}

func TestFiguresOfTimes(t *testing.T) {
	times := []Timed{
		{Model: "gcn", Width: 100, Hidden: 16, Strategy: "centric", Way: "centric", Seconds: 8, Fetching: 0.5},
		{Model: "gcn", Width: 100, Hidden: 16, Strategy: "leap", Way: "leap", Seconds: 2},
		{Model: "gcn", Width: 100, Hidden: 16, Strategy: "p3", Way: "p3, slow", Seconds: 20},
		{Model: "gcn", Width: 100, Hidden: 16, Strategy: "p3", Way: "p3", Seconds: 9},
		{Model: "gcn", Width: 100, Hidden: 16, Strategy: "p3", Way: "p3, exact", Seconds: 10},
		{Model: "gat", Width: 100, Hidden: 16, Strategy: "centric", Way: "centric", Seconds: 3, Fetching: 0.9},
		{Model: "gat", Width: 100, Hidden: 16, Strategy: "leap", Way: "leap", Seconds: 3},
		{Model: "gat", Width: 100, Hidden: 16, Strategy: "p3", Way: "p3", Refused: "p3 can't do it"},
	}
	figures := timeFigures(times)
	want := []bench.Figure{
		{Name: "an epoch of gcn, width 100, hidden 16, leap", Value: 2, Ratio: 0.25},
		{Name: "an epoch of gcn, width 100, hidden 16, p3, slow", Value: 20, Ratio: 2.5},
		{Name: "an epoch of gcn, width 100, hidden 16, p3", Value: 9, Ratio: 1.125},
		{Name: "an epoch of gcn, width 100, hidden 16, p3, exact", Value: 10, Ratio: 1.25},
		{Name: "an epoch of gat, width 100, hidden 16, leap", Value: 3, Ratio: 1},
		{Name: "share of its time that centric waits for features, mean", Value: 70, Holds: true},
		{Name: "leap faster than centric, geometric mean", Value: 2, Holds: true},
		{Name: "leap faster than the fastest p3, geometric mean", Value: 4.5},
		{Name: "leap faster than the fastest p3, at best", Value: 4.5, Holds: true},
	}
	if len(figures) != len(want) {
		t.Fatalf("%+v", figures)
	}
	for i, f := range figures {
		if w := want[i]; f.Name != w.Name || math.Abs(f.Value-w.Value) > 1e-9 || f.Ratio != w.Ratio || f.Holds != w.Holds {
			t.Errorf("%+v, want %+v", f, w)
		}
	}
	if f := timeFigures(times[5:]); f[len(f)-1].Holds || f[len(f)-2].Holds {
		t.Errorf("%+v", f)
	}
	r := &Report{Report: bench.Report{Notes: []string{"all is slow"}, Figures: figures}, Times: times, Sent: []Sent{{Graph: "sbm", Fanout: []int{4, 3}, Strategy: "leap", Steps: 1}}, Ladder: []LadderRow{{Name: "stay", Slots: 1}}}
	out := printed(t, r)
	for _, want := range []string{"Note: all is slow.", "gat with p3 is refused: p3 can't do it.", "50 %", "4,3", "stay", "0.25x", "at least 2 x"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestPartsHaveNames(t *testing.T) {
	if names := Parts(); len(names) == 0 || slices.Contains(names, "") {
		t.Errorf("%q", names)
	}
}
