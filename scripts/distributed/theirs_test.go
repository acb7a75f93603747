package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

func TestParse(t *testing.T) {
	e, ok, err := parse(`@ {"event": "epoch", "epoch": 2, "seconds": 1.5, "steps": 12, "loss": 0.5}`)
	if !ok || err != nil || e != (event{Event: "epoch", Epoch: 2, Seconds: 1.5}) {
		t.Errorf("%+v, %t, %v", e, ok, err)
	}
	if _, ok, err := parse("Client[3] in group[0] is exiting..."); ok || err != nil {
		t.Error(ok, err)
	}
	if e, ok, err := parse(`node-1: @ {"event": "ready"}`); !ok || err != nil || e.Event != "ready" {
		t.Errorf("%+v, %t, %v", e, ok, err)
	}
	if _, ok, err := parse("me@ {here"); ok || err != nil {
		t.Error(ok, err)
	}
	if _, _, err := parse("@ {"); err == nil {
		t.Error("a line that was cut off counts as an event")
	}
}

func shell(t *testing.T, script string) *exec.Cmd {
	return exec.CommandContext(t.Context(), "sh", "-c", script)
}

// The ranks of a training are shell commands here, which print what ranks print.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		scripts []string
		want    []float64
		fails   string
	}{
		"trains": {scripts: []string{
			`echo noise; echo '@ {"event":"ready"}'; echo '@ {"event":"epoch","epoch":1,"seconds":2}'; echo '@ {"event":"epoch","epoch":2,"seconds":1}'; echo '@ {"event":"trained"}'`,
			`echo '@ {"event":"ready"}'; echo '@ {"event":"epoch","epoch":1,"seconds":1.5}'; echo '@ {"event":"epoch","epoch":2,"seconds":1.25}'; echo '@ {"event":"trained"}'`,
		}, want: []float64{2, 1.25}},
		"fails":            {scripts: []string{`echo '@ {"event":"ready"}'; echo "no memory" >&2; exit 3`}, fails: "no memory"},
		"counts from 0":    {scripts: []string{`echo '@ {"event":"epoch","epoch":0,"seconds":2}'`}, fails: "reports epoch 0"},
		"garbled":          {scripts: []string{`echo '@ {'`}, fails: "read the line"},
		"fails at its end": {scripts: []string{`echo '@ {"event":"trained"}'; exit 3`}, want: nil, fails: "after it had trained"},
	} {
		t.Run(name, func(t *testing.T) {
			logs := t.TempDir()
			a := newRanks(len(c.scripts))
			for i, s := range c.scripts {
				if err := a.start(shell(t, s), i, logs); err != nil {
					t.Fatal(err)
				}
			}
			m := newMeter(t.Context(), nil, func() []int { return nil })
			defer m.halt()
			var r run
			err := a.follow(t.Context(), m, &r)
			if err == nil {
				err = a.wait(t.Context())
			}
			if err != nil {
				a.kill()
				err = errors.Join(err, a.complaint(logs))
			}
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want %q", err, c.fails)
				}
				return
			}
			if err != nil || !slices.Equal(r.Seconds, c.want) || len(r.Bytes) != len(c.want) {
				t.Errorf("%+v, %v; want %v", r, err, c.want)
			}
		})
	}
}

// Ranks get the whole graph by DDP and their partitions by DistDGL, and a batch is divided.
func TestArguments(t *testing.T) {
	for name, want := range map[string]string{byMETIS: "p/metis/g.json", byOwn: "p/own/g.json", byDDP: "p/whole.pt"} {
		j := job{cell: cellOf(t, models[0], name), parts: "p", classes: 47, weights: "w"}
		text := strings.Join(j.arguments("m"), " ")
		if !strings.Contains(text, "--graph "+want+" ") || !strings.Contains(text, "--batch 256 ") || !strings.Contains(text, "--fanouts 10,10 ") {
			t.Errorf("%s: %s", name, text)
		}
		if env := j.environment(2, "10.0.0.1", "m"); !slices.Contains(env, "RANK=2") || !slices.Contains(env, "WORLD_SIZE=4") || !slices.Contains(env, "MASTER_ADDR=10.0.0.1") {
			t.Errorf("%v", env)
		}
	}
}

// A Python without the frameworks is refused in a sentence that says what to do.
func TestCheck(t *testing.T) {
	err := python{program: filepath.Join(t.TempDir(), "python")}.check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "make .tools/peers") {
		t.Error(err)
	}
}

func TestShardIn(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a/0003.safetensors": 5, "b/0003.safetensors": 7} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := shardIn(dir, api.DatasetShard{ID: 3, Bytes: 7}); err != nil || filepath.Base(filepath.Dir(found)) != "b" {
		t.Error(found, err)
	}
	if _, err := shardIn(dir, api.DatasetShard{ID: 4, Bytes: 7}); err == nil {
		t.Error("a missing shard was found")
	}
}

// A job that did not end well gives no figures.
func TestFill(t *testing.T) {
	half := 0.5
	j := api.Job{ID: "j", State: "done", History: make([]api.JobEpoch, epochs)}
	for i := range j.History {
		j.History[i].Seconds = float64(i + 1)
	}
	var r run
	if err := fill(&r, j, epochs); err == nil {
		t.Error("a job without a test accuracy")
	}
	j.History[epochs-1].TestAccuracy, j.History[epochs-1].Strategy = &half, "centric"
	r = run{}
	if err := fill(&r, j, epochs); err != nil || r.Accuracy != 0.5 || r.Chosen != "centric" || len(r.Seconds) != epochs || r.Seconds[1] != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	j.State, j.Error = "failed", "no memory"
	if err := fill(&r, j, epochs); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Error(err)
	}
}
