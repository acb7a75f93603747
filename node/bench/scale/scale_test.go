package scale

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/bench/result"
)

func allCells() (list []cell) {
	list = append(list, memoryCells(1, sizes)...)
	list = append(list, fallingCells(1, sizes)...)
	list = append(list, deepCells(1, sizes)...)
	list = append(list, backCells(1, sizes)...)
	list = append(list, limitCells(1)...)
	list = append(list, linkCells(1)...)
	return append(list, papersCells(papersScale)...)
}

// Cells that differ have other names and keys, so that none is taken for another.
func TestCellsAreAllDifferent(t *testing.T) {
	names, keys := map[string]string{}, map[string]string{}
	for _, c := range allCells() {
		if key, ok := names[c.name()]; ok && key != c.key() {
			t.Errorf("two cells are called %s", c.name())
		}
		if name, ok := keys[c.key()]; ok && name != c.name() {
			t.Errorf("%s and %s have the same key", name, c.name())
		}
		names[c.name()], keys[c.key()] = c.key(), c.name()
		if c.graph().name == "" {
			t.Errorf("%s has no graph", c.name())
		}
	}
	if n := len(memoryCells(1, sizes)); n != 8*4*4 {
		t.Errorf("the memory table has %d cells", n)
	}
	c := memoryCells(1, sizes)[0]
	other := c
	other.Scale = 0.5
	if c.key() == other.key() {
		t.Error("a smaller graph has the same key")
	}
}

// What is asked for is what the bars are for: the largest sizes, no cache, no copies.
func TestProtocol(t *testing.T) {
	g := graphs(1, 0.1)
	for name, edges := range map[string]uint64{"products": 24e6, everywhere: 24e6, "deep": 38e6, "thousand": 6e6, "papers": 320e6} {
		if g[name].atLeast != edges {
			t.Errorf("%s must have %d edges", name, g[name].atLeast)
		}
		if r := *g[name].request.Replicas; (r > 0) != (name == everywhere) {
			t.Errorf("%s has %d copies", name, r)
		}
	}
	for _, j := range fallingJobs() {
		if j.Strategy == "leap" && !slices.Contains(j.Set, "leap.cache=0") {
			t.Errorf("leap is measured with %v", j.Set)
		}
		r := j.request()
		if r.Strategy != j.Strategy || *r.EvalEvery != *r.Epochs || len(r.Set) != len(j.Set) {
			t.Errorf("%+v", r)
		}
	}
	for _, c := range papersCells(0.1) {
		if c.Nodes != 4 || c.Bound != gib {
			t.Errorf("%+v", c)
		}
	}
	if c := thousand(); c.Layers != 1000 || c.Hidden != 16 || c.Batch != 0 {
		t.Errorf("%+v", c)
	}
}

