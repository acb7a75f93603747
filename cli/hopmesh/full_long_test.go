//go:build long

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// roomFor has each file of the daemon's process take so many bytes at most: a write beyond
// them fails as on a full disk.
func (d *daemon) roomFor(bytes uint64) {
	d.t.Helper()
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
		d.t.Fatal(err)
	}
}

// fullFile is what files may take in these tests: logs of the plan fit, and what jobs keep does
// not.
const fullFile = 4 << 20

// lives fails if the daemon's process has ended.
func (d *daemon) lives() {
	d.t.Helper()
	select {
	case <-d.done:
		d.t.Fatalf("the daemon died: %s", lastLines(d.out.String(), 30))
	default:
	}
}

// halves lists what was written in part and has stayed.
func (d *daemon) halves() (list []string) {
	d.t.Helper()
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(e.Name(), ".tmp") {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// saysFull fails unless a text is one sentence that says where there is no room and what to
// do.
func saysFull(t *testing.T, text, where string) {
	t.Helper()
	if text = strings.TrimSpace(text); strings.Contains(text, "\n") || strings.Count(text, "file too large") != 1 || strings.Count(text, "free some space") != 1 || !strings.Contains(text, where) {
		t.Errorf("it says %q", text)
	}
}

// asked starts a job of a recipe.
func (d *daemon) asked(recipe string) string {
	d.t.Helper()
	var id struct {
		ID string `json:"id"`
	}
	d.must(&id, append([]string{"train", "start"}, strings.Fields(recipe)...)...)
	return id.ID
}

// resumes has a job go on that has failed, and fails unless it is done then.
func (d *daemon) resumes(id string) {
	d.t.Helper()
	d.must(new(any), "train", "resume", id)
	if j := d.ended(id); j.State != "done" || j.Error != "" || len(j.History) != j.EpochsTotal {
		d.t.Errorf("with room again, %s is %s after epoch %d of %d: %s", id, j.State, len(j.History), j.EpochsTotal, j.Error)
	}
}

func (d *daemon) said(text string) int { return strings.Count(d.out.String(), text) }

// A job whose checkpoints find no room goes on with an older one, or ends in one sentence and
// is resumed. Nothing that is written in part stays.
func TestFullDisk(t *testing.T) {
	dir := box(t)
	d := start(t, dir, "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "it is ready", d.ready)
	d.must(new(any), "dataset", "generate", "small", "--kind", "sbm", "--vertices", "1000", "--edges", "6000", "--features", "16", "--classes", "4", "--shards", "4")
	const large = "--dataset small --layers 3 --hidden 1100 --epochs "
	const unwritten = "a checkpoint could not be written"

	// There is an older one.
	id := d.asked(large + "10000 --eval-every 1000")
	var last string
	until(t, "there is a checkpoint", func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "jobs", id+"-*", "last.safetensors"))
		last = strings.Join(all, "")
		return len(all) == 1
	})
	d.roomFor(fullFile)
	until(t, "the next finds no room", func() bool { return d.said(unwritten) > 0 })
	at := d.summary(id).Epoch
	until(t, "the job goes on", func() bool { return d.summary(id).Epoch > at+1 })
	if h := d.halves(); len(h) > 0 {
		t.Errorf("%s are left", h)
	}
	d.roomFor(unix.RLIM_INFINITY)
	before, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the next is written", func() bool {
		now, err := os.Stat(last)
		return err == nil && now.ModTime().After(before.ModTime())
	})
	if n := d.said(unwritten); n != 1 {
		t.Errorf("it is said %d times that a checkpoint could not be written", n)
	}
	d.must(new(any), "train", "stop", id)
	until(t, "it has stopped", func() bool { return d.summary(id).State == "stopped" })

	// No checkpoint fits.
	d.roomFor(fullFile)
	id = d.asked(large + "3")
	failsForRoom(t, d, id, "any checkpoint")
}

// failsForRoom checks that a job ends in one sentence for want of room for something, leaves
// nothing half-written, and can be resumed once there is room.
func failsForRoom(t *testing.T, d *daemon, id, what string) {
	t.Helper()
	j := d.ended(id)
	if j.State != "failed" {
		t.Errorf("without room for %s it is %s", what, j.State)
	}
	saysFull(t, j.Error, filepath.Join("jobs", id))
	if h := d.halves(); len(h) > 0 {
		t.Errorf("%s are left", h)
	}
	d.lives()
	d.roomFor(unix.RLIM_INFINITY)
	d.resumes(id)
}

// A job ends in one sentence whose evaluation lies in files and finds no room, and is resumed.
func TestFullDiskInEvaluation(t *testing.T) {
	dir := box(t)
	d := start(t, dir, "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "it is ready", d.ready)
	d.must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "100000", "--edges", "800000", "--features", "64", "--classes", "8", "--shards", "8")
	d.signal(os.Interrupt)
	d.exit()
	d = start(t, dir, "--name", "n1", "--listen", "127.0.0.1:0", "--memory", fmt.Sprint(84<<20))
	until(t, "it is ready", d.ready)
	d.roomFor(fullFile)
	id := d.asked("--dataset g --model sage --layers 2 --hidden 64 --batch 256 --fanout 5,5 --epochs 2 --eval-every 1")
	failsForRoom(t, d, id, "evaluation")
}

// Predictions that find no room end in one sentence, leave nothing, and come once there is
// room.
func TestPredictionsOnAFullDisk(t *testing.T) {
	dir := box(t)
	d := start(t, dir, "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "it is ready", d.ready)
	d.must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "100000", "--edges", "400000", "--features", "16", "--classes", "20", "--shards", "8")
	id := d.asked("--dataset g --hidden 16 --epochs 1")
	if j := d.ended(id); j.State != "done" {
		t.Fatalf("the job is %s: %s", j.State, j.Error)
	}
	out := t.TempDir()
	predict := func(name string) (says string, code int) {
		_, says, code = hopmesh(t, "predict", id, "--out", filepath.Join(out, name), "--addr", "unix:"+filepath.Join(dir, "hopmesh.sock"))
		return says, code
	}
	d.roomFor(fullFile)
	for range 2 {
		says, code := predict("full.npy")
		if code != 1 {
			t.Errorf("without room it ends with %d", code)
		}
		saysFull(t, says, dir)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("%v are left (%v)", left, err)
	}
	if h := d.halves(); len(h) > 0 {
		t.Errorf("%s are left", h)
	}
	d.lives()
	d.roomFor(unix.RLIM_INFINITY)
	if says, code := predict("rows.npy"); code != 0 {
		t.Errorf("with room again it ends with %d: %s", code, says)
	}
	if info, err := os.Stat(filepath.Join(out, "rows.npy")); err != nil || info.Size() < 100000*20*4 {
		t.Errorf("predictions: %v, %v", info, err)
	}
}
