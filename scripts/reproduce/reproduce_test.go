package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/scripts/runs"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		judge
		ours float64
		want verdict
	}{
		{"at least 2", atLeast(2), 1.81, reproduced}, {"at least 2", atLeast(2), 1.79, partly},
		{"at least 2", atLeast(2), 1.01, partly}, {"at least 2", atLeast(2), 0.99, not},
		{"40 to 80", within(40, 80), 40, reproduced}, {"40 to 80", within(40, 80), 33, partly},
		{"40 to 80", within(40, 80), 99, partly}, {"40 to 80", within(40, 80), 31, not},
		{"at most 0.2", atMost(0.2), -3, reproduced}, {"at most 0.2", atMost(0.2), 0.5, partly}, {"at most 0.2", atMost(0.2), 1.1, not},
	} {
		if got := c.judge(c.ours); got != c.want {
			t.Errorf("%s: %g is %s, want %s", c.name, c.ours, got, c.want)
		}
	}
	for _, c := range []struct {
		all  []verdict
		want verdict
	}{
		{[]verdict{reproduced, reproduced}, reproduced}, {[]verdict{reproduced, not}, partly}, {[]verdict{partly, partly}, partly},
		{[]verdict{not, not}, not}, {[]verdict{reproduced, unknown}, unknown},
	} {
		if got := whole(c.all); got != c.want {
			t.Errorf("%v together is %s, want %s", c.all, got, c.want)
		}
	}
}

// reports are what the benches print, in short.
var reports = map[string]string{
	"time": `{"machine":"m","notes":["four nodes"],"figures":[],
		"ladder":[{"name":"centric","remote_rows":300,"requests":12},{"name":"+micrographs","remote_rows":100,"requests":48},{"name":"+pre-gathering","remote_rows":90,"requests":12}],
		"times":[{"model":"gcn","features":100,"hidden":16,"strategy":"centric","epoch_seconds":4,"fetching":0.5},
			{"model":"gcn","features":100,"hidden":16,"strategy":"leap","epoch_seconds":1},
			{"model":"gcn","features":100,"hidden":16,"strategy":"p3","way":"as published","epoch_seconds":9},
			{"model":"gcn","features":100,"hidden":16,"strategy":"p3","way":"fastest","epoch_seconds":0.5},
			{"model":"gat","features":100,"hidden":16,"strategy":"centric","epoch_seconds":1,"fetching":0.3},
			{"model":"gat","features":100,"hidden":16,"strategy":"leap","epoch_seconds":1},
			{"model":"gat","features":100,"hidden":16,"strategy":"p3","refused":"it has attention"}]}`,
	"grappa": `{"machine":"m","figures":[],"grappa":[
		{"centric_epoch_seconds":16,"grappa_epoch_seconds":1,"gradient_bytes":10,"gradient_formula":10},
		{"centric_epoch_seconds":1,"grappa_epoch_seconds":1,"gradient_bytes":10,"gradient_formula":11,"other_bytes":5}]}`,
	"pipe":               `{"machine":"m","figures":[],"pipe_volumes":[{"graph":"Reddit","counted_ratio":9,"our_ratio":4},{"graph":"arXiv","counted_ratio":90,"our_ratio":90}]}`,
	"pipe-time-squirrel": `{"machine":"m","figures":[]}`, "pipe-time-flickr": `{"machine":"m","figures":[]}`, "pipe-time-physics": `{"machine":"m","figures":[]}`,
	"pipe-time-reddit": `{"machine":"m","figures":[],"pipe_times":[
		{"graph":"Reddit","strategy":"graph","epoch_seconds":3},{"graph":"Reddit","nodes":4,"strategy":"pipe 4x1","epoch_seconds":2,"ratio":1.5,"published_ratio":1.2},
		{"graph":"Reddit","nodes":4,"strategy":"pipe 2x2","epoch_seconds":1,"ratio":3},
		{"graph":"Reddit","nodes":8,"strategy":"pipe 8x1","epoch_seconds":1,"ratio":4,"published_ratio":1.2}]}`,
	"pipe-time-arxiv": `{"machine":"m","figures":[],"pipe_times":[
		{"graph":"arXiv","nodes":4,"strategy":"pipe 4x1","epoch_seconds":2,"ratio":0.5,"published_ratio":1.1},
		{"graph":"arXiv","nodes":4,"strategy":"pipe 2x2","epoch_seconds":1,"ratio":1}]}`,
}

// means are accuracies of five seeds with a deviation of 0.2.
func means(_ context.Context, program string) ([]runs.Sum, error) {
	of := func(row string, nodes int, test float64) runs.Sum {
		return runs.Sum{Row: row, Nodes: nodes, Seeds: 5, Done: 5, Test: test, Deviation: 0.2}
	}
	missing := of("cora/gat 4/halo swept", 0, 1)
	missing.Done = 4
	return map[string][]runs.Sum{
		"accuracy": {of("cora/gcn", 0, 82), of("cora/gcn", 3, 81.95)},
		"ablation": {
			of("cora/gcn 4/one machine", 0, 80), of("cora/gcn 4/halo swept", 0, 81), of("cora/gcn 4/random halo swept", 0, 70),
			of("cora/sage 4/one machine", 0, 80), of("cora/sage 4/halo swept", 0, 79.9),
			of("cora/gat 4/one machine", 0, 80), missing,
		},
		"deep": {of("cora/gcnii-16/graph", 0, 80), of("cora/gcnii-16/pipe W=1", 0, 78.5), of("cora/gcnii-16/graph", 0, 80), of("cora/gcnii-16/pipe W=1", 0, 78.5)},
	}[program], nil
}

