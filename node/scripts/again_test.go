package scripts

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// A script that always asks to be started again is started more and more seldom, and its user reads
// why. Once one has run for a while, the next starts at once.
func TestAScriptThatAlwaysAsksToStartAgain(t *testing.T) {
	var begun []time.Duration
	script := func(ctx context.Context, l launched) (int, error) {
		begun = append(begun, time.Since(l.since))
		switch l.count {
		case 9:
			select {
			case <-time.After(steady):
			case <-ctx.Done():
			}
		case 11:
			return 0, nil
		}
		return codeAgain, nil
	}
	inMesh(t, "a", script, func(t *testing.T, n *network, h *heard) {
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil {
			t.Fatal(err)
		}
		var waits []time.Duration
		for i := range begun[1:] {
			waits = append(waits, begun[i+1]-begun[i])
		}
		want := []time.Duration{
			pause, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second,
			steady + pause, time.Second,
		}
		if !slices.Equal(waits, want) {
			t.Errorf("it waited for %v, want %v", waits, want)
		}
		if h.all[0] != "node-a starts again from the last checkpoint" ||
			h.all[6] != "node-a starts again from the last checkpoint in 30s, as it ended with exit code 75 soon after it had begun, again" ||
			h.all[9] != h.all[0] || len(h.all) != 11 {
			t.Errorf("%q", h.all)
		}
	})
}

// Whoever reads output slowly keeps the run: the script waits, and ends well.
func TestAReaderThatStalls(t *testing.T) {
	const stall = 10 * time.Minute
	script := func(ctx context.Context, l launched) (int, error) {
		for _, text := range []string{"first\n", strings.Repeat(strings.Repeat("x", mostLine-1)+"\n", 2*mostHeld/mostLine), "last\n"} {
			if _, err := l.out.Write([]byte(text)); err != nil || ctx.Err() != nil {
				return -15, err
			}
		}
		return 0, nil
	}
	inMesh(t, "ab", script, func(t *testing.T, n *network, h *heard) {
		// Beside another node alone: who waits for a lock keeps virtual time from passing.
		r := request
		r.Nodes = 1
		begin := time.Now()
		tell := func(e api.RunEvent) {
			if e.Line != nil && *e.Line == "first" {
				<-time.After(stall)
			}
			h.tell(e)
		}
		if _, err := n.nodes["b"].Start(t.Context(), r, tell); err != nil || time.Since(begin) < stall {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		if !h.has("node-a: last") || len(h.all) != 2+2*mostHeld/mostLine {
			t.Errorf("%d lines, the last of which is %.100q", len(h.all), h.all[len(h.all)-1])
		}
	})
}

// A script whose node lives and has it no more is not said to have lost its daemon.
func TestAScriptThatItsDaemonEnded(t *testing.T) {
	script := func(ctx context.Context, _ launched) (int, error) {
		<-ctx.Done()
		return -15, nil
	}
	inMesh(t, "ab", script, func(t *testing.T, n *network, h *heard) {
		n.nodes["a"].handlers[callLook] = func(context.Context, string, []byte) ([]byte, error) {
			return nil, refused("it has no script of the run k any more")
		}
		r := request
		r.Nodes = 1
		_, err := n.nodes["b"].Start(t.Context(), r, h.tell)
		if err == nil || !strings.Contains(err.Error(), "the daemons have ended the script") || !slices.Equal(h.all, []string{"node-a its daemon has ended the script"}) {
			t.Errorf("%v, %q", err, h.all)
		}
	})
}
