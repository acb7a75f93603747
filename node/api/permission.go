package api

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// whoMay says who may connect to a socket that this user may not connect to, and what to do. Where
// the folder of the socket is closed, its owner and group count.
func whoMay(socket string) string {
	info, err := os.Stat(socket)
	least := os.FileMode(0o060) // what the group needs
	if err != nil {
		info, err = os.Stat(filepath.Dir(socket))
		least = 0o010
	}
	if err != nil {
		return "run this as the user that runs `hopmesh agent`, or with sudo"
	}
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return "run this as the user that runs `hopmesh agent`, or with sudo"
	}
	owner, group := strconv.FormatUint(uint64(s.Uid), 10), strconv.FormatUint(uint64(s.Gid), 10)
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	if info.Mode().Perm()&least == least {
		return fmt.Sprintf("the socket is for the user %s and the group %s: let `sudo usermod -aG %s $USER` add this user to the group and log in anew, or run this with sudo", owner, group, group)
	}
	return fmt.Sprintf("the socket is for the user %s alone: run this as that user or with sudo, or have its agent started with --api-group GROUP", owner)
}
