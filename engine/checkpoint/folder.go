package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// LastFile is the name of a run's last checkpoint in its folder.
const LastFile = "last.safetensors"

// beforeFile is the name of the one before the last, while a run goes on. That weights are
// finite is no promise that their loss is: only a step that was made from a checkpoint shows
// that it is good, and until then the one before stays.
const beforeFile = "before.safetensors"

// backFile is the name of a checkpoint of one step before the last, which a run leaves when it ends before
// it is done, where other nodes may not have come further. The one before the last stays beside it: nodes
// that were killed have no more than that.
const backFile = "back.safetensors"

// Which is one of the checkpoints in a folder, by its number in messages.
type Which uint8

// The checkpoints in a folder.
const (
	Last Which = iota
	Before
	Back
)

// files are the names of these.
var files = [...]string{LastFile, beforeFile, backFile}

// Unless a run says otherwise, it writes a checkpoint as often as writing takes a hundredth of its
// time, within bounds.
const (
	leastInterval = time.Second
	mostInterval  = 10 * time.Second
	worth         = 100
)

// Place is where a run stands.
type Place struct {
	Epoch int // from 1
	Step  int // how many of the epoch's are done
	Left  int // how many models have yet to do the next one; 0: the run is done
}

// Before reports whether a place comes before another, whatever is left in either.
func (p Place) Before(o Place) bool {
	return p.Epoch < o.Epoch || p.Epoch == o.Epoch && p.Step < o.Step
}

// begins is the place from which a run goes on that stands at p: the end of an epoch of so
// many steps is the beginning of the next.
func (p Place) begins(steps int) Place {
	if p.Step >= steps {
		p.Epoch, p.Step = p.Epoch+1, 0
	}
	p.Left = 1
	return p
}

// Options say where and how often a run writes checkpoints.
type Options struct {
	Dir      string        // need not exist; "": nowhere
	Interval time.Duration // 0: as often as costs little
	Steps    int           // of an epoch
	Single   bool          // only the last is kept, and not the one before it
	Hold     bool          // the one before the last stays when the run ends: other nodes may have come no further
	Log      *slog.Logger
}

// Folder keeps the last checkpoint of a run and, while the run goes on, the one before it.
type Folder struct {
	options Options

	tried  time.Time     // when the last was written, or could not be
	took   time.Duration // to write the last
	good   bool          // there is one
	failed bool          // the last that was tried could not be written
	at     Place         // where the last stands
	before *Place        // where the one before it stands; nil if none is kept
	other  bool          // a file lies where the last does that has not all of what this node has there
	stays  bool          // the one before the last, whatever is written
}

// NewFolder returns the folder of a run that begins.
func NewFolder(o Options) *Folder {
	return &Folder{options: o}
}

// Keeps reports whether there is a folder to keep checkpoints in.
func (f *Folder) Keeps() bool { return f.options.Dir != "" }

// Path is where the last checkpoint lies.
func (f *Folder) Path() string { return filepath.Join(f.options.Dir, LastFile) }

// PathOf is where one of the checkpoints lies, if there is that one.
func (f *Folder) PathOf(w Which) string { return filepath.Join(f.options.Dir, files[w]) }

// Exists reports whether a file lies where the last checkpoint does.
func (f *Folder) Exists() bool {
	if !f.Keeps() {
		return false
	}
	_, err := os.Stat(f.Path())
	return !errors.Is(err, fs.ErrNotExist)
}

// Begin counts the interval from now on, and has the first checkpoint due after another
// time, if that is not 0.
func (f *Folder) Begin(first time.Duration) {
	f.tried = time.Now()
	if first > 0 {
		f.tried = f.tried.Add(first - f.interval())
	}
}

// Due reports whether the last try is an interval ago.
func (f *Folder) Due() bool { return f.Keeps() && time.Since(f.tried) >= f.interval() }

// Rarely has checkpoints written as seldom as they are at most: they cost more than to write them.
func (f *Folder) Rarely() { f.options.Interval = mostInterval }

// interval is how long after the last try the next is due.
func (f *Folder) interval() time.Duration {
	switch {
	case f.options.Interval > 0:
		return f.options.Interval
	case f.failed:
		return mostInterval
	}
	return min(max(worth*f.took, leastInterval), mostInterval)
}

// Missing reports whether there is no checkpoint yet, and none has been tried in vain.
func (f *Folder) Missing() bool { return f.Keeps() && !f.good && !f.failed }

// Last is where the last checkpoint stands, if there is one.
func (f *Folder) Last() (at Place, good bool) { return f.at, f.good }

// Failed reports whether the last checkpoint that was tried could not be written.
func (f *Folder) Failed() bool { return f.failed }

// Fail notes that a checkpoint could not be written: the next is due an interval later.
func (f *Folder) Fail() { f.tried, f.failed = time.Now(), true }

// Adopt notes that the run goes on from the last checkpoint, or from the one that is about
// to replace it, and stands there.
func (f *Folder) Adopt(at Place) { *f = Folder{options: f.options, good: true, at: at} }

// Forget notes that there is no checkpoint of where the run stands.
func (f *Folder) Forget() { *f = Folder{options: f.options} }

// Supersede is Forget where other nodes may yet need what lies there: the next checkpoint that is written,
// even if it is of the same place, keeps that as the one before it.
func (f *Folder) Supersede() { *f = Folder{options: f.options, other: true} }

// Superseded reports whether a checkpoint is to be written since the last one has not all that this node
// has.
func (f *Folder) Superseded() bool { return f.other }

// Stay sets whether newer checkpoints leave the one before the last in place. It must stay while other nodes
// have no later one.
func (f *Folder) Stay(on bool) { f.stays = on }

// Hold has the checkpoint before the last stay when the run has ended.
func (f *Folder) Hold() { f.options.Hold = true }