func TestPagesOfWhatIsKept(t *testing.T) {
	folder := t.TempDir()
	for name, report := range reports {
		text := fmt.Sprintf(`{"version":"abc","report":%s}`, report)
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	var said bytes.Buffer
	if err := (task{kept: folder, show: true, out: out, means: means}).run(t.Context(), &said); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"leapgnn": {
			`faster than with DGL, on average .*\| 2\.00x, geometric mean of 2 cases .*\| reproduced`, `faster than with DGL, at best .*\| 4\.00x, .*\| reproduced`,
			`faster than with P3, at worst .*\| 0\.50x, worst of 1 cases .*\| not`, `by grouping seeds .*\| 3\.00x.*\| reproduced`, `by pre-gathering .*\| 4\.00x.*\| reproduced`,
			`spent fetching .*\| 40 %, mean of 2 cases \(30 to 50\) .*\| partly`, `accuracy as with DGL .*\| -0\.05 points.*\| reproduced`,
			`Altogether: partly`, `Note: four nodes`, `Note: measured with abc`, `leapgnn\.svg`,
		},
		"grappa": {
			`epochs faster, on average .*\| 4\.00x.*\| reproduced`, `at best .*\| 16\.00x.*\| reproduced`, `only gradients travel .*\| 5 bytes, and gradients by formula in 1 of 2 cases .*\| not`,
			`deeper models .*\| better in 1, worse in 0 of 2 rows of four layers, else noise .*\| partly`, `halo and sweep on community shards, compared with one machine .*\| \+0\.45 points, mean of 2 rows; -0\.10 at worst \(cora/sage 4/halo swept\) .*\| reproduced`,
		},
		"gnnpipe": {
			`volume smaller, on average .*\| 9\.00x, geometric mean of 1 cases.*\| reproduced`, `and with the pipeline's own sums .*\| 4\.00x.*\| partly`,
			`epochs faster, on average .*\| 1\.50x, arithmetic mean of 1 cases at three rates without arXiv; 0\.87x geometric, of all .*\| reproduced`, `accuracy with one way, compared with graph parallelism .*\| -1\.50 points, mean of 1 rows.*\| not`,
		},
	} {
		page, err := os.ReadFile(filepath.Join(out, name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !regexp.MustCompile(line).Match(page) {
				t.Errorf("%s: there is no line %q in\n%s", name, line, page)
			}
		}
		if picture, err := os.ReadFile(filepath.Join(out, name+".svg")); err != nil || !bytes.Contains(picture, []byte("<svg")) {
			t.Errorf("%s: the picture: %v", name, err)
		}
	}
}

// A part is measured once, by the program, and what is not there is said where nothing may be
// measured.
func TestPartsAreMeasuredOnce(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "hopmesh")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = --version ]; then echo hopmesh 1.2.3; exit; fi\necho \"$@\" >> %s/asked\ncat <<'end'\n%s\nend\n", folder, reports["grappa"])
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	one := task{program: program, kept: filepath.Join(folder, "kept"), only: "grappa", means: means, show: true}
	say := func() string {
		var said bytes.Buffer
		if err := one.run(t.Context(), &said); err != nil {
			t.Fatal(err)
		}
		return said.String()
	}
	if said := say(); !strings.Contains(said, "not measured yet are grappa") || !strings.Contains(said, "Altogether, so far: not measured") {
		t.Errorf("before: %s", said)
	}
	one.show = false
	if first, second := say(), say(); first != second || !strings.Contains(first, "16.00x, best of 2 cases") || !strings.Contains(first, "measured with 1.2.3") {
		t.Errorf("%s\nthen %s", first, second)
	}
	asked, err := os.ReadFile(filepath.Join(folder, "asked"))
	if err != nil || string(asked) != "bench strategies --json --only grappa\n" {
		t.Errorf("asked: %q, %v", asked, err)
	}
	if err := os.WriteFile(filepath.Join(one.kept, "grappa.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := one.run(t.Context(), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "grappa.json is damaged: remove it") {
		t.Errorf("a damaged file: %v", err)
	}
}

// What is asked of the other commands is there.
func TestMeansOfOtherPrograms(t *testing.T) {
	t.Chdir("../..")
	all, err := meansOf(t.Context(), "ablation")
	if err != nil || len(all) < 100 || all[0].Seeds == 0 || !strings.Contains(all[0].Row, "/") {
		t.Errorf("%d means, %v", len(all), err)
	}
	if _, err := meansOf(t.Context(), "nothing"); err == nil || !strings.Contains(err.Error(), "scripts/nothing") {
		t.Errorf("of no program: %v", err)
	}
}
