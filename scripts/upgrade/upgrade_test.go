package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPinned(t *testing.T) {
	for text, want := range map[string]string{
		"# why\n87eb7676ea\n": "87eb7676ea", "\n 87eb7676ea \n\n": "87eb7676ea",
		"# only why\n": "", "87eb7676ea\n14efbe7b\n": "", "v1.0.0\n": "", "--help\n": "", "abc\n": "",
	} {
		if got, err := pinned(text); got != want && err == nil || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestResumptions(t *testing.T) {
	log := `time=x level=INFO msg="will train" node=n1 job=j1 shard_bytes=1 arena_bytes=2 weights=3 resumed=4 step=5
time=x level=INFO msg="will train" node=n1 job=j2 shard_bytes=1 arena_bytes=2 weights=3 resumed=0 step=0
time=x level=INFO msg="a job is begun anew" job=j1 resumed=9 step=9
time=x level=INFO msg="will train" node=n1 job=j1 shard_bytes=1 arena_bytes=2 weights=3 resumed=6 step=0
`
	if got, want := resumptions(log, "j1"), [][2]int{{4, 5}, {6, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestLost(t *testing.T) {
	had := kept{members: []string{"n1 a", "n2 b"}, tokens: []string{"t"}, model: "m"}
	if lost := had.lost(had); len(lost) > 0 {
		t.Errorf("lost %q", lost)
	}
	want := []string{"member n2 b", "model m", "token t"}
	if lost := had.lost(kept{members: []string{"n1 a", "n3 c"}, model: "x"}); !reflect.DeepEqual(lost, want) {
		t.Errorf("lost %q, not %q", lost, want)
	}
}

// What falls short is in the page, and fails the command.
func TestPage(t *testing.T) {
	p := &page{restarts: []restart{{what: "n1", stopped: time.Second, lost: mostLost}}}
	p.claim("all is well", true, "a | b")
	if err := p.missed(); err != nil || !strings.Contains(p.String(), "| all is well | holds | a \\| b |") {
		t.Errorf("%v\n%s", err, p)
	}
	p.restarts[0].lost++
	p.claim("all is kept", false, "n2 is gone")
	err := p.missed()
	if err == nil || !strings.Contains(err.Error(), "n1: 2 steps") || !strings.Contains(err.Error(), "all is kept: n2 is gone") || !strings.Contains(p.String(), "| all is kept | FALLS SHORT |") {
		t.Errorf("%v\n%s", err, p)
	}
}
