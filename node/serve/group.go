package serve

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// nobody is the group of a socket that is for its owner alone.
const nobody = -1

// group returns the number of a group of this machine, by its name or number.
func group(name string) (int, error) {
	if name == "" {
		return nobody, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		if g, err = user.LookupGroupId(name); err != nil {
			return nobody, fmt.Errorf("there is no group %q on this machine for the API's socket: make it with `groupadd`, or choose another with --api-group", name)
		}
	}
	return strconv.Atoi(g.Gid)
}

// open lets the group use a socket. Whoever may connect may ask for everything.
func open(path string, gid int) error {
	if gid == nobody {
		return protect(path, os.Chmod(path, 0o600))
	}
	if err := give(path, gid); err != nil {
		return err
	}
	return protect(path, os.Chmod(path, 0o660)) //nolint:gosec // that is what the group is for
}

// enter lets the group pass through the folder of the node's own socket, which it can't list or
// change, whatever its group could before. Without a group, a folder that its group may pass and
// not look into is closed to its group: an earlier start has left it so. What else is there is
// closed to it by the modes of its own.
func enter(dir string, gid int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return protect(dir, err)
	}
	closed := info.Mode().Perm() &^ 0o070
	if gid == nobody {
		if info.Mode().Perm() != closed|0o010 {
			return nil
		}
		return protect(dir, os.Chmod(dir, closed))
	}
	if err := os.Chmod(dir, closed); err != nil { // at no time is it open to another group
		return protect(dir, err)
	}
	if err := give(dir, gid); err != nil {
		return err
	}
	return protect(dir, os.Chmod(dir, closed|0o010))
}

// give makes a file one of the group, unless it is already: a service that needs no other group may
// not be allowed to change any.
func give(path string, gid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return protect(path, err)
	}
	if s, is := info.Sys().(*syscall.Stat_t); is && int(s.Gid) == gid {
		return nil
	}
	if err := os.Chown(path, -1, gid); err != nil {
		return denied(path, gid, err)
	}
	return nil
}

func protect(path string, err error) error {
	if err != nil {
		return fmt.Errorf("protect the API's socket %s: %w", filepath.Clean(path), err)
	}
	return nil
}

func denied(path string, gid int, err error) error {
	name := strconv.Itoa(gid)
	if g, unknown := user.LookupGroupId(name); unknown == nil {
		name = g.Name
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("this user can't give %s to the group %s, which it is not in: add it to the group, or choose another with --api-group", path, name)
	}
	return fmt.Errorf("give %s to the group %s: %w", path, name, err)
}
