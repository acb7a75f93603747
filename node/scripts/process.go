package scripts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// grace is how long a command may take to end once it was asked to.
const grace = 5 * time.Second

// launch implements Launch.
func launch(ctx context.Context, folder string, command, environment []string, output *Lines) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, environment, output, output
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	// Where the system kills a command when its parent dies, that is the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return 0, fmt.Errorf("there is no program %s on this node: name another with --python", command[0])
		}
		return 0, err
	}
	err := cmd.Wait()
	// What it has started and left may hold nothing of the next one.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	status, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case is && status.Signaled():
		return -int(status.Signal()), nil
	case cmd.ProcessState.Exited():
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}
