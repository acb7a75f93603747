package scripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// grace is how long a command may take to end once it was asked to, and what it has started once it has
// ended.
const grace = 5 * time.Second

// mostPiped is what a pipe holds at most, unless root has made it larger.
const mostPiped = 1 << 20

// launch implements Launch.
func launch(ctx context.Context, folder string, command, environment []string, output *Lines) (int, error) {
	return launchWithin(ctx, grace, folder, command, environment, output)
}

// launchWithin is launch with another grace. All that the command has written arrives, however slowly it is
// taken, so package exec must not copy it: that would give up some time after the command's end.
func launchWithin(ctx context.Context, grace time.Duration, folder string, command, environment []string, output io.Writer) (int, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer from.Close()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, environment, to, to
	cmd.SysProcAttr = attributes()
	var asked time.Time // to end
	cmd.Cancel = func() error {
		asked = time.Now()
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = grace
	// Where the system kills a command when its parent dies, that is the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	_ = to.Close() // the command has its own
	if err != nil {
		if missing(err, folder) {
			return 0, fmt.Errorf("there is no program %s on this node: name another with --python", command[0])
		}
		return 0, err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if _, err := io.Copy(output, from); errors.Is(err, os.ErrDeadlineExceeded) {
			drain(output, from)
		}
	}()
	err = cmd.Wait()
	if asked.IsZero() {
		asked = time.Now()
	}
	select {
	case <-copied:
	case <-time.After(time.Until(asked.Add(grace))):
		// Something that it has started holds the pipe, or what it has written is not taken yet.
		_ = from.SetReadDeadline(asked)
	}
	// What it has started and left may hold nothing of the next one.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-copied
	status, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case is && status.Signaled():
		return -int(status.Signal()), nil
	case cmd.ProcessState.Exited():
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}

// missing reports whether a command was not started since there is no such program: a name without a slash
// was not found, or one with a slash names no file.
func missing(err error, folder string) bool {
	if errors.Is(err, exec.ErrNotFound) {
		return true
	}
	_, gone := os.Stat(folder) // that may be what does not exist
	return errors.Is(err, fs.ErrNotExist) && gone == nil
}

// drain writes what a pipe holds now, and does not wait for more: who still writes there may never end.
func drain(to io.Writer, from *os.File) {
	raw, err := from.SyscallConn()
	if err == nil {
		err = from.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return
	}
	held, n := make([]byte, mostPiped), 0
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), held) // the pipe does not block
		return true
	})
	_, _ = to.Write(held[:max(0, n)])
}