func TestBars(t *testing.T) {
	trained := func(bound, idle, peak, forecast uint64) Measured {
		return Measured{Bound: bound * mib, Idle: []uint64{idle * mib, mib}, Peak: []uint64{peak * mib, mib}, Forecast: []uint64{forecast * mib, 0}}
	}
	refused := func(peak uint64) Measured {
		m := trained(100, 10, peak, 0)
		m.Refused = "it needs more memory"
		return m
	}
	forecast := func(f uint64) Line {
		l, ok := judgeForecast(trained(0, 10, 100, f))
		if !ok {
			t.Errorf("a job that was trained has no line")
		}
		return l
	}
	later := func(now uint64) Measured {
		m := trained(0, 10, 500, 0)
		m.Later = []uint64{now * mib, mib}
		return m
	}
	answered := func(seconds float64, peak uint64) Measured {
		m := refused(peak)
		m.Seconds = seconds
		return m
	}
	died := trained(100, 10, 50, 0)
	died.Failed = "n1 ended"
	for what, c := range map[string]struct {
		line Line
		want string
	}{
		"within the bound":          {judgeBound(trained(100, 10, 114, 0)), holds},
		"over the bound":            {judgeBound(trained(100, 10, 116, 0)), missed},
		"refused":                   {judgeBound(refused(74)), holds},
		"refused late":              {judgeBound(refused(75)), missed},
		"died":                      {judgeBound(died), missed},
		"without a bound":           {judgeBound(trained(0, 10, 999, 0)), ""},
		"forecast":                  {forecast(130), holds},
		"forecast too high":         {forecast(131), missed},
		"forecast too low":          {forecast(84), missed},
		"no forecast":               {forecast(0), missed},
		"falls":                     {judgeFall(trained(0, 10, 1010, 0), trained(0, 20, 470, 0), 0.45), holds},
		"does not fall":             {judgeFall(trained(0, 10, 1010, 0), trained(0, 20, 471, 0), 0.45), missed},
		"falls, no bar":             {judgeFall(trained(0, 10, 1010, 0), trained(0, 20, 999, 0), 0), ""},
		"falls, died":               {judgeFall(trained(0, 10, 1010, 0), died, 0.45), missed},
		"given back":                {judgeLater(later(74)), holds},
		"not given back":            {judgeLater(later(75)), missed},
		"hundredth":                 {judgeRepeat(later(550)), holds},
		"hundredth takes more":      {judgeRepeat(later(551)), missed},
		"answered":                  {judgeAnswer(answered(2, 74)), holds},
		"answered late":             {judgeAnswer(answered(2.1, 74)), missed},
		"answered and taken":        {judgeAnswer(answered(1, 75)), missed},
		"not answered":              {judgeAnswer(trained(300, 10, 20, 0)), missed},
		"limit, trained":            {judgeLimit(trained(100, 10, 99, 0)), holds},
		"limit, refused":            {judgeLimit(refused(20)), holds},
		"limit, died":               {judgeLimit(died), missed},
		"step":                      {judgeStep(trained(100, 10, 114, 0), "", []uint64{114 * mib}, 1), holds},
		"step over the bound":       {judgeStep(trained(100, 10, 114, 0), "", []uint64{116 * mib}, 1), missed},
		"step refused":              {judgeStep(refused(20), "", []uint64{20 * mib}, 1), missed},
		"in time":                   {judgeTime(3600), holds},
		"too late":                  {judgeTime(3601), missed},
		"step not reached":          {judgeStep(trained(100, 10, 114, 0), "", nil, 0), missed},
		"limit, peak beyond memory": {judgeLimit(trained(100, 10, 121, 0)), missed},
	} {
		if c.line.Verdict != c.want {
			t.Errorf("%s: %+v", what, c.line)
		}
	}
	if _, ok := judgeForecast(refused(20)); ok {
		t.Error("a refused job has a forecast to compare")
	}
}

func TestKeptRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cells.jsonl")
	k, err := load(file, "a")
	if err != nil {
		t.Fatal(err)
	}
	c := memoryCells(1, sizes)[0]
	if _, ok := k.of(c, 0); ok {
		t.Error("a cell is there before it is kept")
	}
	if err := k.add(row{Key: c.key(), Program: "a", Measured: Measured{Bound: 7, Peak: []uint64{5}}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"cut o`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next := memoryCells(1, sizes)[1]
	if err := k.add(row{Key: next.key(), Program: "a"}); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]bool{"a": true, "": true, "b": false} {
		k, err := load(file, program)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := k.of(c, 7)
		if _, second := k.of(next, 0); ok != want || second != want || ok && r.Peak[0] != 5 {
			t.Errorf("for program %q: %v, %+v", program, ok, r)
		}
		if _, ok := k.of(c, 8); ok {
			t.Error("a row of another bound is taken")
		}
	}
}

