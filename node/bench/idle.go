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

// settle is left to three fresh nodes before their idle cost is taken, over
// watch.
const (
	settle = 15 * time.Second
	watch  = 20 * time.Second
)

// idle starts three daemons as anyone would and takes what the busiest of them
// costs while it has nothing to do. It is the leader, as a rule.
func (b *bench) idle(ctx context.Context) ([]Figure, error) {
	info, err := os.Stat(b.cfg.Program)
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	var daemons []*exec.Cmd
	defer func() {
		for _, d := range daemons {
			_ = d.Process.Signal(syscall.SIGTERM)
			_ = d.Wait()
		}
	}()
	run := func(name string, args ...string) (*api.Client, error) {
		dir := filepath.Join(b.dir, name)
		d := exec.CommandContext(ctx, b.cfg.Program, append([]string{
			"agent", "--data-dir", dir, "--name", name, "--listen", "127.0.0.1:0", "--device", "cpu", "--log-level", "error",
		}, args...)...)
		if err := d.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", b.cfg.Program, err)
		}
		daemons = append(daemons, d)
		c, err := api.NewClient("unix:" + filepath.Join(dir, "hopmesh.sock"))
		if err != nil {
			return nil, err
		}
		return c, ready(ctx, c)
	}
	first, err := run("i1", "--bootstrap")
	if err != nil {
		return nil, err
	}
	token, err := first.CreateToken(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	members, err := first.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"i2", "i3"} {
		if _, err := run(name, "--join", members[0].Address, "--token", token.Token); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	var resident, share float64
	before := make([]time.Duration, len(daemons))
	begin := time.Now()
	for i, d := range daemons {
		if before[i], err = cpuTime(d.Process.Pid); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, watch); err != nil {
		return nil, err
	}
	for i, d := range daemons {
		after, err := cpuTime(d.Process.Pid)
		if err != nil {
			return nil, err
		}
		share = max(share, 100*float64(after-before[i])/float64(time.Since(begin)))
		rss, err := residentMB(d.Process.Pid)
		if err != nil {
			return nil, err
		}
		resident = max(resident, rss)
	}
	return []Figure{
		below("idle node of three, resident", "MB", resident, 60),
		below("idle node of three, of a core", "%", share, 1),
		below("the program's size", "MB", float64(info.Size())/1e6, 40),
	}, nil
}

func ready(ctx context.Context, c *api.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if s, err := c.Status(ctx); err == nil && s.Ready {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for a daemon: %w", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cpuTime is what a process has used of all cores, by the kernel's account, in
// steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read a daemon's account: %w", err)
	}
	// The second field, the name, may hold spaces: count from its end.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read a daemon's account: %q", b)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read a daemon's account: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func residentMB(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read a daemon's memory: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read a daemon's memory: %q", b)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a daemon's memory: %w", err)
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6, nil
}
