package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"golang.org/x/sys/unix"
)

// A dataDir is the node's directory on disk, locked while the node runs.
type dataDir struct {
	path string
	lock *os.File
}

// lockPatience is how long a predecessor may take to be gone: one that was killed holds
// its lock until the kernel has taken its memory back.
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

// openDataDir creates the directory if need be, proves that it can be written,
// and locks it against a second node.
func openDataDir(path string) (*dataDir, error) {
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
	return &dataDir{path: path, lock: f}, nil
}

func (d *dataDir) close() error { return d.lock.Close() }

func (d *dataDir) identity() string { return filepath.Join(d.path, "identity") }
func (d *dataDir) raft() string     { return filepath.Join(d.path, "raft") }
func (d *dataDir) datasets() string { return filepath.Join(d.path, "datasets") }
func (d *dataDir) jobs() string     { return filepath.Join(d.path, "jobs") }
func (d *dataDir) socket() string   { return filepath.Join(d.path, "hopmesh.sock") }
func (d *dataDir) peersFile() string {
	return filepath.Join(d.path, "peers.json")
}

// freshFile says that the node has an identity but may have no log yet: it has
// just founded or joined a mesh. Only then may the log be empty, and only then
// may a founder begin one: a node whose log was lost may have promised what it
// held, and a founder that began again would make a second mesh of the same name.
func (d *dataDir) freshFile() string { return filepath.Join(d.path, "fresh") }

// begin marks the node as fresh. It comes before the identity.
func (d *dataDir) begin() error {
	if err := os.WriteFile(d.freshFile(), nil, 0o600); err != nil {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}

func (d *dataDir) fresh() bool {
	_, err := os.Stat(d.freshFile())
	return err == nil
}

// begun ends that, once the node has followed a plan in which it is.
func (d *dataDir) begun() error {
	if err := os.Remove(d.freshFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write to the data directory: %w", err)
	}
	return nil
}

// checkLog refuses an identity whose log is gone.
func (d *dataDir) checkLog() error {
	entries, err := os.ReadDir(d.raft())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", d.raft(), err)
	}
	if len(entries) > 0 || d.fresh() {
		return nil
	}
	return fmt.Errorf("%s holds the identity of a node, but its log in %s is gone, and with it what the node promised: move the directory away, run `hopmesh force-leave` for the node on another one, and join anew with a fresh token", d.path, d.raft())
}

// loadPeers reads where other nodes last were. A damaged file is the same as none:
// the others, or --join, will have to find this node.
func (d *dataDir) loadPeers() []mesh.Peer {
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

func (d *dataDir) savePeers(peers []mesh.Peer) error {
	b, err := json.Marshal(peers)
	if err != nil {
		return fmt.Errorf("save the peers: %w", err)
	}
	tmp := d.peersFile() + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("save the peers: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(tmp, d.peersFile())
	}
	if err != nil {
		return fmt.Errorf("save the peers: %w", err)
	}
	return nil
}

// erase makes the directory that of a node that never joined. The identity goes
// first: without it the rest is never read.
func (d *dataDir) erase(forgetIdentity func(dir string) error) error {
	if err := forgetIdentity(d.identity()); err != nil {
		return err
	}
	for _, path := range []string{d.raft(), d.peersFile(), d.datasets(), d.jobs()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clear the data directory: %w", err)
		}
	}
	return nil
}

// emptyRaft refuses a directory that holds a log but no identity: it was copied
// or damaged, and a new identity on top of an old log would vote twice.
func emptyRaft(d *dataDir) error {
	entries, err := os.ReadDir(d.raft())
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", d.raft(), err)
	}
	return fmt.Errorf("%s holds the log of a former node but the directory has no identity: move it away, or use another --data-dir", d.raft())
}
