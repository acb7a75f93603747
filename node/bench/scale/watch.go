package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// held returns the anonymous and shared memory in the text of /proc/PID/status, in bytes.
func held(status string) (uint64, error) {
	var sum uint64
	found := 0
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		if key != "RssAnon" && key != "RssShmem" {
			continue
		}
		kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
		if err != nil {
			return 0, fmt.Errorf("read a process's memory: %w", err)
		}
		sum += kb << 10
		found++
	}
	if found != 2 {
		return 0, errors.New("read a process's memory: its status has no RssAnon and RssShmem")
	}
	return sum, nil
}

// heldBy returns what a process holds.
func heldBy(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's memory: %w", err)
	}
	return held(string(b))
}

// available returns what the machine has left.
func available() (uint64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err != nil {
				return 0, fmt.Errorf("read the machine's memory: %w", err)
			}
			return kb << 10, nil
		}
	}
	return 0, errors.New("read the machine's memory: it does not say what is available")
}

// errShort ends a cell that would take what the machine needs.
var errShort = fmt.Errorf("ended by the benchmark: the machine had less than %s left", size(reserve))

// errFar ends a cell in which a daemon is far beyond its bound. It has missed every bar.
var errFar = errors.New("ended by the benchmark: a daemon took more than twice its bound and a gibibyte")

// far is what a daemon may take before it is ended; 0: anything.
func far(bound uint64) uint64 {
	if bound == 0 {
		return 0
	}
	return 2*bound + gib
}

// A watcher reads the memory of processes until it is stopped, and keeps the most.
type watcher struct {
	pids []int
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	most []uint64
}

// watch begins to read. give is called once, if the machine runs out or a process takes
// more than most; 0: it may take anything.
func watch(ctx context.Context, pids []int, most uint64, give func(error)) *watcher {
	ctx, stop := context.WithCancel(ctx)
	w := &watcher{pids: pids, stop: stop, most: make([]uint64, len(pids))}
	w.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			if n := w.read(); most > 0 && n > most {
				give(errFar)
				return
			}
			if left, err := available(); err == nil && left < reserve {
				give(errShort)
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return w
}

// read reads once, and returns the most that a process has held so far.
func (w *watcher) read() uint64 {
	for i, pid := range w.pids {
		n, err := heldBy(pid) // a process that has ended holds nothing
		if err != nil {
			continue
		}
		w.mu.Lock()
		w.most[i] = max(w.most[i], n)
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return largest(w.most)
}

// end stops reading and returns the most that each process held.
func (w *watcher) end() []uint64 {
	w.stop()
	w.done.Wait()
	return w.most
}

// willTrain is what a daemon logs before a job's first step.
var willTrain = regexp.MustCompile(`msg="will train".* arena_bytes=(\d+)`)

// forecastIn returns what the daemon last said that a job takes; 0: nothing.
func forecastIn(log string) uint64 {
	all := willTrain.FindAllStringSubmatch(log, -1)
	if len(all) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(all[len(all)-1][1], 10, 63)
	if err != nil {
		return 0
	}
	return n
}
