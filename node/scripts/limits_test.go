package scripts

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

// An answer fits in a call, whatever was printed.
func TestAnswersFit(t *testing.T) {
	const most = 1 << 20
	for _, text := range []string{"", "\x00", "\x1b", "\u2028", "<", strings.Repeat("\x00", mostLine)} {
		ctx, full := context.WithCancel(t.Context())
		full() // nothing waits
		h := &held{changed: make(chan struct{})}
		for range 200_000 {
			if h.bytes > mostHeld {
				break
			}
			h.add(ctx, line{Text: text})
		}
		r, _ := h.report(0)
		if b, err := json.Marshal(r); err != nil || len(b) > most || len(r.Lines) == 0 {
			t.Errorf("%d lines of %.10q take %d bytes, %v", len(r.Lines), text, len(b), err)
		}
		if h.report(len(h.lines)); h.bytes != 0 {
			t.Errorf("%d bytes are held of nothing", h.bytes)
		}
	}
}

// A newer request for a run replaces an older one, which neither takes it back nor stops its job.
func TestARunThatIsTakenOver(t *testing.T) {
	starts := 0
	var n *network
	script := func(ctx context.Context, l launched) (int, error) {
		n.mu.Lock()
		starts++
		n.mu.Unlock()
		select {
		case <-ctx.Done():
			return -15, nil
		case <-time.After(10 * time.Minute):
			n.set("k", true, true)
			return 0, nil
		}
	}
	inMesh(t, "ab", script, func(t *testing.T, in *network, h *heard) {
		n = in
		n.set("k", false, false)
		older := make(chan error, 1)
		go func() {
			_, err := n.nodes["a"].Start(t.Context(), request, h.tell)
			older <- err
		}()
		synctest.Wait() // both scripts run
		if _, err := n.nodes["b"].Start(t.Context(), request, h.tell); err != nil {
			t.Error(err)
		}
		if err := <-older; err == nil || !strings.Contains(err.Error(), "another request runs the script of k") {
			t.Errorf("the older one: %v", err)
		}
		if starts != 4 || len(n.stops) > 0 {
			t.Errorf("%d starts, and %v were stopped", starts, n.stops)
		}
	})
}

// Scripts run in folders of their own, so names of files from this process's folder on are
// completed.
func TestNamesOfFilesAreWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for python, want := range map[string]string{"": "", "python3": "python3", "venv/bin/python": filepath.Join(folder, "venv/bin/python"), "/opt/python": "/opt/python"} {
		p := &point{id: "a", handlers: map[string]mesh.CallHandler{}}
		s := New(Config{Mesh: p, Python: python, Dir: "data/scripts", Log: slog.New(slog.DiscardHandler)})
		if s.Python != want || s.Dir != filepath.Join(folder, "data/scripts") {
			t.Errorf("%q: %q runs scripts in %q", python, s.Python, s.Dir)
		}
	}
}
