// Package tensorboard writes event files of all jobs of the mesh for TensorBoard: a folder
// for each job, and in it one for each model of a sweep. It follows the plan, so that any
// node can do it, whoever trains; nothing waits for it.
//
// TensorBoard is: https://github.com/tensorflow/tensorboard. Its files are records of
// protocol buffers (tensorflow/core/util/event.proto), which are written and read here by
// hand: eight fields are not worth a generated package.
package tensorboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	enginerecipe "github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
)

// A Plan is followed. State is never changed, and Changed returns a channel that is closed
// when there is a new one.
type Plan interface {
	State() *plan.State
	Changed() <-chan struct{}
}

// Config is what a Writer needs.
type Config struct {
	Dir  string // the folder of all jobs
	Name string // of this node
	Plan Plan
	Log  *slog.Logger
}

// A Writer writes the epochs of all jobs.
type Writer struct {
	cfg    Config
	jobs   map[string]*job // by key
	made   bool            // the folder
	failed bool            // the last time, which was logged
}

// A job is what is known of a job's files.
type job struct {
	seen epochID // in the plan, when all epochs were written
	dir  string
	runs []*run // by model; nil: not opened yet
}

// An epochID distinguishes epochs, also if a job trains them twice.
type epochID struct {
	epoch, model int
	generation   uint64
	hash         string
}

// retryAfter is how long the writer waits after a failure, such as a full disk.
const retryAfter = 10 * time.Second

// New returns a writer. Its Run does the work.
func New(cfg Config) *Writer { return &Writer{cfg: cfg, jobs: map[string]*job{}} }

// Run writes epochs as the plan gets them, until ctx ends. What can't be written is tried
// again: the plan has all epochs.
func (w *Writer) Run(ctx context.Context) error {
	var was *plan.State
	for {
		changed := w.cfg.Plan.Changed()
		var again <-chan time.Time
		if s := w.cfg.Plan.State(); s != was {
			err := w.take(ctx, s)
			w.report(err)
			if was = s; err != nil {
				was, changed, again = nil, nil, time.After(retryAfter)
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// report logs the first failure, and the first success after it.
func (w *Writer) report(err error) {
	switch {
	case err != nil && !w.failed:
		w.cfg.Log.Warn("event files for TensorBoard can't be written; jobs go on, and the epochs follow once they can", "dir", w.cfg.Dir, "err", err)
	case err == nil && w.failed:
		w.cfg.Log.Info("event files for TensorBoard are written again", "dir", w.cfg.Dir)
	}
	w.failed = err != nil
}

// take writes what the plan has and the files lack. A job that can't be written keeps no
// other from it. Files of removed jobs stay.
func (w *Writer) take(ctx context.Context, s *plan.State) error {
	if !w.made { // a wrong folder shows at the start, not with the first job
		if err := os.MkdirAll(w.cfg.Dir, 0o755); err != nil { //nolint:gosec // whoever draws them may be another user
			return err
		}
		w.made = true
	}
	var errs []error
	keys := make(map[string]bool, len(s.Jobs))
	for _, j := range s.JobsInOrder() {
		if ctx.Err() != nil {
			break
		}
		keys[j.Key] = true
		if err := w.write(&j); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", j.ID, err))
		}
	}
	maps.DeleteFunc(w.jobs, func(key string, _ *job) bool { return !keys[key] })
	return errors.Join(errs...)
}

// write writes what a job has and its files lack.
func (w *Writer) write(p *plan.Job) error {
	if len(p.History) == 0 {
		return nil
	}
	e := &p.History[len(p.History)-1]
	newest := epochID{e.Epoch, e.Model, e.Generation, e.Hash}
	j := w.jobs[p.Key]
	if j == nil {
		dir := filepath.Join(w.cfg.Dir, p.ID)
		others, err := foreign(dir, p.Key)
		if err != nil {
			return err
		}
		if others {
			dir += "-" + p.Key
		}
		j = &job{dir: dir, runs: make([]*run, p.Models())}
		w.jobs[p.Key] = j
	}
	if j.seen == newest {
		return nil
	}
	whole := recipe.Read(*p)
	models := whole.Models()
	var errs []error
	for m := range j.runs {
		of := new(enginerecipe.Recipe)
		if m < len(models) {
			of = &models[m]
		}
		errs = append(errs, w.writeModel(p, m, j, of, dirOf(j.dir, p, whole, m)))
	}
	err := errors.Join(errs...)
	if err == nil {
		j.seen = newest
	}
	return err
}

func (w *Writer) writeModel(p *plan.Job, model int, j *job, of *enginerecipe.Recipe, dir string) error {
	if j.runs[model] == nil {
		r, err := openRun(dir, p.Key)
		if err != nil {
			return err
		}
		j.runs[model] = r
	}
	j.runs[model].follow(p, model)
	return j.runs[model].write(p, model, of, w.cfg.Name+"."+p.Key, time.Now)
}

// longest is how many characters of a model's parameters its folder's name has.
const longest = 100

// dirOf returns the folder of a model: the job's, or of a sweep one in it that is named
// after what makes the model differ.
func dirOf(job string, p *plan.Job, of *enginerecipe.Recipe, model int) string {
	if p.Models() == 1 {
		return job
	}
	if model >= len(of.Sweep) { // another version wrote the recipe
		return filepath.Join(job, strconv.Itoa(model))
	}
	params := of.Sweep[model].Params
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		parts = append(parts, key+"="+params[key])
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("=,.+-_", r):
			return r
		}
		return '_'
	}, strings.Join(parts, ","))
	return filepath.Join(job, fmt.Sprintf("%d_%s", model, name[:min(len(name), longest)]))
}
