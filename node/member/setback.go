package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A setback is that this node's part of the plan was found damaged: its log, its votes, or the
// plan itself. What is damaged is set aside, one copy of it, and never read by Raft again. The
// node then waits until the mesh has taken it out of those who decide, because it may have lost
// what it promised them, and comes back with an empty log. The file says so across restarts.
type setback struct {
	What  string    `json:"what"`
	Since time.Time `json:"since"`
	// Released means that the mesh expects nothing of this node any more, so that it may
	// begin an empty log.
	Released bool `json:"released"`
}

func (d *Dir) setbackFile() string { return filepath.Join(d.path, "damaged.json") }

// setback returns what stands in the file, or nil if there is none. A file that can't be read
// counts as one, of a node that was not released.
func (d *Dir) setback() *setback {
	b, err := os.ReadFile(d.setbackFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	s := new(setback)
	if err != nil || json.Unmarshal(b, s) != nil || s.What == "" {
		return &setback{What: "the plan's log was damaged"}
	}
	return s
}

// Behind reports whether this node must wait before it may take part: see Rejoin.
func (d *Dir) Behind() bool {
	s := d.setback()
	return s != nil && !s.Released
}

func (d *Dir) keepSetback(s setback) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = writeWhole(d.setbackFile(), b)
	}
	if err != nil {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}

// damaged is where the damaged log is set aside, and salvaged where a recovery works.
func (d *Dir) damaged() string  { return d.raft() + ".damaged" }
func (d *Dir) salvaged() string { return d.raft() + ".salvaged" }

// SetBack records damage, and has it set aside. It may be called again. What an earlier setback
// set aside, which is over, goes first: from then on Aside keeps the first copy.
func (d *Dir) SetBack(damage error, aside func() error) error {
	if !d.Behind() && !empty(d.raft()) {
		if err := os.RemoveAll(d.damaged()); err != nil {
			return fmt.Errorf("make room for the damaged log of the plan: %w", err)
		}
	}
	if err := d.keepSetback(setback{What: damage.Error(), Since: time.Now().UTC()}); err != nil {
		return err
	}
	return aside()
}

// empty reports whether a directory is not there, or holds nothing.
func empty(dir string) bool {
	list, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(list) == 0
}

// Aside sets the log of the plan aside. If there is a copy of this setback already, it is the one
// to keep: what stands in the log's place is then what an interrupted recovery made of it, and
// goes.
func Aside(raft string) error {
	to := raft + ".damaged"
	var err error
	switch {
	case empty(raft):
		return nil
	case empty(to):
		if err = os.RemoveAll(to); err == nil {
			err = os.Rename(raft, to)
		}
	default:
		err = os.RemoveAll(raft)
	}
	if err == nil {
		err = syncDir(filepath.Dir(raft))
	}
	if err != nil {
		return fmt.Errorf("set the damaged log of the plan aside: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// overcome ends the setback, once the node has followed a plan again.
func (d *Dir) overcome() error {
	if err := os.Remove(d.setbackFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}
