// Package cgroup finds the control groups that limit this process.
package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Group is the folder of a control group.
type Group struct {
	Dir    string
	Second bool // version 2, and not 1
}

// Of returns the groups whose controller, such as memory, limits this process.
func Of(controller string) []Group { return In("/proc/self/cgroup", "/sys/fs/cgroup", controller) }

// In returns those that a list names, below the root of their file system, and the root itself, as
// which containers see their own.
func In(list, root, controller string) []Group {
	first := filepath.Join(root, controller)
	all := []Group{{root, true}, {first, false}}
	text, err := os.ReadFile(list)
	if err != nil {
		return all
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		for path := path; path != "" && path != "/"; path = path[:strings.LastIndexByte(path, '/')] {
			switch {
			case controllers == "":
				all = append(all, Group{root + path, true})
			case slices.Contains(strings.Split(controllers, ","), controller):
				all = append(all, Group{first + path, false})
			}
		}
	}
	return all
}
