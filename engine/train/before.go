package train

import (
	"os"
	"path/filepath"
)

// beforeFile is the name of the checkpoint before the last, while a run goes on. That
// weights are finite is no promise that a loss of theirs is: only a step that was made from
// a checkpoint shows that it is good, and until then the one before stays.
const beforeFile = "before.safetensors"

// keepBefore keeps the last checkpoint beside the one that is written next, and returns
// where it stands. It takes no room while that is written, but for what a link takes.
func (t *trainer) keepBefore(next place) *place {
	if !t.saved.good || t.sweeps() {
		return nil
	}
	if t.begins(t.saved.place) == t.begins(next) {
		return t.saved.before // they are the same
	}
	before := filepath.Join(t.options.Dir, beforeFile)
	_ = os.Remove(before)
	if err := os.Link(filepath.Join(t.options.Dir, CheckpointFile), before); err != nil {
		t.log.Debug("the checkpoint before the last could not be kept", "err", err)
		return nil
	}
	at := t.saved.place
	return &at
}

// goodBefore says whether the last checkpoint is of before what has failed and began at a
// place. If it is not, the one before it takes its place, if that is.
func (t *trainer) goodBefore(failed place) bool {
	failed = t.begins(failed)
	if !t.saved.good || t.begins(t.saved.place).before(failed) {
		return t.saved.good
	}
	before := t.saved.before
	if before == nil || !t.begins(*before).before(failed) {
		return false
	}
	last := filepath.Join(t.options.Dir, CheckpointFile)
	if err := os.Rename(filepath.Join(t.options.Dir, beforeFile), last); err != nil {
		t.log.Warn("could not go back to the checkpoint before the last", "err", err)
		return false
	}
	t.saved = saved{at: t.saved.at, good: true, place: *before}
	return true
}

// dropBefore removes it when the run has ended.
func (t *trainer) dropBefore() {
	if t.saved.before != nil {
		_ = os.Remove(filepath.Join(t.options.Dir, beforeFile))
	}
}

// begins is the place from which a run goes on that stands at one: the end of an epoch is
// the beginning of the next.
func (t *trainer) begins(at place) place {
	if at.step >= t.batches.steps {
		at.epoch, at.step = at.epoch+1, 0
	}
	at.left = 1
	return at
}
