package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh"
	"golang.org/x/sys/unix"
)

// Dir is the node's directory on disk, locked while the node runs.
type Dir struct {
	path string
	lock *os.File
}

// lockPatience is how long to wait for the lock of a process that was killed. The kernel
// releases it only after it has freed the process's memory.
const lockPatience = 2 * time.Second

func lockSoon(f *os.File) error {
	for until := time.Now().Add(lockPatience); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || !time.Now().Before(until) {
			return err
		}
		time.Sleep(lockPatience / 40)
	}
}

// OpenDir creates the directory if necessary, checks that it can be written, locks it against
// a second node, and refuses one that another version of hopmesh keeps in a way of its own.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory %s: %w; choose another with --data-dir", path, err)
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write to the data directory %s: %w; choose another with --data-dir or change its owner", path, err)
	}
	if err := lockSoon(f); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("the data directory %s is in use by another hopmesh agent; stop that one or choose another with --data-dir", path)
		}
		return nil, fmt.Errorf("lock the data directory %s: %w", path, err)
	}
	d := &Dir{path: path, lock: f}
	if err := d.checkFormat(Disk); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

// Close unlocks the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// The folders and files of a node.

func (d *Dir) Identity() string { return filepath.Join(d.path, "identity") }
func (d *Dir) raft() string     { return filepath.Join(d.path, "raft") }
func (d *Dir) Datasets() string { return filepath.Join(d.path, "datasets") }
func (d *Dir) Jobs() string     { return filepath.Join(d.path, "jobs") }
func (d *Dir) Socket() string   { return filepath.Join(d.path, "hopmesh.sock") }

// JoinFile is the name of the file in a data directory that a founder may leave its join
// command in. It holds a secret.
const JoinFile = "join-command"

func (d *Dir) joinFile() string { return filepath.Join(d.path, JoinFile) }
func (d *Dir) peersFile() string {
	return filepath.Join(d.path, "peers.json")
}

// freshFile marks a node that has just founded or joined a mesh. It has an identity but
// may have no log yet. Only then may the log be empty, and only then may a founder begin
// one. A node that lost its log may have promised what it held, and a founder that began
// again would make a second mesh of the same name.
func (d *Dir) freshFile() string { return filepath.Join(d.path, "fresh") }

// begin marks the node as fresh. It is called before the identity is saved.
func (d *Dir) begin() error {
	if err := os.WriteFile(d.freshFile(), nil, 0o600); err != nil {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}

func (d *Dir) fresh() bool {
	_, err := os.Stat(d.freshFile())
	return err == nil
}

// begun removes the mark, once the node has seen a plan that contains it.
func (d *Dir) begun() error {
	if err := os.Remove(d.freshFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}

// checkLog returns an error, consensus.ErrDamaged, if there is an identity whose log is gone.
func (d *Dir) checkLog() error {
	entries, err := os.ReadDir(d.raft())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", d.raft(), err)
	}
	if len(entries) > 0 || d.fresh() || d.setback() != nil {
		return nil
	}
	return fmt.Errorf("the plan's log %w (%s is gone or empty)", consensus.ErrDamaged, d.raft())
}

// loadPeers reads the last known addresses of other nodes. It ignores a damaged file:
// then the other nodes, or --join, must find this node.
func (d *Dir) loadPeers() []mesh.Peer {
	b, err := os.ReadFile(d.peersFile())
	if err != nil {
		return nil
	}
	var peers []mesh.Peer
	if json.Unmarshal(b, &peers) != nil {
		return nil
	}
	return peers
}

func (d *Dir) savePeers(peers []mesh.Peer) error {
	b, err := json.Marshal(peers)
	if err != nil {
		return fmt.Errorf("save the peers: %w", err)
	}
	if err := writeWhole(d.peersFile(), b); err != nil {
		return fmt.Errorf("save the peers: %w", err)
	}
	return nil
}

// writeWhole replaces a file as a whole, or not at all.
func writeWhole(path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

// Erase removes everything that the node keeps as a member. The identity goes first:
// without it the rest is never read.
func (d *Dir) Erase(forgetIdentity func(dir string) error) error {
	if err := forgetIdentity(d.Identity()); err != nil {
		return err
	}
	for _, path := range []string{d.raft(), d.damaged(), d.salvaged(), d.setbackFile(), d.peersFile(), d.joinFile(), d.Datasets(), d.Jobs()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	return nil
}

// emptyRaft returns an error if the directory holds a log but no identity: it was copied
// or damaged, and a new identity on top of an old log would vote twice.
func emptyRaft(d *Dir) error {
	entries, err := os.ReadDir(d.raft())
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", d.raft(), err)
	}
	return fmt.Errorf("%s holds the log of a former node but the directory has no identity: move it away, or use another --data-dir", d.raft())
}
