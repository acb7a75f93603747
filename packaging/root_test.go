//go:build packages

package packaging

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// root is this machine's root directory as a program sees it that is locked into a copy:
// what is changed there lies in memory, and is gone afterwards.
type root struct{ dir string }

// newRoot mounts a root. It needs a mount namespace of the test's own, as `make
// test-packages` makes.
func newRoot(t *testing.T) root {
	t.Helper()
	mine, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if mine == tool(t, "OUTER_MOUNTS") {
		t.Fatal("this would mount in the machine's own namespace: run it by `make test-packages`")
	}
	layers := t.TempDir()
	mount := func(source, at, kind string, flags uintptr, data string) {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(source, at, kind, flags, data); err != nil {
			t.Fatalf("mount %s at %s: %v", source, at, err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", at, err)
			}
		})
	}
	mount("tmpfs", layers, "tmpfs", 0, "mode=0755")
	r := root{filepath.Join(layers, "root")}
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(layers, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("overlay", r.dir, "overlay", 0, "lowerdir=/,upperdir="+filepath.Join(layers, "upper")+",workdir="+filepath.Join(layers, "work"))
	mount("proc", r.path("proc"), "proc", 0, "")
	mount("/dev", r.path("dev"), "", unix.MS_BIND|unix.MS_REC, "")
	// No process is managed here, whatever the machine has.
	mount("tmpfs", r.path("run"), "tmpfs", 0, "mode=0755")
	if r.exists("var/lib/hopmesh") || r.exists("usr/bin/hopmesh") {
		t.Fatal("hopmesh is installed on this machine: test on one where it is not")
	}
	return r
}

func (r root) path(name string) string { return filepath.Join(r.dir, name) }

func (r root) exists(name string) bool {
	_, err := os.Lstat(r.path(name))
	return err == nil
}

// command is a command of the root.
func (r root) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "chroot", slices.Concat([]string{r.dir}, args)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "TERM=dumb"}
	return cmd
}

// try runs a command, and returns what it prints.
func (r root) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := r.command(t, args...).CombinedOutput()
	return string(out), err
}

// run is try where the command must succeed.
func (r root) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.try(t, args...)
	if err != nil {
		t.Fatalf("%s: %v:\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r root) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r root) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(r.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files lists all files below a folder of the root, in order.
func (r root) files(t *testing.T, folder string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(r.path(folder), func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		list = append(list, strings.TrimPrefix(path, r.dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// daemon is a process that runs until it is stopped.
type daemon struct {
	cmd  *exec.Cmd
	out  bytes.Buffer // read it only after done
	done chan error
}

// start starts a daemon, which the test stops at the latest.
func start(t *testing.T, cmd *exec.Cmd) *daemon {
	t.Helper()
	d := &daemon{cmd: cmd, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &d.out, &d.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- cmd.Wait(); close(d.done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err, running := <-d.done; running {
			t.Logf("the daemon was killed: %v:\n%s", err, d.out.String())
		}
	})
	return d
}

// ready waits until a command says that all is well.
func (d *daemon) ready(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case ended := <-d.done:
			t.Fatalf("the daemon ended: %v:\n%s", ended, d.out.String())
		case <-ctx.Done():
			t.Fatalf("the daemon is not ready after two minutes: %v", err)
		case <-tick.C:
		}
	}
}

// stop stops the daemon as systemd does.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-d.done; err != nil {
		t.Errorf("the daemon ended with %v:\n%s", err, d.out.String())
	}
}

// released returns the one file of the release that matches a pattern.
func released(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tool(t, "RELEASE"), pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: found %q, %v: run `make test-packages`", pattern, files, err)
	}
	return files[0]
}

// tool returns a path that the Makefile hands in.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := os.Getenv(name)
	if path == "" {
		t.Fatalf("%s is not set: run `make test-packages`", name)
	}
	return path
}
