package mapped

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// short maps a file that is cut short afterwards.
func short(t *testing.T) ([]byte, *Mapping) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(path, make([]byte, 3<<12), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 3<<12, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	m := Add(path, b)
	t.Cleanup(func() {
		m.Remove()
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	return b, m
}

func TestAFileThatIsCutShort(t *testing.T) {
	b, m := short(t)
	read := func() (x byte, err error) {
		defer End(Guard())
		defer Caught(&err)
		return b[2<<12], nil
	}
	if m.Broken() {
		t.Error("it is broken before it is read")
	}
	if _, err := read(); !errors.Is(err, ErrUnreadable) || !strings.HasPrefix(err.Error(), "read "+m.path) || !m.Broken() {
		t.Error(err)
	}
}

// A goroutine's fault is that of who waits for it.
func TestGroup(t *testing.T) {
	b, m := short(t)
	sum := byte(0)
	read := func() (err error) {
		defer Caught(&err)
		var g Group
		for i := range 3 {
			g.Go(func() {
				if i == 1 {
					sum += b[2<<12]
				}
			})
		}
		g.Wait()
		return nil
	}
	if err := read(); !errors.Is(err, ErrUnreadable) || !m.Broken() {
		t.Error(err)
	}
}

func TestOtherFaults(t *testing.T) {
	index := func(all bool) (err error) {
		defer func() {
			if !all {
				err, _ = recover().(error)
			}
		}()
		if all {
			defer CaughtAny(&err)
		} else {
			defer Caught(&err)
		}
		var none []int
		return errors.New(string(rune(none[len(none)])))
	}
	err := index(true)
	if err == nil || !strings.Contains(err.Error(), "a fault of hopmesh itself") {
		t.Error(err)
	}
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	LogFault(to, "a thing", errors.New("nothing"))
	LogFault(to, "a thing", nil)
	if log.Len() > 0 {
		t.Errorf("errors that are no faults are logged: %s", &log)
	}
	LogFault(to, "a thing", fmt.Errorf("it failed: %w", err), "job", "j7")
	for _, want := range []string{`ended="a thing"`, "job=j7", "out of range", "mapped_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, &log)
		}
	}
	if err := index(false); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("it is not passed on: %v", err)
	}
}
