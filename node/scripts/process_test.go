package scripts

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command has written arrives, though it is taken long after the command's end, and something that
// the command has started holds the pipe. That is ended, and holds nobody up.
func TestOutputThatIsTakenLate(t *testing.T) {
	const lines = 305 // more than is held, and what is more fits into the pipe
	text := strings.Repeat("x", 1000)
	folder := t.TempDir()
	alive := filepath.Join(folder, "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &held{changed: make(chan struct{})}
	go func() {
		w := &Lines{ctx: t.Context(), to: h}
		code, err := launchWithin(t.Context(), time.Millisecond, folder,
			[]string{"/bin/sh", "-c", `exec 3>alive; sleep 1000 & yes "$1" | head -n "$2"; exit 7`, "x", text, strconv.Itoa(lines)}, []string{"PATH=/bin:/usr/bin"}, w)
		if err != nil {
			t.Error(err)
		}
		w.Close()
		h.end(code)
	}()
	f, err := os.Open(alive) // waits until it has begun
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || len(b) > 0 { // waits until all of it has ended
		t.Errorf("%q, %v", b, err)
	}
	from := 0
	for {
		r, changed := h.report(from)
		for _, l := range r.Lines {
			if l.Text != text {
				t.Errorf("line %d is %.100q", from, l.Text)
			}
			from++
		}
		if r.Over {
			if from != lines || r.Code != 7 {
				t.Errorf("%d lines of %d, and it ended with exit code %d", from, lines, r.Code)
			}
			return
		}
		if len(r.Lines) == 0 {
			<-changed
		}
	}
}

// Whoever holds a pipe without an end is not waited for.
func TestDrainDoesNotWait(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	want := bytes.Repeat([]byte("x"), 10_000)
	if _, err := to.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := from.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for range 2 { // the second finds nothing
		if drain(&got, from); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes of %d", got.Len(), len(want))
		}
	}
}

// If a program is missing, the error says what to do. If the folder is missing instead, it does not blame
// the program.
func TestProgramsThatAreMissing(t *testing.T) {
	for program, is := range map[string]bool{"hopmesh-nothing": false, "/nonexistent/python": false, "/bin/sh": true} {
		for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nowhere")} {
			_, err := launch(t.Context(), folder, []string{program, "-c", ":"}, nil, &Lines{ctx: t.Context(), to: &held{changed: make(chan struct{})}})
			_, gone := os.Stat(folder)
			if program == "/nonexistent/python" && gone != nil {
				continue // both are missing, and the error may name either
			}
			said := err != nil && strings.Contains(err.Error(), "there is no program "+program+" on this node: name another with --python")
			if said == is || (err == nil) != (is && gone == nil) {
				t.Errorf("%s in %s: %v", program, folder, err)
			}
		}
	}
}
