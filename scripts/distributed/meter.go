package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/node/bench"
)

// A meter reads what the processes of one run use, in the same way for all sides: memory all the
// time, bytes and processor time when an epoch has ended.
type meter struct {
	nodes []int        // one process in each node's namespace
	all   func() []int // all processes
	marks []mark

	stop context.CancelFunc
	done sync.WaitGroup
	most uint64 // memory; read it after end

	began time.Time
	busy  time.Duration // of the machine, when the run began
	used  time.Duration // by the processes, at the last mark
	first time.Duration // by the processes, when the run began
}

// A mark is what was used until a moment.
type mark struct {
	sent uint64
	used time.Duration
}

// every is the time between readings of memory, which take a few milliseconds a process.
const every = 500 * time.Millisecond

// newMeter begins to read memory. What processes use from now on counts.
func newMeter(ctx context.Context, nodes []int, all func() []int) *meter {
	ctx, stop := context.WithCancel(ctx)
	m := &meter{nodes: nodes, all: all, stop: stop, began: time.Now(), busy: machineBusy(), first: usedBy(all())}
	m.used = m.first
	m.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			var sum uint64
			for _, pid := range all() {
				sum += shareOf(pid)
			}
			m.most = max(m.most, sum)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return m
}

// mark notes that training begins, or that an epoch has ended.
func (m *meter) mark() error {
	var sent uint64
	for _, pid := range m.nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
		if err != nil {
			return fmt.Errorf("read an interface's bytes: %w", err)
		}
		n, err := sentBy(string(text), "eth0")
		if err != nil {
			return err
		}
		sent += n
	}
	m.used = usedBy(m.all())
	m.marks = append(m.marks, mark{sent, m.used})
	return nil
}

// end stops reading and fills in what was read.
func (m *meter) end(r *run) {
	m.halt()
	r.Memory = m.most
	for i := 1; i < len(m.marks); i++ {
		r.Bytes = append(r.Bytes, m.marks[i].sent-m.marks[i-1].sent)
		r.Processor = append(r.Processor, (m.marks[i].used - m.marks[i-1].used).Seconds())
	}
	if took := time.Since(m.began); m.busy > 0 {
		r.Others = max(0, (machineBusy()-m.busy-(m.used-m.first)).Seconds()/took.Seconds())
	}
}

// halt stops reading; it may be called twice.
func (m *meter) halt() {
	m.stop()
	m.done.Wait()
}

// usedBy is the processor time of processes. One that has ended counts nothing.
func usedBy(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		if t, err := bench.CPUTime(pid); err == nil {
			sum += t
		}
	}
	return sum
}

// sentBy returns the bytes that a device has sent, from the text of /proc/net/dev.
func sentBy(text, device string) (uint64, error) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != device {
			continue
		}
		if fields := strings.Fields(rest); len(fields) > 8 {
			return strconv.ParseUint(fields[8], 10, 64)
		}
	}
	return 0, fmt.Errorf("read an interface's bytes: there is no %s", device)
}

// shareOf returns a process's proportional set size, or 0 if it has ended.
func shareOf(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	return pss(string(text))
}

// pss returns the proportional set size in the text of /proc/PID/smaps_rollup, or 0.
func pss(text string) uint64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// groups returns the processes of some process groups.
func groups(leaders []int) (pids []int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has just ended
		}
		group := groupOf(string(text))
		for _, leader := range leaders {
			if group == leader {
				if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// groupOf returns the process group in the text of /proc/PID/stat, or 0.
func groupOf(stat string) int {
	// The name before may hold spaces and brackets: count from its end.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0
	}
	group, err := strconv.Atoi(fields[2])
	if err != nil {
		return 0
	}
	return group
}

// machineBusy is how long all processors together have been at work, or 0 if that is unknown.
func machineBusy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return busyIn(string(text))
}

// busyIn reads the first line of /proc/stat: all fields but those of idle time and of guests, which
// others have already. What a host takes from this machine counts too.
func busyIn(stat string) (sum time.Duration) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	for i, f := range fields[1:9] {
		if i == 3 || i == 4 { // idle, and waiting for a disk
			continue
		}
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}
