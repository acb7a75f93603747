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

// SetBack records damage, and has it set aside. It may be called again.
func (d *Dir) SetBack(damage error, aside func() error) error {
	if err := d.keepSetback(setback{What: damage.Error(), Since: time.Now().UTC()}); err != nil {
		return err
	}
	return aside()
}

// Aside sets the log of the plan aside, in place of what was set aside before.
func Aside(raft string) error {
	to := raft + ".damaged"
	list, err := os.ReadDir(raft)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(to)
	}
	if err == nil {
		err = os.Rename(raft, to)
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
