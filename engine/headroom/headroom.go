// Package headroom says how much memory there is, for those who must know before they
// begin.
package headroom

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// Resident is how much this process holds by itself, not counting its program nor
// files that it maps.
func Resident() uint64 { return Field("/proc/self/status", "RssAnon:", 0) }

// Available is how much the machine, or the container that this process is in, could
// still give.
func Available() uint64 {
	free := Field("/proc/meminfo", "MemAvailable:", 4<<30)
	for _, c := range groups("/proc/self/cgroup", "/sys/fs/cgroup") {
		most, ok := number(c.most)
		used, known := number(c.used)
		if ok && known {
			free = min(free, most-min(most, used))
		}
	}
	return free
}

// Machine tells the memory that Available speaks of from that of other machines and
// containers: processes for which it is the same share it. 0: nobody knows.
func Machine() uint64 { return machine("/proc/sys/kernel/random/boot_id", "/proc/self/ns/cgroup") }

// Process tells this process from others, on this machine and elsewhere. It is never 0.
func Process() uint64 { return process }

var process = max(1, rand.Uint64())

func machine(boot, namespace string) uint64 {
	id, err := os.ReadFile(boot)
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(id)
	if space, err := os.Readlink(namespace); err == nil {
		_, _ = h.Write([]byte(space))
	}
	for _, c := range groups("/proc/self/cgroup", "/sys/fs/cgroup") {
		if _, ok := number(c.most); ok {
			_, _ = h.Write([]byte(c.most))
		}
	}
	return max(1, h.Sum64())
}

// A group is where a control group says what it may use and what it does.
type group struct{ most, used string }

// groups are those that bound this process: of version 2, or of version 1, by their
// names in the list, and as containers see their own.
func groups(list, root string) []group {
	two := func(dir string) group { return group{dir + "/memory.max", dir + "/memory.current"} }
	one := func(dir string) group {
		return group{dir + "/memory.limit_in_bytes", dir + "/memory.usage_in_bytes"}
	}
	all := []group{two(root), one(root + "/memory")}
	text, err := os.ReadFile(list)
	if err != nil {
		return all
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		for path := path; path != "" && path != "/"; path = path[:strings.LastIndexByte(path, '/')] {
			switch controllers {
			case "":
				all = append(all, two(root+path))
			case "memory":
				all = append(all, one(root+"/memory"+path))
			}
		}
	}
	return all
}

// number reads a file that holds nothing else.
func number(path string) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil // without a bound it says "max", or a number beyond any machine
}

// Field reads one number of kilobytes from a file of Linux; elsewhere it is what is
// assumed.
func Field(path, name string, assumed uint64) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return assumed
	}
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != name {
			continue
		}
		if n, err := strconv.ParseUint(string(words[1]), 10, 54); err == nil {
			return n << 10
		}
	}
	return assumed
}
