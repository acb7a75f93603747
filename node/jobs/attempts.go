package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/train"
)

// attemptsFile is kept in a job's folder while the job runs and has made no progress.
const attemptsFile = "attempts.json"

// Limits on how many daemons may die in a row while one job runs: the job is likely to
// kill the next one too. A job that makes progress in between gets more attempts, since
// its deaths may be chance.
const (
	mostDeaths  = 2
	mostInEpoch = 10
)

// attempts counts how often a job has started since it last made progress.
type attempts struct {
	Begun int `json:"begun"`
	// InEpoch keeps counting while this node does steps of a shared epoch but never
	// completes it.
	InEpoch int `json:"in_epoch,omitempty"`
	// Checkpoint is the one from which these attempts started. A different one is
	// progress, unless another node may have written it.
	Checkpoint string `json:"checkpoint"`
}

// tries is a run's state about its attempts. Only the goroutine that trains uses it: see
// stepped.
type tries struct {
	counted  bool // the start is counted
	attempts attempts
	first    place // the first step of this run
}

// attempt counts a start of the job. It returns an error if the daemon died at each of
// the earlier starts.
func (r *run) attempt() error {
	path := filepath.Join(r.folder, attemptsFile)
	now := attempts{Checkpoint: checkpointIn(r.folder)}
	if r.shared() {
		now.Checkpoint = "" // another node's checkpoint is no progress of this one
	}
	var before attempts
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &before) == nil && before.Checkpoint == now.Checkpoint {
		now.Begun, now.InEpoch = before.Begun, before.InEpoch
	}
	if now.Begun >= mostDeaths || now.InEpoch >= mostInEpoch {
		r.tries.counted = true
		r.survived() // whoever resumes the job has changed something
	}
	switch {
	case now.InEpoch >= mostInEpoch:
		return fmt.Errorf("this node died %d times within one epoch of it: it may need more memory than the machine has, and with `hopmesh agent --memory` that is said beforehand; `hopmesh train resume %s` tries again", now.InEpoch, r.job.ID)
	case now.Begun >= mostDeaths:
		return fmt.Errorf("the node that ran it died twice meanwhile, and nothing was learnt in between: it may need more memory than the machine has, and with `hopmesh agent --memory` that is said beforehand; `hopmesh train resume %s` tries again", r.job.ID)
	}
	now.Begun++
	if r.shared() {
		now.InEpoch++
	}
	r.tries.counted, r.tries.attempts = true, now
	if err := now.write(path); err != nil {
		r.cfg.Log.Warn("could not note that a job begins; should it end this daemon, it will begin again and again", "job", r.job.ID, "err", err)
	}
	return nil
}

// survived resets the count: the job made progress, or its end is known.
func (r *run) survived() {
	if !r.tries.counted {
		return
	}
	r.tries.counted = false
	if err := os.Remove(filepath.Join(r.folder, attemptsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.cfg.Log.Warn("could not note that a job gets on", "job", r.job.ID, "err", err)
	}
}

// stepped records how far this node has come. In a shared job, any step beyond the first
// one of this run is progress, even if another node's checkpoint records it.
func (r *run) stepped(epoch, step int) {
	if !r.shared() || !r.tries.counted || r.tries.attempts.Begun == 0 {
		return
	}
	if r.tries.first == (place{}) {
		r.tries.first = place{epoch, step}
	}
	if r.tries.first == (place{epoch, step}) {
		return
	}
	r.tries.attempts.Begun = 0
	if err := r.tries.attempts.write(filepath.Join(r.folder, attemptsFile)); err != nil {
		r.cfg.Log.Warn("could not note that a job gets on", "job", r.job.ID, "err", err)
	}
}

// place is a node's position in a job.
type place struct{ epoch, step int }

func (a attempts) write(path string) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// checkpointIn returns a string that identifies the checkpoint in a folder. Each
// checkpoint has a different one.
func checkpointIn(folder string) string {
	info, err := os.Stat(filepath.Join(folder, train.CheckpointFile))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %d", info.Size(), info.ModTime().UnixNano())
}
