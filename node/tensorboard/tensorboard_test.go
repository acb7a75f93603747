package tensorboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// paper is a plan that tests write.
type paper struct {
	mu      sync.Mutex
	state   *plan.State
	changed chan struct{}
}

func (p *paper) State() *plan.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *paper) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// set makes these the jobs of the plan.
func (p *paper) set(jobs ...plan.Job) {
	s := &plan.State{Jobs: map[string]plan.Job{}}
	for _, j := range jobs {
		s.Jobs[j.ID] = j
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != nil {
		close(p.changed)
	}
	p.state, p.changed = s, make(chan struct{})
}

// records counts records of the log by their level.
type records struct {
	slog.Handler
	mu    sync.Mutex
	count map[slog.Level]int
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) Handle(_ context.Context, in slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[in.Level]++
	return nil
}

// writing runs a writer in virtual time while f changes the plan. synced waits until the
// writer has nothing to do.
func writing(t *testing.T, dir string, f func(p *paper, synced func())) *records {
	t.Helper()
	log := &records{Handler: slog.DiscardHandler, count: map[slog.Level]int{}}
	synctest.Test(t, func(t *testing.T) {
		p := &paper{}
		p.set()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := New(Config{Dir: dir, Name: "n1", Plan: p, Log: slog.New(log)}).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f(p, synctest.Wait)
		synctest.Wait()
		cancel()
		running.Wait()
	})
	return log
}

// aJob is a job of epochs 1 to n, each with a loss of its own.
func aJob(n int, generation uint64, loss float64) plan.Job {
	r := recipe.DefaultRecipe("gcn")
	r.Rate, r.Epochs, r.Schedule = 0.1, 100, recipe.Schedule{Kind: recipe.Step, Every: 2, Factor: 0.5}
	text, _ := json.Marshal(r)
	j := plan.Job{ID: "j1", Key: "0a1b2c3d", Recipe: string(text)}
	for i := 1; i <= n; i++ {
		j.History = append(j.History, anEpoch(i, 0, generation, loss/float64(i)))
	}
	return j
}

func anEpoch(number, model int, generation uint64, loss float64) plan.Epoch {
	val := 0.5
	return plan.Epoch{
		Epoch: number, Model: model, Loss: loss, Generation: generation, Hash: fmt.Sprint(loss), Seconds: 2,
		Phases: epoch.Phases{Sample: 0.25, Gather: 0.5, Compute: 1, Reduce: 2, Wait: 4}, Rows: epoch.Rows{Local: 11, Remote: 12, Kept: 13},
		Requests: epoch.Requests{Feature: 14, Topology: 15, Activation: 16, Gradient: 17},
		Bytes:    epoch.Bytes{Feature: 1, Topology: 2, Model: 3, Gradient: 4, Activation: 5, Shard: 6, Control: 7},
		Eval:     &epoch.Eval{Seconds: 0.125, Val: &val, Bytes: epoch.Bytes{Topology: 8}},
		Figures:  []epoch.Figure{{Name: "edges seen", Value: 0.75}},
	}
}

// drawn reads a folder as TensorBoard does: files by name, and what a session start follows
// up on is dropped. It returns the losses by step, and fails if a step comes twice.
func drawn(t *testing.T, dir string) map[int]float64 {
	t.Helper()
	losses := map[int]float64{}
	names, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	slices.Sort(names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range decode(t, b) {
			switch {
			case (e.version != "") != (i == 0):
				t.Fatalf("event %d of %s has the version %q", i, name, e.version)
			case e.start:
				maps.DeleteFunc(losses, func(step int, _ float64) bool { return step >= e.step })
			case e.step > 0:
				if _, twice := losses[e.step]; twice {
					t.Errorf("step %d is in %s twice", e.step, dir)
				}
				losses[e.step] = e.values["loss"]
			}
		}
	}
	return losses
}

// check compares a folder's losses with those of a job.
func check(t *testing.T, dir string, j plan.Job, model int) {
	t.Helper()
	want := map[int]float64{}
	for _, e := range j.History {
		if e.Model == model {
			want[e.Epoch] = float64(float32(e.Loss))
		}
	}
	if got := drawn(t, dir); !maps.Equal(got, want) {
		t.Errorf("%s has %v, want %v", dir, got, want)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEpochsAreWrittenOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by it")
	all := aJob(10, 5, 1)
	writing(t, dir, func(p *paper, synced func()) {
		for _, n := range []int{0, 1, 2, 2, 7, 10} { // several may come at once
			p.set(aJob(n, 5, 1))
			synced()
		}
	})
	check(t, filepath.Join(dir, "j1"), all, 0)
	if names := files(t, filepath.Join(dir, "j1")); len(names) != 1 || !strings.HasSuffix(names[0], ".n1.0a1b2c3d") {
		t.Errorf("files are %v", names)
	}
}

func TestValuesOfAnEpoch(t *testing.T) {
	dir := t.TempDir()
	writing(t, dir, func(p *paper, _ func()) { p.set(aJob(3, 5, 1)) })
	b, err := os.ReadFile(files(t, filepath.Join(dir, "j1"))[0])
	if err != nil {
		t.Fatal(err)
	}
	third := decode(t, b)[3]
	want := map[string]float64{
		"loss": float64(float32(1.0 / 3)), "generation": 5, "learning_rate": float64(float32(0.05)), "accuracy/val": 0.5, "figures/edges seen": 0.75,
		"seconds/train": 2, "seconds/eval": 0.125, "phases/sample": 0.25, "phases/gather": 0.5, "phases/compute": 1, "phases/reduce": 2, "phases/wait": 4,
		"rows/local": 11, "rows/remote": 12, "rows/kept": 13, "requests/feature": 14, "requests/topology": 15, "requests/activation": 16, "requests/gradient": 17,
	}
	for i, kind := range []string{"feature", "topology", "model", "gradient", "activation", "shard", "control"} {
		want["bytes/"+kind], want["bytes_eval/"+kind] = float64(i+1), 0
	}
	want["bytes_eval/topology"] = 8
	if third.step != 3 || !maps.Equal(third.values, want) {
		t.Errorf("step %d has %v, want %v", third.step, third.values, want)
	}
}

// A plateau's rate can't be known from the plan, and a rate is not made up.
func TestValuesThatAreNotKnown(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	r.Schedule = recipe.Schedule{Kind: recipe.Plateau, Every: 1, Factor: 0.5}
	for name, of := range map[string]*recipe.Recipe{"plateau": &r, "another version's": new(recipe.Recipe)} {
		e := plan.Epoch{Epoch: 1, Loss: 2, Generation: 3}
		if got := valuesOf(&e, of); !slices.Equal(got, []value{{"loss", 2}, {"generation", 3}}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A daemon that starts again goes on where the files end, also if a crash has cut them off.
func TestRestartGoesOn(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "j1")
	writing(t, dir, func(p *paper, _ func()) { p.set(aJob(5, 5, 1)) })
	writing(t, dir, func(p *paper, _ func()) { p.set(aJob(5, 5, 1)) })
	if names := files(t, run); len(names) != 1 {
		t.Errorf("with nothing new the files are %v", names)
	}
	first := files(t, run)[0]
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(first, int64(len(b)-3)); err != nil { // the fifth is spoilt
		t.Fatal(err)
	}
	writing(t, dir, func(p *paper, synced func()) {
		p.set(aJob(2, 5, 1)) // a plan that is still being read
		synced()
		p.set(aJob(6, 6, 1)) // of another generation
		synced()
		p.set(aJob(8, 6, 1))
	})
	names := files(t, run)
	if len(names) != 2 || names[1] <= first {
		t.Fatalf("files are %v", names)
	}
	second, err := os.ReadFile(names[1])
	if err != nil {
		t.Fatal(err)
	}
	if events := decode(t, second); len(events) != 1+4 || events[1].step != 5 || events[1].start {
		t.Errorf("the second file has %+v", events)
	}
	whole := wholeOf(t, b)
	if err := os.WriteFile(first, b[:whole], 0o600); err != nil { // as readers see it
		t.Fatal(err)
	}
	check(t, run, aJob(8, 6, 1), 0)
}

// wholeOf returns how long a file is without its last record.
func wholeOf(t *testing.T, b []byte) int {
	t.Helper()
	events := len(decode(t, b))
	at := 0
	for range events - 1 {
		at += 16 + int(b[at]) + int(b[at+1])<<8
	}
	return at
}

// A job that begins again, since no node has its checkpoint any more, replaces what was
// drawn, whether the daemon has seen it or comes back later.
func TestJobThatBeginsAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		for _, n := range []int{2, 5, 9} {
			dir := t.TempDir()
			after := aJob(n, 8, 3)
			writing(t, dir, func(p *paper, synced func()) {
				p.set(aJob(5, 5, 1))
				synced()
				if seen {
					p.set(aJob(0, 0, 0))
					synced()
					p.set(after)
				}
			})
			if !seen {
				writing(t, dir, func(p *paper, _ func()) { p.set(after) })
			}
			check(t, filepath.Join(dir, "j1"), after, 0)
		}
	}
}

func TestSweepsHaveAFolderForEachModel(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	for i, lr := range []string{"0.1", "../x y"} {
		one := recipe.DefaultRecipe("gcn")
		one.Rate = float64(i + 1)
		r.Sweep = append(r.Sweep, recipe.Variant{Params: map[string]string{"lr": lr, "hidden": strings.Repeat("8", 2+200*i)}, Recipe: one})
	}
	text, _ := json.Marshal(r)
	j := plan.Job{ID: "j7", Key: "0a1b2c3d", Recipe: string(text), Bests: []int{0, 0}}
	dir := t.TempDir()
	writing(t, dir, func(p *paper, synced func()) {
		for number := 1; number <= 3; number++ {
			j.History = append(slices.Clone(j.History), anEpoch(number, 0, 5, 1/float64(number)), anEpoch(number, 1, 5, 9/float64(number)))
			p.set(j)
			synced()
		}
	})
	first, second := filepath.Join(dir, "j7", "0_hidden=88,lr=0.1"), filepath.Join(dir, "j7", "1_hidden="+strings.Repeat("8", longest-len("hidden=")))
	check(t, first, j, 0)
	check(t, second, j, 1)
	b, err := os.ReadFile(files(t, second)[0])
	if err != nil {
		t.Fatal(err)
	}
	if rate := decode(t, b)[1].values["learning_rate"]; rate != 2 {
		t.Errorf("the second model's rate is %v", rate)
	}
	if got := dirOf("d", &j, &recipe.Recipe{Sweep: []recipe.Variant{{Params: map[string]string{"a": "../é y"}}}}, 0); got != filepath.Join("d", "0_a=..___y") {
		t.Errorf("a folder is %s", got)
	}
	if got := dirOf("d", &j, new(recipe.Recipe), 1); got != filepath.Join("d", "1") {
		t.Errorf("without a recipe a folder is %s", got)
	}
}

// Files of a job that was removed stay, and another mesh's job of the same id gets another
// folder.
func TestFoldersOfOtherJobs(t *testing.T) {
	dir := t.TempDir()
	old := aJob(4, 5, 1)
	writing(t, dir, func(p *paper, synced func()) {
		p.set(old)
		synced()
		p.set()
	})
	fresh := aJob(2, 5, 7)
	fresh.Key = "99999999"
	for range 2 { // also after a restart
		writing(t, dir, func(p *paper, _ func()) { p.set(fresh) })
	}
	check(t, filepath.Join(dir, "j1"), old, 0)
	check(t, filepath.Join(dir, "j1-99999999"), fresh, 0)
}

// What can't be written is logged once and tried again, without a change of the plan.
func TestFailuresAreTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := writing(t, dir, func(p *paper, synced func()) {
		for n := range 4 {
			p.set(aJob(n, 5, 1))
			synced()
			time.Sleep(retryAfter)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(retryAfter)
	})
	check(t, filepath.Join(dir, "j1"), aJob(3, 5, 1), 0)
	if log.count[slog.LevelWarn] != 1 || log.count[slog.LevelInfo] != 1 {
		t.Errorf("it was logged %v times", log.count)
	}
}

// A job that can't be written keeps no other from it.
func TestOneJobFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "j1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := aJob(3, 5, 1)
	other.ID, other.Number, other.Key = "j2", 2, "22222222"
	log := writing(t, dir, func(p *paper, _ func()) { p.set(aJob(3, 5, 1), other) })
	check(t, filepath.Join(dir, "j2"), other, 0)
	if log.count[slog.LevelWarn] != 1 {
		t.Errorf("it was logged %v times", log.count)
	}
}

// On a disk that takes no more, a file that can't be cut back is left, and another goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	r := &run{dir: dir, file: "/dev/full", last: mark{2, 0.5, 5}}
	j, now := aJob(4, 5, 1), func() time.Time { return noon }
	if err := r.write(&j, 0, new(recipe.Recipe), "n1.0a1b2c3d", now); err == nil || r.last.step != 2 {
		t.Fatalf("got %v at step %d", err, r.last.step)
	}
	if err := r.write(&j, 0, new(recipe.Recipe), "n1.0a1b2c3d", now); err != nil {
		t.Fatal(err)
	}
	if got := drawn(t, dir); len(got) != 2 || got[3] == 0 || got[4] == 0 {
		t.Errorf("it has %v", got)
	}
}

