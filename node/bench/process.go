package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// A Daemon is an agent in a process of its own.
type Daemon struct {
	*api.Client
	process *exec.Cmd
}

// Launch starts an agent as anyone would, on a free port of this machine, and waits
// until it is ready.
func (r *Run) Launch(ctx context.Context, name string, args ...string) (*Daemon, error) {
	dir := filepath.Join(r.Dir, name)
	d := &Daemon{process: exec.CommandContext(ctx, r.Program, append([]string{
		"agent", "--data-dir", dir, "--name", name, "--listen", "127.0.0.1:0", "--device", "cpu", "--log-level", "error",
	}, args...)...)}
	if err := d.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Program, err)
	}
	var err error
	if d.Client, err = api.NewClient("unix:" + filepath.Join(dir, "hopmesh.sock")); err == nil {
		err = d.ready(ctx)
	}
	if err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// PID is the daemon's process.
func (d *Daemon) PID() int { return d.process.Process.Pid }

// Stop ends the daemon and waits for its end.
func (d *Daemon) Stop() {
	_ = d.process.Process.Signal(syscall.SIGTERM)
	_ = d.process.Wait()
}

func (d *Daemon) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if s, err := d.Status(ctx); err == nil && s.Ready {
			return nil
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for a daemon: %w", err)
		}
	}
}

// Pause waits, unless ctx ends before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CPUTimes returns what some processes have used together.
func CPUTimes[P interface{ PID() int }](all []P) (sum time.Duration, err error) {
	for _, p := range all {
		used, err := CPUTime(p.PID())
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// CPUTime returns what a process has used of all cores, as the kernel counts it, in
// steps of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's time: %w", err)
	}
	// The second field, the name, may hold spaces: count from its end.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read a process's time: %q", b)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read a process's time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// ResidentMB returns the memory that a process has resident, in MB.
func ResidentMB(pid int) (float64, error) { return StatusMB(pid, "VmRSS:") }

// PeakMB returns the most memory that a process has ever had resident, in MB.
func PeakMB(pid int) (float64, error) { return StatusMB(pid, "VmHWM:") }

// StatusMB returns a line of /proc/PID/status that is an amount of memory, in MB.
func StatusMB(pid int, key string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("read a process's memory: %w", err)
			}
			return kb * 1024 / 1e6, nil
		}
	}
	return 0, fmt.Errorf("read a process's memory: its status has no %s", key)
}