// Unsaved says that a checkpoint could not be written.
type Unsaved struct {
	Err error
	At  Place // of the checkpoint; zero: not known
}

func (e *Unsaved) Error() string {
	of := "a checkpoint"
	if e.At.Epoch > 0 {
		of = fmt.Sprintf("the checkpoint of epoch %d, step %d", e.At.Epoch, e.At.Step)
	}
	return fmt.Sprintf("write %s: %v: free some space in the data directory", of, e.Err)
}

func (e *Unsaved) Unwrap() error { return e.Err }

// Save writes a checkpoint of where the run stands, in place of the last. That one is kept
// as the one before, unless a run goes on alike from both. The error is an Unsaved or, where
// there is a fault, that (see WriteFile).
func (f *Folder) Save(at Place, sections []Section, metadata map[string]string, fault func() error) error {
	if err := os.MkdirAll(f.options.Dir, 0o700); err != nil {
		return &Unsaved{err, at}
	}
	var before *Place
	switch {
	case f.other:
		f.link()
	case f.stays:
		before = f.before
	case f.good && !f.options.Single:
		before = f.keepBefore(at)
	}
	var broken error
	begun := time.Now()
	err := WriteFile(f.Path(), sections, metadata, func() error {
		broken = fault()
		return broken
	})
	switch {
	case broken != nil:
		return err
	case err != nil:
		return &Unsaved{err, at}
	}
	if f.good && !f.stays {
		_ = remove(f.PathOf(Back)) // of an earlier run: all nodes have come to the checkpoint that is before this one
	}
	f.tried, f.good, f.failed, f.at, f.before, f.other = time.Now(), true, false, at, before, false
	f.took = f.tried.Sub(begun)
	return nil
}

// keepBefore keeps the last checkpoint beside the next one, and returns where it stands.
func (f *Folder) keepBefore(next Place) *Place {
	if f.at.begins(f.options.Steps) == next.begins(f.options.Steps) {
		return f.before // they are the same
	}
	if !f.link() {
		return nil
	}
	at := f.at
	return &at
}

// link keeps the last checkpoint beside the next one, and reports whether it could. It is a link, so that it
// takes no more room while the next is written.
func (f *Folder) link() bool {
	_ = os.Remove(f.PathOf(Before))
	if err := os.Link(f.Path(), f.PathOf(Before)); err != nil {
		f.options.Log.Debug("the checkpoint before the last could not be kept", "err", err)
		return false
	}
	return true
}

// GoBack reports whether the last checkpoint is of before a place at which a run has failed.
// If it is not, the one before it takes its place, if that is.
func (f *Folder) GoBack(failed Place) bool {
	failed = failed.begins(f.options.Steps)
	if !f.good || f.at.begins(f.options.Steps).Before(failed) {
		return f.good
	}
	if f.before == nil || !f.before.begins(f.options.Steps).Before(failed) {
		return false
	}
	if err := os.Rename(filepath.Join(f.options.Dir, beforeFile), f.Path()); err != nil {
		f.options.Log.Warn("could not go back to the checkpoint before the last", "err", err)
		return false
	}
	f.at, f.before, f.failed = *f.before, nil, false
	return true
}

// SaveEarlier writes a checkpoint of one step before the last one, when the run ends: other nodes may not
// have come further.
func (f *Folder) SaveEarlier(sections []Section, metadata map[string]string, fault func() error) error {
	if err := WriteFile(f.PathOf(Back), sections, metadata, fault); err != nil {
		return &Unsaved{Err: err}
	}
	return nil
}

// Remove removes the last checkpoint, since other nodes have all that it has.
func (f *Folder) Remove() error {
	f.Forget()
	return remove(f.Path())
}

// RemoveEarlier removes the checkpoints before the last, whichever run has left them.
func (f *Folder) RemoveEarlier() error {
	f.before = nil
	return errors.Join(remove(f.PathOf(Before)), remove(f.PathOf(Back)))
}

// Return puts an earlier checkpoint in the place of the last, since all nodes go on from there.
func (f *Folder) Return(w Which) error {
	if err := os.Rename(f.PathOf(w), f.Path()); err != nil {
		return fmt.Errorf("go back to the checkpoint before the last: %w", err)
	}
	return syncFolder(f.options.Dir)
}

// damagedFile is the name of a last checkpoint that was set aside since it is damaged.
const damagedFile = "damaged.safetensors"

// FallBack puts the checkpoint before the last in its place: one that is damaged is set aside,
// where people may look at it. usable returns nil if a run can go on from the one before; if
// there is none, all stays as it is. Only a run that was killed leaves one.
func (f *Folder) FallBack(usable func(path string) error) error {
	before := filepath.Join(f.options.Dir, beforeFile)
	if err := usable(before); err != nil {
		return err
	}
	aside := filepath.Join(f.options.Dir, damagedFile)
	_ = os.Remove(aside) // of an earlier time
	if err := os.Link(f.Path(), aside); err != nil {
		return fmt.Errorf("set a damaged checkpoint aside: %w", err)
	}
	// There is a last one at any time, whenever the power fails.
	if err := os.Rename(before, f.Path()); err != nil {
		return fmt.Errorf("go back to the checkpoint before the last: %w", err)
	}
	return syncFolder(f.options.Dir)
}

// Close removes the checkpoint before the last, when the run has ended, unless it is held.
func (f *Folder) Close() {
	if f.before != nil && !f.options.Hold {
		_ = os.Remove(filepath.Join(f.options.Dir, beforeFile))
	}
}

// Cause returns the cause of an Unsaved without its advice, which is for a run that
// has ended.
func Cause(err error) error {
	if unsaved, ok := errors.AsType[*Unsaved](err); ok {
		return unsaved.Err
	}
	return err
}
