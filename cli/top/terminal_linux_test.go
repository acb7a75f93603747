package top_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
	"golang.org/x/sys/unix"
)

// A screen is the other end of a terminal: it has the keys, and sees what is written.
type screen struct {
	t    *testing.T
	keys *os.File
	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{} // closed with whatever is seen next
}

// newScreen makes a terminal of 80 by 24, and returns what a program has of it.
func newScreen(t *testing.T) (*screen, *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, keys: keys, more: make(chan struct{})}
	s.size(80, 24)
	var reading sync.WaitGroup
	reading.Go(s.read)
	t.Cleanup(func() {
		// The terminal itself is not closed: a program that a signal has ended may still be
		// about to read from it.
		_, _ = tty.WriteString(farewell)
		reading.Wait()
		_ = keys.Close()
	})
	return s, tty
}

// farewell is what no program writes: the reader ends when it has seen that.
const farewell = "\x00the test is over\x00"

func (s *screen) size(width, height uint16) {
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		s.t.Error(err)
	}
}

func (s *screen) read() {
	part := make([]byte, 4096)
	for {
		n, err := s.keys.Read(part)
		s.mu.Lock()
		s.seen.Write(part[:n])
		over := strings.Contains(s.seen.String(), farewell)
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		if err != nil || over {
			return
		}
	}
}

func (s *screen) text() string {
	text, _ := s.now()
	return text
}

func (s *screen) now() (text string, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String(), s.more
}

// until waits for what is to be written.
func (s *screen) until(text string) bool {
	end := time.After(time.Minute)
	for {
		seen, more := s.now()
		if strings.Contains(seen, text) {
			return true
		}
		select {
		case <-more:
		case <-end:
			s.t.Errorf("no %q in %q", text, seen)
			return false
		}
	}
}

func (s *screen) press(keys string) {
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Error(err)
	}
}

func settings(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *now
}

// However it ends, the terminal is as it was.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	kill := func(s syscall.Signal) func(*screen, context.CancelFunc) {
		return func(*screen, context.CancelFunc) {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Error(err)
			}
		}
	}
	for name, end := range map[string]func(*screen, context.CancelFunc){
		"q":           func(s *screen, _ context.CancelFunc) { s.press("q") },
		"ctrl+c":      func(s *screen, _ context.CancelFunc) { s.press("\x03") },
		"the context": func(_ *screen, cancel context.CancelFunc) { cancel() },
		"SIGTERM":     kill(syscall.SIGTERM),
		"SIGHUP":      kill(syscall.SIGHUP),
		"SIGQUIT":     kill(syscall.SIGQUIT),
		"while it waits for an answer": func(s *screen, _ context.CancelFunc) {
			s.press("jjq")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", "xterm-256color")
			t.Setenv("NO_COLOR", "")
			s, tty := newScreen(t)
			before := settings(t, tty)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := clitest.Healthy()
			b.Open = true
			code := runTop(t, ctx, s, tty, b, func() { end(s, cancel) })
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			if now := settings(t, tty); now != before {
				t.Errorf("%+v is now %+v", before, now)
			}
			s.until("\x1b[?1049l")
			text := s.text()
			for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h"} {
				if !strings.Contains(text, on) || strings.LastIndex(text, off) < strings.LastIndex(text, on) {
					t.Errorf("%q was not taken back", on)
				}
			}
			if !strings.Contains(text, "\x1b[32m") && !strings.Contains(text, ";32m") && !strings.Contains(text, "\x1b[32;") {
				t.Errorf("no colours in %q", text)
			}
		})
	}
}

// runTop runs the command on a terminal, and lets it end once it shows the mesh.
func runTop(t *testing.T, ctx context.Context, s *screen, tty *os.File, b api.Backend, end func()) int { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	var ending sync.WaitGroup
	root := root()
	root.SetIn(tty)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ending.Go(func() {
		if s.until("DEVICE") {
			end()
		} else {
			cancel()
		}
	})
	code := cli.Execute(ctx, root, []string{"top", "--addr", clitest.Serve(t, b)}, tty, os.Stderr)
	ending.Wait()
	return code
}

func TestTopWithoutColours(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "1")
	s, tty := newScreen(t)
	b := clitest.Healthy()
	b.Open = true
	code := runTop(t, t.Context(), s, tty, b, func() { s.press("q") })
	if text := s.text(); code != 0 || strings.Contains(text, "\x1b[32m") || strings.Contains(text, "\x1b[1m") {
		t.Errorf("%d %q", code, text)
	}
}

// A window that gets larger shows more; keys are heard; a daemon that comes late is
// found.
func TestTopInAWindowThatIsUsed(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "1")
	s, tty := newScreen(t)
	s.size(60, 10)
	b := late{Backend: clitest.Healthy(), soon: make(chan struct{})}
	b.Open = true
	go func() {
		if s.until("Not yet") {
			close(b.soon)
		}
	}()
	code := runTop(t, t.Context(), s, tty, b, func() {
		s.size(120, 40)
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Error(err)
		}
		s.until("10.0.0.1:7946")
		s.until("No events yet")
		s.press("p")
		s.until("PAUSED")
		s.press("q")
	})
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// late is a node that is not there at first.
type late struct {
	*clitest.Backend
	soon chan struct{}
}

func (l late) Status(ctx context.Context) (api.Status, error) {
	select {
	case <-l.soon:
		return l.Backend.Status(ctx)
	default:
		return api.Status{}, api.Unavailable("not yet")
	}
}

func TestTopOnATerminalThatCanNothing(t *testing.T) {
	t.Setenv("TERM", "dumb")
	_, tty := newScreen(t)
	root := root()
	root.SetIn(tty)
	var diag strings.Builder
	if code := cli.Execute(t.Context(), root, []string{"top", "--addr", clitest.Serve(t, clitest.Healthy())}, tty, &diag); code != 2 || !strings.Contains(diag.String(), "needs a terminal") {
		t.Errorf("%d %s", code, diag.String())
	}
}
