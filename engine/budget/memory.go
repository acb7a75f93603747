package budget

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/cgroup"
)

// Memory is the memory of the machine, and of the process, that a node runs in.
type Memory struct {
	Machine, Process uint64 // see Machine and Process; 0: unknown
	Free             uint64 // of the machine, whatever the process may map
	Resident         uint64 // held by the process, for all nodes in it
}

// Here returns the memory of this machine and process.
func Here() Memory {
	return Memory{Machine: Machine(), Process: Process(), Free: free(), Resident: Resident()}
}

// Left returns what is left of a limit after some of it is taken; a limit of 0 stands for
// what the machine could still give.
func Left(limit, taken uint64) uint64 {
	if limit == 0 {
		return Available()
	}
	return limit - min(limit, taken)
}

// Resident is how much this process holds by itself, not counting its program nor
// files that it maps.
func Resident() uint64 { return Field("/proc/self/status", "RssAnon:", 0) }

// Available is how much this process could still get.
func Available() uint64 { return mappable(free(), proc) }

// mappable returns how much of free memory this process's limit of data lets it have.
func mappable(free uint64, f files) uint64 {
	if left, limited := unmapped(f); limited {
		return min(free, left-min(left, reserved))
	}
	return free
}

// free is how much the machine, or the container that this process is in, could still give.
func free() uint64 {
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

// Machine identifies the machine or container whose free memory Here reports: processes
// with the same value share that memory. 0: unknown.
func Machine() uint64 { return machine("/proc/sys/kernel/random/boot_id", "/proc/self/ns/cgroup") }

// Process identifies this process among all on any machine. It is never 0.
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

// group names the files in which a control group reports its limit and its use.
type group struct{ most, used string }

// groups returns the control groups that limit this process's memory.
func groups(list, root string) (all []group) {
	for _, g := range cgroup.In(list, root, "memory") {
		if g.Second {
			all = append(all, group{g.Dir + "/memory.max", g.Dir + "/memory.current"})
		} else {
			all = append(all, group{g.Dir + "/memory.limit_in_bytes", g.Dir + "/memory.usage_in_bytes"})
		}
	}
	return all
}

// number reads a file that holds one number and nothing else.
func number(path string) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil // without a limit it is "max", or a number beyond any machine
}

// Field returns, in bytes, a number of kilobytes from one of Linux's files; on other
// systems, the assumed one.
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
