package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A few rows are trained in short, kept, told and drawn; and nothing is trained twice. A
// halo as deep as the model comes to what one machine does, and three nodes to the weights
// of one.
func TestRowsAreTrainedOnceAndTold(t *testing.T) {
	folder := t.TempDir()
	one := task{
		Asked: runs.Asked{Kept: filepath.Join(folder, "runs.jsonl"), Rows: "cora/sage 2/one machine,cora/sage 2/halo of 2 hops,cora/sage 2/halo swept in"},
		plot:  filepath.Join(folder, "means.svg"), seeds: 1, epochs: 3,
	}
	var told bytes.Buffer
	if err := all(t.Context(), one, &told); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(one.Kept)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(kept, []byte("\n")); n != 6 {
		t.Fatalf("%d runs are told as\n%s", n, told.String())
	}
	for _, line := range []string{
		`\| halo of 2 hops fixed +\| \d+\.\d\d ± 0.00, \*1 still improved\* \(\+0\.00\) +\| 100 % +\|`,
		`\| Cora +\| one node +\| .* [0-9a-f]{12} +\| 1 of 1`,
		`\| Cora +\| 3 nodes +\| .* [0-9a-f]{12} +\| 1 of 1`,
	} {
		if !regexp.MustCompile(line).MatchString(told.String()) {
			t.Errorf("there is no line\n%s\nin\n%s", line, told.String())
		}
	}
	var again bytes.Buffer
	one.Graphs = "nowhere"
	if err := all(t.Context(), one, &again); err != nil || again.String() != told.String() {
		t.Errorf("once more: %v\n%s", err, again.String())
	}
	picture, err := os.ReadFile(one.plot)
	if err != nil {
		t.Fatal(err)
	}
	var drawn struct {
		Panels []struct {
			Groups []struct {
				Class string   `xml:"class,attr"`
				Texts []string `xml:"text"`
			} `xml:"g"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal(picture, &drawn); err != nil {
		t.Fatalf("the picture is no XML: %v", err)
	}
	labels := 0
	for _, p := range drawn.Panels {
		for _, g := range p.Groups {
			if g.Class == "labels" {
				labels += len(g.Texts)
			}
		}
	}
	if labels != 2 { // of one machine and of the halo
		t.Errorf("%d means are drawn", labels)
	}
}

// In short, two seeds of Cora are trained, and nothing of them stays.
func TestBriefly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var told bytes.Buffer
	if err := briefly(t.Context(), task{Asked: runs.Asked{Rows: "cora/sage 2/one machine SGD"}}, &told); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`one machine SGD +\| \d\d\.\d\d ± \d+\.\d\d, \*2 still improved\* +\|`).MatchString(told.String()) {
		t.Errorf("told is\n%s", told.String())
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

func TestWhatCanNotBeRun(t *testing.T) {
	for want, asked := range map[string]runs.Asked{
		`no row has "nothing" in its name`: {Rows: "nothing"},
		"there is no file":                 {Rows: "citeseer/sage 2/one machine SGD", Graphs: "nowhere"},
	} {
		asked.Kept = filepath.Join(t.TempDir(), "none")
		if err := all(t.Context(), task{Asked: asked}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What falls short of the bar is said to, and what was not run, or not with all seeds.
func TestWhatIsSaidOfMeans(t *testing.T) {
	at := func(name string, done int, test float64) mean {
		return mean{row{seeds: 3, way: way{name: name}}, runs.Mean{Done: done, Test: test, Deviation: 0.25}}
	}
	one := at(alone, 3, 80)
	for want, m := range map[string]mean{
		"79.10 ± 0.25 (-0.90)":                     at(full, 3, 79.1),
		"78.90 ± 0.25 (-1.10) **short**":           at(full, 3, 78.9),
		"78.80 ± 0.25 (-1.20) **short**":           at(scattered, 3, 78.8),
		"78.90 ± 0.25, *2 of 3* (-1.10) **short**": at(pair, 2, 78.9),
		"70.00 ± 0.25 (-10.00)":                    at("strict fixed none", 3, 70),
		"*not run yet*":                            at(full, 0, 0),
	} {
		if got := m.beside(&one); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A row whose means are all within noise of one machine's tells nothing, once all seeds are there.
func TestWhatTellsNothing(t *testing.T) {
	at := func(done int, test float64) mean {
		return mean{row{seeds: 5}, runs.Mean{Done: done, Test: test, Deviation: 0.5}}
	}
	one := at(5, 80)
	for _, c := range []struct {
		ways []mean
		want string
	}{
		{[]mean{at(5, 80.2), at(5, 79.6)}, "noise: tells nothing"},
		{[]mean{at(5, 80.2), at(5, 79.2)}, ""},
		{[]mean{at(5, 80.2), at(4, 80)}, ""},
		{nil, ""},
	} {
		if got := tells(c.ways, []mean{one, one}); got != c.want {
			t.Errorf("%v: %q", c.ways, got)
		}
	}
}

// All rows differ in name and in what is trained, and all of them can be.
func TestRowsAreAllDifferent(t *testing.T) {
	var ids []string
	declared := strategies.All.Declared()
	for _, r := range rows() {
		ids = append(ids, r.id())
		recipe := r.whole()
		if err := declared.Check(&recipe.Sharing); err != nil {
			t.Errorf("%s: %v", r.id(), err)
		}
		if err := declared.CheckShards(&recipe.Sharing, shards); err != nil {
			t.Errorf("%s: %v", r.id(), err)
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != 198 {
		t.Errorf("%d rows, %d different", len(ids), n)
	}
}