func TestReadings(t *testing.T) {
	n, err := held("Name:\thopmesh\nRssAnon:\t    2048 kB\nRssFile:\t 4096 kB\nRssShmem:\t    1024 kB\n")
	if err != nil || n != 3*mib {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "RssAnon:\t1 kB\n", "RssAnon:\tmuch kB\nRssShmem:\t1 kB\n"} {
		if n, err := held(bad); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
	if n, err := available(); err != nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
	log := "level=INFO msg=\"will train\" node=n1 job=j1 shard_bytes=5 arena_bytes=100 weights=3\n" +
		"level=INFO msg=\"will train\" node=n1 job=j1 shard_bytes=5 arena_bytes=70 weights=3\nlevel=INFO msg=\"has ended a job\" arena_bytes=9\n"
	if n := forecastIn(log); n != 70 {
		t.Errorf("the forecast is %d", n)
	}
	if n := forecastIn("nothing"); n != 0 {
		t.Errorf("the forecast is %d", n)
	}
}

// The watcher sees memory that this process takes while it watches.
func TestWatcherSeesThePeak(t *testing.T) {
	before, err := heldBy(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t.Context(), []int{os.Getpid(), 1 << 30}, 0, func(error) {})
	room := make([]byte, 256*mib)
	for i := range room {
		room[i] = 1
	}
	w.read() // the clock's readings depend on how fast that was
	runtime.KeepAlive(room)
	most := w.end()
	if most[0] < before+200*mib || most[1] != 0 {
		t.Errorf("from %d to %v", before, most)
	}
}

// A process that takes far more than it may is given up.
func TestWatcherGivesUp(t *testing.T) {
	why := make(chan error, 1)
	w := watch(t.Context(), []int{os.Getpid()}, 1, func(err error) { why <- err })
	if err := <-why; !errors.Is(err, errFar) {
		t.Error(err)
	}
	if most := w.end(); most[0] == 0 {
		t.Error("nothing was read")
	}
	if far(0) != 0 || far(gib) != 3*gib {
		t.Error(far(0), far(gib))
	}
}

// A copy has files of its own, but for shards, and neither locks nor sockets.
func TestMeshesAreCopied(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "run")
	for _, f := range []string{"n1/raft/log", "n1/datasets/a/0000.safetensors", "n1/lock", "n1.log"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, f), []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyMesh(from, to); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]bool{"n1/raft/log": true, "n1/datasets/a/0000.safetensors": true, "n1/lock": false, "n1.log": false} {
		text, err := os.ReadFile(filepath.Join(to, f))
		if (err == nil) != want || want && string(text) != f {
			t.Errorf("%s: %q, %v", f, text, err)
		}
	}
	a, err := os.Stat(filepath.Join(from, "n1/raft/log"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.Stat(filepath.Join(to, "n1/raft/log"))
	if err != nil || os.SameFile(a, b) {
		t.Errorf("the copy shares its log, %v", err)
	}
}

// A daemon that ends at once says so, with the end of its log.
func TestDaemonThatEnds(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hopmesh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho 'fatal error: out of memory'\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := launch(t.Context(), program, t.TempDir(), []int{1}, limit{})
	if err == nil || !strings.Contains(err.Error(), "n1 ended: exit status 3: fatal error: out of memory") {
		t.Error(err)
	}
	if _, err := exec.LookPath("prlimit"); err == nil {
		_, err := launch(t.Context(), program, t.TempDir(), []int{1}, limit{kind: "data", real: 100 * mib})
		if err == nil || !strings.Contains(err.Error(), "fatal error: out of memory") {
			t.Error(err)
		}
	}
}

func TestReportCountsBars(t *testing.T) {
	r := &Report{Lines: []Line{{Part: "memory", Cell: "a", Bar: "b", Verdict: holds}, {Part: "memory", Cell: "c", Bar: "d", Verdict: missed, Version: "v1"}, {Part: "memory", Cell: "e"}}}
	p := &result.Page{}
	r.Show(p)
	var out strings.Builder
	if err := p.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Bounded memory  2     1    1", "\nc ", "MISSED", "Measured with version v1."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
