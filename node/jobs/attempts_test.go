package jobs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/damage"
)

// A panic is the job's end and not the node's.
func TestPanicEndsTheJob(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			if !slices.Equal(o.Work.Nodes, []string{"alpha"}) { // programs beside it hear its name
				t.Errorf("the job is %v's", o.Work.Nodes)
			}
			o.Report(lesson(1))
			panic("index out of range")
		})
		id := w.create(9)
		if j := w.ended(id); j.State != plan.Failed || !strings.Contains(j.Error, "a fault of hopmesh itself ended the training (index out of range)") || j.Last() != 1 {
			t.Errorf("%+v", j)
		}
		w.teach(lessons(2, 0))
		id = w.create(2)
		if j := w.ended(id); j.State != plan.Done {
			t.Errorf("the next one is %+v", j)
		}
	})
}

// A job that ended two daemons in a row is not begun a third time, until somebody
// resumes it. What has come of a run in between counts.
func TestJobThatKillsItsDaemon(t *testing.T) {
	for name, c := range map[string]struct {
		between func(r *run)
		state   plan.JobState
	}{
		"nothing":      {func(*run) {}, plan.Failed},
		"an epoch":     {func(r *run) { r.survived() }, plan.Done},
		"a checkpoint": {func(r *run) { writeFile(t, filepath.Join(r.folder, train.CheckpointFile), "more") }, plan.Done},
		"a torn note":  {func(r *run) { writeFile(t, filepath.Join(r.folder, attemptsFile), "{") }, plan.Done},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, w *world) {
				var runs atomic.Int32
				w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
					if _, err := os.Stat(filepath.Join(o.Dir, attemptsFile)); err != nil {
						t.Errorf("it is not noted that the job begins: %v", err)
					}
					runs.Add(1)
					return lessons(2, 0)(ctx, r, s, o)
				})
				w.stop()
				old := w.runner
				w.runner = nil
				id := w.create(2)
				r := newRun(old.cfg, w.job(id), plan.Dataset{}, old.Folder(w.job(id)))
				if err := os.MkdirAll(r.folder, 0o700); err != nil {
					t.Fatal(err)
				}
				for range mostDeaths {
					if err := r.attempt(); err != nil {
						t.Fatal(err)
					}
				}
				c.between(r)
				w.run()
				j := w.ended(id)
				if j.State != c.state || (runs.Load() == 0) != (c.state == plan.Failed) {
					t.Errorf("%+v after %d runs", j, runs.Load())
				}
				if c.state == plan.Failed {
					if !strings.Contains(j.Error, "died twice") || !strings.Contains(j.Error, "hopmesh agent --memory") {
						t.Errorf("%q", j.Error)
					}
					w.apply(plan.ResumeJob{ID: id})
					w.apply(plan.AssignJob{ID: id, Nodes: []string{"a"}})
				}
				if j := w.ended(id); j.State != plan.Done {
					t.Errorf("%+v", j)
				}
				if _, err := os.Stat(filepath.Join(r.folder, attemptsFile)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the count goes on: %v", err)
				}
			})
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What the engine notes is in the plan when the job has ended; what diverged names the
// command that goes on.
func TestNotesAndAdvice(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			o.Announce(train.Forecast{Notes: []string{"split 0 has no\nvalidation vertices"}})
			e := lesson(1)
			e.Eval.Val = nil
			o.Report(e)
			if o.Dir == w.runner.Folder(w.job("j2")) {
				return train.Result{}, &trained.Diverged{Epoch: 1, Checkpoint: "c"}
			}
			return train.Result{Best: e, Last: e}, nil
		})
		id := w.create(3)
		j := w.ended(id)
		if j.State != plan.Done || len(j.Notes) != 1 || j.Notes[0] != "split 0 has no validation vertices" || j.Best != 1 || j.History[0].Eval.Val != nil {
			t.Errorf("%+v", j)
		}
		id = w.create(3)
		if j := w.ended(id); !strings.Contains(j.Error, "`hopmesh train resume j2 --lr RATE`") || j.Best != 0 {
			t.Errorf("%+v", j)
		}
	})
}

// A job whose checkpoint is damaged says what to do; one that fails otherwise says no
// more than why.
func TestDamagedCheckpoint(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		for n, c := range []struct{ file, says string }{
			{"other", "it can't be read"},
			{train.CheckpointFile, "it can't be read; this job can't go on, so start another, and remove this one with `hopmesh train remove j2`"},
		} {
			w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
				writeFile(t, filepath.Join(o.Dir, c.file), "torn")
				return train.Result{}, errors.New("it can't be read")
			})
			id := w.create(3)
			if j := w.ended(id); j.Error != c.says {
				t.Errorf("job %d says %q", n+1, j.Error)
			}
		}
	})
}

// The damage of a checkpoint is over when its job is.
func TestDamageEndsWithTheJob(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		board := damage.New(slog.New(slog.DiscardHandler))
		w.stop()
		w.damage = board
		w.run()
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			o.Damaged(errors.New("it is torn"), true)
			if len(board.Own()) != 1 {
				t.Error("it is not told")
			}
			return train.Result{}, errors.New("it can't go on")
		})
		w.ended(w.create(3))
		synctest.Wait()
		if list := board.Own(); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// What was known before is no progress; the first epoch that is new is, and so is an
// end of whatever kind.
func TestWhatEndsTheCount(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		counted := func(o train.Options) bool {
			_, err := os.Stat(filepath.Join(o.Dir, attemptsFile))
			return err == nil
		}
		var dir string
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			dir = o.Dir
			before := counted(o)
			o.Report(lesson(1))
			if !before || counted(o) {
				t.Errorf("counted %v before the first epoch, and %v after", before, counted(o))
			}
			return train.Result{}, errors.New("enough")
		})
		id := w.create(9)
		w.ended(id)
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			o.Report(lesson(1))
			if !counted(o) {
				t.Error("an epoch that was known counts as progress")
			}
			return train.Result{}, errors.New("enough")
		})
		w.apply(plan.ResumeJob{ID: id})
		w.apply(plan.AssignJob{ID: id, Nodes: []string{"a"}})
		if j := w.ended(id); j.State != plan.Failed || counted(train.Options{Dir: dir}) {
			t.Errorf("%+v, and it is counted still", j)
		}
	})
}

// The folder of a job that is removed stays for as long as it is written to.
func TestFolderOfARunStays(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		enough := make(chan struct{})
		w.teach(func(context.Context, recipe.Recipe, []*graph.Shard, train.Options) (train.Result, error) {
			<-enough
			return train.Result{}, errors.New("enough")
		})
		id := w.create(9)
		j := w.job(id)
		folder := w.runner.Folder(j)
		synctest.Wait()
		w.apply(plan.FinishJob{ID: id, Node: "a", Generation: j.Generation, State: plan.Stopped})
		w.apply(plan.RemoveJob{ID: id})
		synctest.Wait()
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
		close(enough)
		synctest.Wait()
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of no job: %v", err)
		}
	})
}
