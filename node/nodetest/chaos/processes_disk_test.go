//go:build processes

package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// diskSize is that of each node's disk, in bytes: what a history writes, several times.
const diskSize = 192 << 20

// A disk is a file system of its own, in memory, for what one node keeps.
type disk struct{ at, ballast string }

// attach gives the nodes disks of their own, below a folder.
func attach(t *testing.T, dir string, nodes int) (all []disk) {
	for i := range nodes {
		at := filepath.Join(dir, fmt.Sprintf("n%d", i+1))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)); err != nil {
			t.Fatalf("give a node a disk of its own: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Errorf("take a node's disk away: %v", err)
			}
		})
		all = append(all, disk{at, filepath.Join(at, "ballast")})
	}
	return all
}

// fill takes all the room that is left.
func (d disk) fill() error {
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, piece := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, piece))
		}
		if !errors.Is(err, unix.ENOSPC) {
			return errors.Join(err, f.Close())
		}
		err = nil
	}
	return f.Close()
}

// full reports whether the disk is filled.
func (d disk) full() bool {
	_, err := os.Stat(d.ballast)
	return err == nil
}

// free ends that.
func (d disk) free() error {
	if err := os.Remove(d.ballast); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
