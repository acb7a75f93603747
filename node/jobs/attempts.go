package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/train"
)

// attemptsFile lies in a job's folder while it runs and nothing new has come of that.
const attemptsFile = "attempts.json"

// How many daemons may end without a word while one job runs: it would end the next
// one too. Where it gets on in between, that may be chance, up to a point.
const (
	mostDeaths  = 2
	mostInEpoch = 10
)

// attempts counts how often a job has begun since it last got anywhere.
type attempts struct {
	Begun int `json:"begun"`
	// InEpoch counts on while this node does steps of an epoch that it shares, and never
	// comes to its end.
	InEpoch int `json:"in_epoch,omitempty"`
	// Checkpoint is the one that they began from: another one is progress, where no
	// other node can have made it.
	Checkpoint string `json:"checkpoint"`
}

// attempt notes that the job begins, and refuses if the daemon died each time that it
// did before.
func (r *run) attempt() error {
	path := filepath.Join(r.folder, attemptsFile)
	now := attempts{Checkpoint: checkpointIn(r.folder)}
	if r.shared() {
		now.Checkpoint = "" // that of another node is no progress of this one
	}
	var before attempts
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &before) == nil && before.Checkpoint == now.Checkpoint {
		now.Begun, now.InEpoch = before.Begun, before.InEpoch
	}
	if now.Begun >= mostDeaths || now.InEpoch >= mostInEpoch {
		r.counted = true
		r.survived() // who resumes the job has changed something
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
	r.counted, r.attempts = true, now
	if err := now.write(path); err != nil {
		r.cfg.Log.Warn("could not note that a job begins; should it end this daemon, it will begin again and again", "job", r.job.ID, "err", err)
	}
	return nil
}

// survived ends the count: the job got somewhere, or its end is known.
func (r *run) survived() {
	if !r.counted {
		return
	}
	r.counted = false
	if err := os.Remove(filepath.Join(r.folder, attemptsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.cfg.Log.Warn("could not note that a job gets on", "job", r.job.ID, "err", err)
	}
}

// stepped hears how far this node is. Of a job that it shares, what it does beyond where
// it began is progress, though another node's checkpoint tells of it.
func (r *run) stepped(epoch, step int) {
	if !r.shared() || !r.counted || r.attempts.Begun == 0 {
		return
	}
	if r.first == (place{}) {
		r.first = place{epoch, step}
	}
	if r.first == (place{epoch, step}) {
		return
	}
	r.attempts.Begun = 0
	if err := r.attempts.write(filepath.Join(r.folder, attemptsFile)); err != nil {
		r.cfg.Log.Warn("could not note that a job gets on", "job", r.job.ID, "err", err)
	}
}

// place is where in a job a node is.
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

// checkpointIn tells one checkpoint from the next.
func checkpointIn(folder string) string {
	info, err := os.Stat(filepath.Join(folder, train.CheckpointFile))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %d", info.Size(), info.ModTime().UnixNano())
}
