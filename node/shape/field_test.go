package shape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a machine lets us do differs; that programs run, are where they should be, and
// that nothing is left does not.
func TestFieldRunsProgramsAndLeavesNothing(t *testing.T) {
	f, err := New(t.Context(), 2, Link{Rate: 100_000_000, Delay: time.Millisecond, Cores: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(f.Notes())
	var groups []string
	for i := range 2 {
		out, err := f.Command(t.Context(), i, "sh", "-c", `echo "$0 $1"; cat /proc/self/cgroup`, "said", "this").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "said this\n") {
			t.Fatalf("node %d: %v: %s", i, err, out)
		}
		if s := f.sites[i]; s.group != "" {
			groups = append(groups, s.group)
			if !strings.Contains(string(out), filepath.Base(filepath.Dir(s.group))+"/n") {
				t.Errorf("node %d is in no group of ours: %s", i, out)
			}
		}
		if f.hub != nil && f.Conn(i).Rate != 0 || f.hub == nil && f.Conn(i) != (Link{Rate: 100_000_000, Delay: time.Millisecond}) {
			t.Errorf("node %d's socket is to do %+v", i, f.Conn(i))
		}
	}
	if f.hub != nil {
		out, err := f.Command(t.Context(), 0, "ip", "-br", "addr").CombinedOutput()
		if err != nil || !strings.Contains(string(out), f.Addr(0).String()) {
			t.Errorf("node 0 is not at %v: %v: %s", f.Addr(0), err, out)
		}
		out, err = f.Command(t.Context(), 0, "tc", "qdisc", "show", "dev", "eth0").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "rate 100Mbit") {
			t.Errorf("node 0's link is not limited: %v: %s", err, out)
		}
		for rate, want := range map[uint64]string{20_000_000: "rate 20Mbit", 0: "rate 100Gbit"} {
			if err := f.pace(t.Context(), rate); err != nil {
				t.Fatal(err)
			}
			out, err = f.Command(t.Context(), 1, "tc", "qdisc", "show", "dev", "eth0").CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("node 1's link does not follow, to %s: %v: %s", want, err, out)
			}
		}
	} else if err := f.pace(t.Context(), 20_000_000); err == nil {
		t.Error("the rate of sockets has changed")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if _, err := os.Stat(g); err == nil {
			t.Errorf("the group %s is left", g)
		}
	}
	if left, _ := filepath.Glob("/var/run/netns/" + own("", 0)[:len(own("", 0))-1] + "*"); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
}

func TestTooManyNodes(t *testing.T) {
	for _, n := range []int{0, 201} {
		if _, err := New(t.Context(), n, Link{}); err == nil || !strings.Contains(err.Error(), "1 to 200") {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}

// Without a rate and a delay there is nothing to make.
func TestNothingIsShapedThatNeedNotBe(t *testing.T) {
	f, err := New(t.Context(), 2, Link{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Notes()) > 0 || f.hub != nil || !f.Addr(1).IsLoopback() || f.Conn(1) != (Link{}) {
		t.Errorf("%+v", f)
	}
	if out, err := f.Command(t.Context(), 1, "echo", "here").Output(); err != nil || string(out) != "here\n" {
		t.Errorf("%s, %v", out, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A node that is started again listens where it did, so that the others find it at once.
func TestPortOutlivesARestart(t *testing.T) {
	f, err := New(t.Context(), 1, Link{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder := filepath.Join(t.TempDir(), "n1")
	for _, before := range []*Process{nil, {}, {listen: "4711"}} {
		p, err := f.run(t.Context(), 0, before, "echo", folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Ended()
		p.API.Close()
	}
	text, err := os.ReadFile(folder + ".log")
	if err != nil || strings.Count(string(text), "--listen 127.0.0.1:0 ") != 2 || strings.Count(string(text), "--listen 127.0.0.1:4711 ") != 1 {
		t.Errorf("%v: %s", err, text)
	}
}

// A node that is started again writes on at the end of its log.
func TestLogOutlivesARestart(t *testing.T) {
	f, err := New(t.Context(), 1, Link{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder := filepath.Join(t.TempDir(), "n1")
	for range 2 {
		p, err := f.run(t.Context(), 0, nil, "echo", folder, []string{"it ran"})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Ended()
		p.API.Close()
	}
	text, err := os.ReadFile(folder + ".log")
	if err != nil || strings.Count(string(text), "it ran\n") != 2 {
		t.Errorf("%v: %s", err, text)
	}
}
