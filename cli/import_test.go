package cli

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

// step is an event, and how long after the one before it comes.
type step struct {
	after time.Duration
	stage string
	done  uint64
	total uint64
	unit  string
}

func playSteps(p *progress, whole bool, steps []step) {
	clock := clitest.Then
	p.live.Now = func() time.Time { return clock }
	for _, s := range steps {
		clock = clock.Add(s.after)
		p.show(api.DatasetEvent{Progress: &api.Progress{Stage: s.stage, Done: s.done, Total: s.total, Unit: s.unit}})
	}
	p.end(whole)
}

func TestProgressInLines(t *testing.T) {
	steps := []step{
		{0, "opening", 0, 0, ""},
		{100 * time.Millisecond, "reading\x1b[2J", 0, 4_000_000, "edges"},
		{4 * time.Second, "reading\x1b[2J", 900_000, 4_000_000, "edges"}, // too soon for a line
		{time.Second, "reading\x1b[2J", 1_000_000, 4_000_000, "edges"},
		{time.Second, "reading\x1b[2J", 4_000_000, 4_000_000, "edges"},
		{0, "writing", 0, 0, "bytes"},
		{5 * time.Second, "writing", 0, 0, "bytes"},
		{5 * time.Second, "writing", 10 << 20, 0, "bytes"},
		{5 * time.Second, "placing", 1, 3, "shards"},
		{20 * time.Second, "placing", 2, 3, "shards"},
	}
	want := "opening: done\n" +
		"reading?[2J: 25 %, 200k edges/s, about 15s left\n" +
		"reading?[2J: done in 6s, 667k edges/s\n" +
		"writing: begun 5s ago\n" +
		"writing: 10 MiB, 1 MiB/s\n" +
		"writing: done in 15s, 682.7 KiB/s\n" +
		"placing: 67 %, 0.1 shards/s, about 10s left\n"
	for name, whole := range map[string]bool{"done": true, "failed": false} {
		var out strings.Builder
		playSteps(newProgress(&out, false), whole, steps)
		end := want
		if whole {
			end += "placing: done in 20s, 0.1 shards/s\n"
		}
		if out.String() != end {
			t.Errorf("%s: got\n%swant\n%s", name, out.String(), end)
		}
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, false)
	p.live.Terminal = true
	playSteps(p, true, []step{
		{0, "opening", 0, 0, ""},
		{time.Second / 2, "reading\x1b[2J", 1, 4, "edges\x1b[2J"},
		{2 * time.Second, "reading\x1b[2J", 4, 4, "edges\x1b[2J"},
		{0, "reading\x1b[2J", 9, 4, "edges\x1b[2J"},
		{time.Second, "writing", math.MaxUint64, math.MaxUint64, "bytes"},
	})
	got := out.String()
	if !strings.Contains(got, "██████░░░░░░░░░░░░░░░░░░ reading?[2J: 25 %\r") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("%q", got)
	}
	if lines := strings.Count(got, "\n"); lines != 1 || !strings.Contains(got, "reading?[2J: done in 3s, 3.0 edges?[2J/s\n") {
		t.Errorf("%d lines in %q", lines, got)
	}
	if !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("the bar is still there: %q", got)
	}
}

func TestProgressBesideJSON(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, true)
	p.show(api.DatasetEvent{Note: "the labels are missing"})
	playSteps(p, true, []step{{0, "reading", 1, 4, "edges"}, {time.Minute, "reading", 4, 4, "edges"}})
	if out.String() != "The labels are missing.\n" {
		t.Errorf("%q", out.String())
	}
}

// How to do without the daemon's network is said where that is what failed, and nowhere else.
func TestHintOnTheNetwork(t *testing.T) {
	for _, c := range []struct {
		err   error
		hints bool
	}{
		{api.Invalid("arxiv.zip can't be read (the server answers 502): check the network and the server, and import again"), true},
		{api.Invalid("there is no host snap.stanford.edu: check the address"), true},
		{api.Invalid("the server sends on from https to http: give the file's own address"), true},
		{api.Unavailable("snap.stanford.edu can't be reached: i/o timeout"), true},
		{api.Unavailable("this node is in no mesh: run `hopmesh join HOST:PORT --token TOKEN`"), false},
		{api.Invalid("a shard has 0 to 8 copies beside its owner's, and not 9"), false},
		{api.Conflict("there is a dataset called ogbn-arxiv"), false},
		{api.Conflict("arxiv.zip is being imported"), false},
		{api.NewError(http.StatusUnauthorized, "the server knows no such token"), false},
		{api.NewError(http.StatusForbidden, "the server wants another token"), false},
	} {
		b := clitest.Healthy()
		b.Err = c.err
		_, stderr, code := hopmesh(t.Context(), echo(), "dataset", "import", "ogbn-arxiv", "--addr", clitest.Serve(t, b))
		if code != 1 || !strings.Contains(stderr, c.err.Error()) || strings.Contains(stderr, "if the daemon's network") != c.hints {
			t.Errorf("%v: %d %s", c.err, code, stderr)
		}
	}
	_, stderr, code := hopmesh(t.Context(), echo(), "dataset", "import", "ogbn-arxiv", "--addr", "unix:/nonexistent/s")
	if code != 1 || !strings.Contains(stderr, "no daemon at") || strings.Contains(stderr, "network") {
		t.Errorf("without a daemon: %d %s", code, stderr)
	}
}
