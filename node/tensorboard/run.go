package tensorboard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// prefix is what readers know event files by. Seconds follow, by which readers order the
// files of a folder, then the node that wrote it and the job's key.
const prefix = "events.out.tfevents."

// chunk is about how much is written at once.
const chunk = 1 << 16

// A run is the folder of one model, which TensorBoard draws as one line. Its epochs may be
// in several files: each start of the daemon that has something to add begins one, behind
// whatever a crash left of the last.
type run struct {
	dir  string
	file string // of this process, which is appended to; "": none yet
	when int64  // in the name of the newest file
	last mark
	anew bool // the job began again: the next file replaces the others
}

// openRun finds out how far the files of a folder have come.
func openRun(dir, key string) (*run, error) {
	r := &run{dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		// A name that is not of a plain file, such as a pipe's, might never be opened.
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), "."+key) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names) // which is by time
	for _, name := range names {
		seconds, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), ".")
		if when, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			r.when = max(r.when, when)
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		r.last, err = scan(f, r.last)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
		}
	}
	return r, nil
}

// foreign reports whether a folder has event files, and none of this job. Another mesh may
// have had a job of this id.
func foreign(dir, key string) (bool, error) {
	others, own := false, false
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			return err
		}
		if strings.HasSuffix(e.Name(), "."+key) {
			own = true
			return fs.SkipAll
		}
		others = true
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return others && !own, err
}

// follow compares the files with the plan's epochs. A job begins again if no node has its
// checkpoint any more; its epochs are then of a later generation and not those of before.
// A plan that has fewer epochs than the files may also be one that is still being read.
func (r *run) follow(j *plan.Job, model int) {
	if r.last.step == 0 {
		return
	}
	for i := len(j.History) - 1; i >= 0; i-- {
		newest := &j.History[i]
		if newest.Model != model {
			continue
		}
		if newest.Generation <= r.last.generation {
			return
		}
		same, in := j.EpochAt(r.last.step, model)
		if newest.Epoch < r.last.step || in && float32(same.Loss) != r.last.loss {
			*r = run{dir: r.dir, when: r.when, anew: true}
		}
		return
	}
}

// write appends the epochs of a model that the files lack. If the file is no more, because
// somebody removed it or put something else in its place, another one gets all epochs.
func (r *run) write(j *plan.Job, model int, of *recipe.Recipe, name string, now func() time.Time) error {
	err := r.add(j, model, of, name, now)
	if r.file == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	*r = run{dir: r.dir, when: r.when, anew: true}
	return r.add(j, model, of, name, now)
}

// add appends epochs to the file, and makes it first if need be.
func (r *run) add(j *plan.Job, model int, of *recipe.Recipe, name string, now func() time.Time) error {
	var buffer []byte
	last := r.last
	for i := range j.History {
		e := &j.History[i]
		if e.Model != model || e.Epoch <= last.step {
			continue
		}
		if r.file == "" && len(buffer) == 0 {
			buffer = appendVersion(buffer, now())
			if r.anew {
				buffer = appendStart(buffer, now(), e.Epoch)
			}
		}
		buffer = appendValues(buffer, now(), e.Epoch, valuesOf(e, of))
		last = mark{e.Epoch, float32(e.Loss), e.Generation}
		if len(buffer) < chunk {
			continue
		}
		if err := r.append(buffer, name, now()); err != nil {
			return err
		}
		buffer, r.last = buffer[:0], last
	}
	if len(buffer) == 0 {
		return nil
	}
	if err := r.append(buffer, name, now()); err != nil {
		return err
	}
	r.last = last
	return nil
}

// append writes whole records to the file, and makes it first if need be. What a full
// disk has taken of them is removed; if that fails too, another file goes on.
func (r *run) append(records []byte, name string, now time.Time) error {
	flags := os.O_WRONLY | os.O_APPEND
	file := r.file
	if file == "" {
		if err := os.MkdirAll(r.dir, 0o755); err != nil { //nolint:gosec // whoever draws them may be another user
			return err
		}
		r.when = max(now.Unix(), r.when+1)
		file = filepath.Join(r.dir, fmt.Sprintf("%s%010d.%s", prefix, r.when, name))
		flags |= os.O_CREATE | os.O_EXCL
	} else if info, err := os.Lstat(file); err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeNamedPipe) != 0 {
		// A link may lead to a file that is not ours, and a pipe might never be opened.
		return fmt.Errorf("%s is not the file that was written: %w", file, fs.ErrNotExist)
	}
	f, err := os.OpenFile(file, flags, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if _, err = f.Write(records); err != nil {
		if r.file == "" {
			return errors.Join(err, f.Close(), os.Remove(file))
		}
		if f.Truncate(info.Size()) != nil {
			r.file = ""
		}
		return errors.Join(err, f.Close())
	}
	r.file, r.anew = file, false
	return f.Close()
}
