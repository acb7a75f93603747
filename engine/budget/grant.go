package budget

import (
	"fmt"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Grant is how much memory a process may hold.
type Grant struct {
	Bytes uint64
	From  string // what bounds it
}

const (
	leastMargin = 32 << 20
	// reserved is what a data limit keeps for the Go runtime when memory outside of the
	// heap is taken: the process dies where the runtime gets none.
	reserved = 16 << 20
)

// Granted returns how much memory this process may hold: what was asked for or, if that is
// 0, what its machine has left, but no more than its control groups and its own limits
// (RLIMIT_DATA, RLIMIT_AS) give. All but what was asked for keep a margin, for what the
// runtime and the kernel take beside.
func Granted(asked uint64) Grant { return granted(asked, proc) }

// files are where Linux says what a process has.
type files struct{ status, limits, meminfo, groups, root string }

var proc = files{"/proc/self/status", "/proc/self/limits", "/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup"}

func granted(asked uint64, f files) Grant {
	resident := Field(f.status, "RssAnon:", 0)
	g := Grant{Bytes: math.MaxUint64}
	atMost := func(bytes, share uint64, from string) {
		bytes -= min(bytes, max(bytes/share, leastMargin))
		if bytes = max(bytes, 1); bytes < g.Bytes {
			g = Grant{bytes, from}
		}
	}
	if asked > 0 {
		g = Grant{asked, "the setting"}
	} else {
		atMost(resident+Field(f.meminfo, "MemAvailable:", 4<<30), 16, "the machine")
	}
	for _, c := range groups(f.groups, f.root) {
		if most, ok := number(c.most); ok {
			atMost(most, 10, "its control group")
		}
	}
	// These count what is mapped, used or not.
	if most, ok := ownLimit(f.limits, "Max data size"); ok {
		idle := Field(f.status, "VmData:", 0)
		atMost(most-min(most, idle-min(idle, resident)), 8, "its limit of data")
	}
	if most, ok := ownLimit(f.limits, "Max address space"); ok {
		idle := Field(f.status, "VmSize:", 0)
		// Files of shards are mapped beside.
		atMost(most-min(most, idle-min(idle, resident)), 4, "its limit of address space")
	}
	return g
}

// ownLimit reads one of a process's own limits.
func ownLimit(path, name string) (uint64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, name); is {
			if words := strings.Fields(rest); len(words) > 0 {
				n, err := strconv.ParseUint(words[0], 10, 64)
				return n, err == nil // without a limit it is "unlimited"
			}
		}
	}
	return 0, false
}

// unmapped returns what the process's limit of data leaves, with what the Go heap has
// given back and would take again.
func unmapped(f files) (bytes uint64, limited bool) {
	most, limited := ownLimit(f.limits, "Max data size")
	if !limited {
		return 0, false
	}
	s := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	mapped := Field(f.status, "VmData:", 0)
	return most - min(most, mapped-min(mapped, s[0].Value.Uint64())), true
}

// Room returns an error if the process's limit of data would not leave the Go runtime
// what it needs, once so many bytes are mapped beside the heap.
func Room(bytes int) error { return room(bytes, proc) }

func room(bytes int, f files) error {
	most, limited := ownLimit(f.limits, "Max data size")
	if !limited {
		return nil
	}
	if mapped := Field(f.status, "VmData:", 0); mapped+uint64(bytes)+reserved > most {
		return fmt.Errorf("the process may map %s of data (RLIMIT_DATA), and has mapped %s", Format(most), Format(mapped))
	}
	return nil
}
