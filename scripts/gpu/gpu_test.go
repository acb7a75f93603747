package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newRunner(t *testing.T) *runner {
	t.Helper()
	return &runner{bundle: t.TempDir(), out: t.TempDir(), scratch: t.TempDir()}
}

// How steps end, with what they said.
func TestSteps(t *testing.T) {
	r := newRunner(t)
	for _, c := range []struct {
		step        step
		ended, says string
	}{
		{step{run: "true"}, good, ""},
		{step{run: "echo why; echo FAIL; exit 3"}, failed, "why"},
		{step{run: "echo 'testing: warning: no tests to run'"}, failed, "no tests"},
		{step{run: "exit 3"}, failed, "exit status 3"},
		{step{run: "true", needs: []string{"sh", "no-such-program"}}, missing, "no-such-program is not here"},
		{step{run: "true", after: "0"}, good, ""},
		{step{run: "true", after: "1"}, missing, "1 has not ended well"},
		{step{run: "true", after: "none"}, missing, "none has not ended well"},
		{step{run: "test -d $BUNDLE -a -d $SCRATCH -a -z \"$TINY\" -a -n \"$ARCH\""}, good, ""},
		{step{run: "cat here", dir: "folder"}, good, ""},
	} {
		if err := os.MkdirAll(filepath.Join(r.bundle, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.bundle, "folder", "here"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.step.name = string(rune('0' + len(r.ended)))
		c.step.limit = time.Minute
		got := r.run(t.Context(), c.step)
		if got.Ended != c.ended || !strings.Contains(got.Said, c.says) || got.Step != c.step.name {
			t.Errorf("%q: got %+v", c.step.run, got)
		}
	}
	if log, err := os.ReadFile(filepath.Join(r.out, "1.log")); err != nil || string(log) != "why\nFAIL\n" {
		t.Errorf("the log is %q, %v", log, err)
	}
}

// A step that takes too long ends at its limit with all that it started, and what it
// told before counts.
func TestLimit(t *testing.T) {
	r := newRunner(t)
	got := r.run(t.Context(), step{name: "long", limit: 300 * time.Millisecond, run: `printf 'figure\ta\t2\tms\n'; sleep 100 & sleep 100; true`})
	if got.Ended != late || got.Seconds > patience.Seconds() || len(got.Figures) != 1 || got.Figures[0] != (number{"a", 2, "ms"}) {
		t.Errorf("got %+v", got)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if got := r.run(over, step{name: "next", limit: time.Minute, run: "true"}); got.Ended != missing || got.Said != "there is no time left" {
		t.Errorf("got %+v", got)
	}
}

// A step beside the others is waited for in its turn.
func TestBeside(t *testing.T) {
	r := newRunner(t)
	first, second := step{name: "first", limit: time.Minute, run: "while ! test -e $SCRATCH/there; do :; done", beside: true}, step{name: "second", limit: time.Minute, run: "touch $SCRATCH/there"}
	r.begin(t.Context(), first)
	if got := r.run(t.Context(), second); got.Ended != good {
		t.Errorf("got %+v", got)
	}
	if got := r.run(t.Context(), first); got.Ended != good {
		t.Errorf("got %+v", got)
	}
}

func TestChoice(t *testing.T) {
	chosen, err := choose("pyg-blocks,ptxas")
	var names []string
	for _, s := range chosen {
		names = append(names, s.name)
	}
	if got := strings.Join(names, " "); err != nil || got != "ptxas graph blocks pyg-blocks" {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := choose("ptxas,none"); err == nil || !strings.Contains(err.Error(), `no step "none"`) {
		t.Errorf("got %v", err)
	}
	for _, s := range steps {
		if s.limit <= 0 || s.what == "" || s.run == "" {
			t.Errorf("%s: %+v", s.name, s)
		}
		if _, err := choose(s.name); err != nil {
			t.Error(err)
		}
	}
}

// Every bar's figures are ones that a step tells.
func TestBars(t *testing.T) {
	var told strings.Builder
	for _, file := range []string{"theirs.py", "measure/kernels.go", "measure/copies.go", "measure/train.go", "measure/blocks.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told.Write(text)
	}
	for _, b := range bars {
		for _, name := range []string{b.figure, b.over} {
			name, who, _ := strings.Cut(name, ", ")
			if !strings.Contains(told.String(), `"`+name) || !strings.Contains(told.String(), who) {
				t.Errorf("nobody tells %q", name)
			}
		}
	}
	got := figures("figure\tcopy\t100\tGB/s\nfigure\tgathered rows, ours\t50\tGB/s\nfigure\tcopy\t50\tGB/s\nfigure\tmean of features, ours\t30\tGB/s\n" +
		"figure\ttraining step, ours\t0.9\tms\nfigure\tx\tno\tms\nfigures\n")
	judged := map[string]verdict{}
	for _, v := range judge(got) {
		judged[v.What] = v
	}
	for what, want := range map[string]verdict{
		"gathered rows over a copy":    {"gathered rows over a copy", 1, "at least 0.8", true},
		"mean of features over a copy": {"mean of features over a copy", 0.6, "at least 0.8", false},
		"a batch of GraphSAGE in ms":   {"a batch of GraphSAGE in ms", 0.9, "at most 1", true},
	} {
		if judged[what] != want {
			t.Errorf("got %+v, want %+v", judged[what], want)
		}
	}
	if len(judged) != 3 {
		t.Errorf("got %+v", judged)
	}
}

func TestTable(t *testing.T) {
	tab, folder := &table{}, t.TempDir()
	tab.add(outcome{Step: "one", Ended: good, Figures: []number{{"copy", 100, "GB/s"}, {"gathered rows, ours", 70, "GB/s"}}})
	tab.add(outcome{Step: "two", Ended: missing, Said: "nvcc is not here"})
	if !tab.sound() {
		t.Error("what is left out is no failure")
	}
	tab.add(outcome{Step: "three", Ended: late})
	if err := tab.write(folder); err != nil || tab.sound() {
		t.Errorf("sound, %v", err)
	}
	for file, says := range map[string]string{"table.txt": "FALLS SHORT", "table.md": "| one ", "table.json": `"holds": false`} {
		if text, err := os.ReadFile(filepath.Join(folder, file)); err != nil || !strings.Contains(string(text), says) || !strings.Contains(string(text), "nvcc is not here") {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
}
