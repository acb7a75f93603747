package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hopmesh/hopmesh/node/bench"
)

// A Reading is what a node takes at one time.
type Reading struct {
	Memory      float64 `json:"memory"` // anonymous and shared, MiB
	Goroutines  float64 `json:"goroutines"`
	Descriptors float64 `json:"descriptors"`
	Disk        float64 `json:"disk"` // of its data directory, MiB
}

const mib = 1 << 20

// read reads a node whose data directory is dir.
func read(ctx context.Context, pid int, dir string) (r Reading, err error) {
	var errs [4]error
	r.Memory, errs[0] = memory(pid)
	r.Goroutines, errs[1] = goroutines(ctx, filepath.Join(dir, "hopmesh.sock"))
	r.Descriptors, errs[2] = descriptors(pid)
	r.Disk, errs[3] = disk(dir)
	return r, errors.Join(errs[:]...)
}

func memory(pid int) (float64, error) {
	anonymous, err := bench.StatusMB(pid, "RssAnon:")
	if err != nil {
		return 0, err
	}
	shared, err := bench.StatusMB(pid, "RssShmem:")
	return (anonymous + shared) * 1e6 / mib, err
}

func descriptors(pid int) (float64, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("count a process's descriptors: %w", err)
	}
	return float64(len(list)), nil
}

// goroutines asks a daemon by its socket.
func goroutines(ctx context.Context, socket string) (float64, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daemon/debug/pprof/goroutine?debug=1", nil)
	if err != nil {
		return 0, fmt.Errorf("count a daemon's goroutines: %w", err)
	}
	answer, err := transport.RoundTrip(q)
	if err != nil {
		return 0, fmt.Errorf("count a daemon's goroutines: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("count a daemon's goroutines: %w", err)
	}
	return total(string(text))
}

// total reads the first line of a profile of goroutines.
func total(profile string) (float64, error) {
	line, _, _ := strings.Cut(profile, "\n")
	number, is := strings.CutPrefix(line, "goroutine profile: total ")
	n, err := strconv.ParseUint(number, 10, 32)
	if !is || err != nil {
		return 0, fmt.Errorf("count a daemon's goroutines: it says %q", line)
	}
	return float64(n), nil
}

// disk returns what a folder's files take.
func disk(dir string) (float64, error) {
	var blocks int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				if s, is := info.Sys().(*syscall.Stat_t); is {
					blocks += s.Blocks
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measure a folder: %w", err)
	}
	return float64(blocks) * 512 / mib, nil
}