// Who removes the files while a job runs gets all of its epochs again.
func TestFilesThatAreRemoved(t *testing.T) {
	dir := t.TempDir()
	writing(t, dir, func(p *paper, synced func()) {
		p.set(aJob(3, 5, 1))
		synced()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		p.set(aJob(4, 5, 1))
	})
	check(t, filepath.Join(dir, "j1"), aJob(4, 5, 1), 0)
}

// A long history is written in pieces.
func TestLongHistories(t *testing.T) {
	dir := t.TempDir()
	long := aJob(500, 5, 1)
	writing(t, dir, func(p *paper, _ func()) { p.set(long) })
	check(t, filepath.Join(dir, "j1"), long, 0)
	if info, err := os.Stat(files(t, filepath.Join(dir, "j1"))[0]); err != nil || info.Size() < 3*chunk {
		t.Errorf("%v, %v: it shows nothing", info.Size(), err)
	}
}

// What is no plain file is not opened, which could wait for ever.
func TestOnlyPlainFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, prefix+"0000000001.n1.0a1b2c3d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r, err := openRun(dir, "0a1b2c3d"); err != nil || r.last != (mark{}) || r.when != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A folder that is removed, or a file that becomes something else, while many epochs wait
// that take several writes, gets them all.
func TestManyEpochsAfterTheFileHasGone(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir, file string) error{
		"the folder is removed": func(_ *testing.T, dir, _ string) error { return os.RemoveAll(dir) },
		"the file is a link now": func(t *testing.T, _, file string) error {
			return errors.Join(os.Remove(file), os.Symlink(filepath.Join(t.TempDir(), "other"), file))
		},
		"the file is a pipe now": func(_ *testing.T, _, file string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			job := filepath.Join(dir, "j1")
			writing(t, dir, func(p *paper, synced func()) {
				p.set(aJob(1, 1, 8))
				synced()
				files, _ := filepath.Glob(filepath.Join(job, prefix+"*"))
				if len(files) != 1 {
					t.Fatal(files)
				}
				if err := spoil(t, job, files[0]); err != nil {
					t.Fatal(err)
				}
				p.set(aJob(200, 1, 8))
				synced()
				if info, err := os.Lstat(files[0]); err == nil && !info.Mode().IsRegular() {
					if err := os.Remove(files[0]); err != nil { // drawn would follow it
						t.Fatal(err)
					}
				}
				if got := drawn(t, job); len(got) != 200 || got[1] != 8 {
					t.Errorf("%d epochs are written, and want 200", len(got))
				}
			})
		})
	}
}
