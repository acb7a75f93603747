//go:build processes

package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// diskSize is that of each node's disk, in bytes: what a history writes, several times.
const diskSize = 192 << 20

// A disk is a file system of its own for what one node keeps. It lies in a file, and loses what was
// not synced when the power fails.
type disk struct{ at, image, ballast string }

// attach gives the nodes disks of their own, below a folder.
func attach(t *testing.T, dir string, nodes int) (all []disk) {
	for i := range nodes {
		at := filepath.Join(dir, fmt.Sprintf("n%d", i+1))
		d := disk{at, at + ".disk", filepath.Join(at, "ballast")}
		err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, diskSize))
		if err == nil {
			err = command("mkfs.ext4", "-q", "-F", "-m", "0", d.image)
		}
		if err == nil {
			err = d.mount()
		}
		if err != nil {
			t.Fatalf("give a node a disk of its own: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Errorf("take a node's disk away: %v", err)
			}
		})
		if err := errors.Join(os.Chmod(at, 0o700), os.Remove(filepath.Join(at, "lost+found"))); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// mount has the kernel help nobody who forgets to sync before a rename, and write by itself rarely.
func (d disk) mount() error {
	return command("mount", "-o", "loop,noauto_da_alloc,commit=60", d.image, d.at)
}

// The ioctl that stops a file system of ext4 at once, and its flag not to write the journal first.
const (
	ext4Shutdown = 0x8004587d
	noLogFlush   = 2
)

// blackout loses what was not synced, as a machine does that loses its power. No process may use the
// disk.
func (d *disk) blackout() error {
	f, err := os.Open(d.at)
	if err != nil {
		return err
	}
	err = errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, noLogFlush), f.Close())
	if err != nil {
		return fmt.Errorf("stop a node's disk: %w", err)
	}
	if err := unix.Unmount(d.at, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("stop a node's disk: %w", err)
	}
	// Other processes have mount namespaces of their own, which keep the disk that was stopped: what
	// had come to it goes on as another.
	before := d.image
	d.image += "+"
	if err := command("cp", "--sparse=always", before, d.image); err != nil {
		return err
	}
	return errors.Join(os.Remove(before), d.mount())
}

func TestBlackout(t *testing.T) {
	d := &attach(t, t.TempDir(), 1)[0]
	write := func(name string, sync bool) {
		f, err := os.Create(filepath.Join(d.at, name))
		if err == nil {
			_, err = f.WriteString("whole")
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("synced", true)
	write("not", false)
	if err := d.blackout(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(d.at, "synced")); err != nil || string(b) != "whole" {
		t.Errorf("what was synced is %q: %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(d.at, "not")); err == nil && string(b) == "whole" {
		t.Error("nothing was lost")
	}
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
	return errors.Join(f.Sync(), f.Close())
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
