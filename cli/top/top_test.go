package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/node/api"
)

// The best model may have stopped while others go on.
func TestTopOfASweep(t *testing.T) {
	s := aMesh()
	j := clitest.Sweep()
	j.ID, j.State, j.EpochsTotal, j.Epoch = "j8", "running", 4, 3
	s.Job = &j
	for i := range s.Jobs {
		if s.Jobs[i].ID == "j8" {
			s.Jobs[i].Models = 3
		}
	}
	m := window(s, 120, 40, false)
	m.chosen = "j8"
	frame := m.frame()
	for _, want := range []string{"3 models (sage)", "JOB j8  3 models (gcn) on cora", "50.0 %, 3 of 4", "best 79.0 % in epoch 1 of model 2 (hidden=64, lr=0.01)"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
}

// aMesh trains a job on three nodes.
func aMesh() snapshot {
	b := clitest.Healthy()
	members, _ := b.Members(context.Background())
	slices.SortFunc(members, func(a, b api.Member) int { return strings.Compare(a.Name, b.Name) })
	j := clitest.SharedJob()
	jobs := clitest.Jobs()
	jobs[1].Strategy, jobs[1].Nodes, jobs[1].EpochsTotal, jobs[1].Epoch = "auto", j.Nodes, j.EpochsTotal, 3
	j.ID, j.Epoch = "j8", 4
	s := b.Self
	s.Jobs, s.Problems = 1, []string{"not answering: gamma"}
	return snapshot{Status: s, Members: members, Jobs: inOrder(jobs), Job: &j}
}

// crowded has more of all than a window shows.
func crowded() snapshot {
	s := aMesh()
	for i := range 30 {
		s.Members = append(s.Members, api.Member{Name: fmt.Sprintf("node-%02d", i), Status: "alive", Role: "nonvoter", Device: "cpu", Address: "10.0.1.1:7946"})
		s.Jobs = append(s.Jobs, api.JobSummary{ID: fmt.Sprintf("k%d", i), State: "queued", Dataset: "cora", EpochsTotal: 9})
		s.Status.Problems = append(s.Status.Problems, fmt.Sprintf("shard %d of products has one copy only, on a node that is about to leave: wait until it was copied", i))
	}
	return s
}

// window is a model that has looked once.
func window(s snapshot, width, height int, colours bool) model {
	m := newModel("unix:/run/hopmesh.sock", colours)
	m.look = func(chosen string) tea.Cmd { return func() tea.Msg { return chosen } }
	return after(m, tea.WindowSizeMsg{Width: width, Height: height}, sight{at: clitest.Then, mesh: s})
}

// after is what becomes of a model.
func after(m model, messages ...tea.Msg) model {
	for _, msg := range messages {
		next, _ := m.Update(msg)
		m = next.(model)
	}
	return m
}

func press(keys ...rune) (list []tea.Msg) {
	for _, k := range keys {
		list = append(list, tea.KeyPressMsg{Code: k, Text: string(k)})
	}
	return list
}

func happen(n int) (list []tea.Msg) {
	for i := range n {
		list = append(list, happened{Time: clitest.Then.Add(time.Duration(i) * time.Second), Type: "plan", Message: fmt.Sprintf("generation %d is in force", i)})
	}
	return list
}

func TestTopFrames(t *testing.T) {
	refused := sight{at: clitest.Then.Add(12 * time.Second), err: errors.New("no daemon at unix:/run/hopmesh.sock: start one with `hopmesh agent`, or name another with --addr")}
	waits := aMesh()
	waits.Jobs, waits.Job = waits.Jobs[1:], new(clitest.Queued())
	waits.Job.ID = "j9"
	broke := aMesh()
	broke.Jobs, broke.Job = broke.Jobs[2:], new(clitest.Failed())
	alone := aMesh()
	alone.Members, alone.Jobs, alone.Job = nil, nil, nil
	alone.Status = api.Status{Node: "alpha", Problems: []string{"this node is in no mesh: `hopmesh join` brings it into one"}}
	frames := map[string]model{
		"80x24":         after(window(aMesh(), 80, 24, false), happen(9)...),
		"120x40":        after(window(aMesh(), 120, 40, false), happen(9)...),
		"colours":       after(window(aMesh(), 80, 24, true), happen(2)...),
		"crowded":       after(window(crowded(), 80, 24, false), append(happen(200), press('j', 'j', 'j', 'j', 'j')...)...),
		"crowded-large": after(window(crowded(), 100, 60, false), happen(200)...),
		"narrow":        after(window(aMesh(), 40, 16, false), happen(3)...),
		"queued":        window(waits, 80, 24, false),
		"failed":        window(broke, 80, 24, false),
		"no-mesh":       window(alone, 80, 24, false),
		"paused":        after(window(aMesh(), 80, 24, false), append(press('p', 'j'), happen(9)...)...),
		"lost":          after(window(aMesh(), 80, 24, false), refused),
		"never-there":   after(newModel("unix:/run/hopmesh.sock", false), refused),
		"first":         newModel("unix:/run/hopmesh.sock", false),
	}
	for name, m := range frames {
		t.Run(name, func(t *testing.T) {
			frame := m.frame()
			clitest.Compare(t, name, strings.ReplaceAll(frame, "\x1b", "ESC")+"\n")
			fits(t, frame, m.width, m.height)
			if v := m.View(); v.Content != frame || !v.AltScreen {
				t.Error("the view is another")
			}
		})
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		if _, ok := frames[name]; !ok && !slices.Contains([]string{"help", "once", "json", "no-terminal", "no-daemon"}, name) {
			t.Errorf("%s belongs to no test", f)
		}
	}
}

func fits(t *testing.T, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > height && frame != "" {
		t.Errorf("%d lines in a window of %d:\n%s", len(lines), height, frame)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("%d columns in a window of %d: %q", w, width, l)
		}
		if colours := ansi.Strip(l); strings.ContainsAny(colours, "\x1b\t\r") || strings.Count(l, "\x1b[") != 2*strings.Count(l, "\x1b[m") {
			t.Errorf("what steers the terminal got through, or a colour has no end: %q", l)
		}
	}
}

// Windows of any size show something or nothing, and nothing beyond their edge.
func TestTopInWindowsOfAnySize(t *testing.T) {
	for _, s := range []snapshot{aMesh(), crowded(), {}} {
		for _, colours := range []bool{false, true} {
			m := after(window(s, 80, 24, colours), happen(20)...)
			for _, width := range []int{0, 1, 2, 3, 9, 10, 11, 12, 25, 40, 53, 79, 80, 200} {
				for _, height := range []int{0, 1, 2, 3, 4, 5, 7, 10, 15, 23, 24, 70} {
					m = after(m, tea.WindowSizeMsg{Width: width, Height: height})
					fits(t, m.frame(), width, height)
					if lost := after(m, sight{at: clitest.Then, err: errors.New("it is gone")}); width > 0 && height > 0 {
						fits(t, lost.frame(), width, height)
					}
				}
			}
		}
	}
}

func TestTopChoosesJobs(t *testing.T) {
	up, down := tea.KeyPressMsg{Code: tea.KeyUp}, tea.KeyPressMsg{Code: tea.KeyDown}
	tab, back := tea.KeyPressMsg{Code: tea.KeyTab}, tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	for _, c := range []struct {
		keys []tea.Msg
		want string
	}{
		{nil, ""}, // the first, whichever that is
		{[]tea.Msg{down}, "j9"},
		{[]tea.Msg{down, down, down, down}, "j7"},
		{[]tea.Msg{down, up, up}, "j8"},
		{[]tea.Msg{tab, tab, tab}, "j8"},
		{[]tea.Msg{back}, "j7"},
		{press('j', 'j', 'k'), "j9"},
	} {
		m := after(window(aMesh(), 80, 24, false), c.keys...)
		if m.chosen != c.want {
			t.Errorf("%v: %q, want %q", c.keys, m.chosen, c.want)
		}
		_, cmd := m.Update(again{})
		if asked := cmd(); asked != c.want {
			t.Errorf("%v: asks for %q", c.keys, asked)
		}
	}
	m := after(window(aMesh(), 80, 24, false), down)
	if frame := m.frame(); !strings.Contains(frame, "▸ j9") || !strings.Contains(frame, "Asking for job j9.") {
		t.Errorf("%s", frame)
	}
	gone := aMesh()
	gone.Jobs = slices.DeleteFunc(gone.Jobs, func(j api.JobSummary) bool { return j.ID == "j9" })
	if frame := after(m, sight{at: clitest.Then, mesh: gone}).frame(); !strings.Contains(frame, "▸ j8") || !strings.Contains(frame, "JOB j8") {
		t.Errorf("the chosen job was removed:\n%s", frame)
	}
	none := window(snapshot{}, 80, 24, false)
	if m := after(none, down, tab); m.chosen != "" {
		t.Errorf("chose %q of nothing", m.chosen)
	}
}

func TestJobsInOrder(t *testing.T) {
	var list []api.JobSummary
	for i, state := range []string{"done", "queued", "running", "failed", "running", "queued", "stopped"} {
		list = append(list, api.JobSummary{ID: fmt.Sprintf("j%d", i), State: state})
	}
	ids := ""
	for _, j := range inOrder(list) {
		ids += j.ID
	}
	if ids != "j2j4j1j5j6j3j0" {
		t.Error(ids)
	}
	if none := inOrder(nil); none == nil || len(none) != 0 {
		t.Errorf("%#v, which is no list in JSON", none)
	}
}

func TestTopPauses(t *testing.T) {
	if m := after(window(aMesh(), 80, 24, false), happen(2*maxHappened)...); len(m.heard) != maxHappened {
		t.Errorf("%d events are kept", len(m.heard))
	}
	m := after(window(aMesh(), 80, 24, false), append(happen(1), press('p')...)...)
	before := m.frame()
	later := aMesh()
	later.Status.Generation = 99
	m = after(m, append(happen(5), sight{at: clitest.Then.Add(time.Second), mesh: later})...)
	if m.frame() != before || !strings.Contains(before, "PAUSED") {
		t.Errorf("%s", m.frame())
	}
	_, cmd := m.Update(again{})
	if cmd == nil {
		t.Fatal("nothing would ever happen again")
	}
	if msg := cmd(); msg != (again{}) {
		t.Errorf("a look, at %v", msg)
	}
	m = after(m, append(press('p'), sight{at: clitest.Then.Add(time.Second), mesh: later})...)
	if f := m.frame(); strings.Contains(f, "PAUSED") || !strings.Contains(f, "generation 99") || len(m.events) != 6 {
		t.Errorf("%d events, %s", len(m.events), f)
	}
}

func TestTopKeysThatEnd(t *testing.T) {
	m := window(aMesh(), 80, 24, false)
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}, {Code: tea.KeyEscape}} {
		_, cmd := m.Update(key)
		if cmd == nil {
			t.Errorf("%s does nothing", key)
		} else if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", key)
		}
	}
	_, cmd := m.Update(tea.KeyPressMsg{Code: 'z', Mod: tea.ModCtrl})
	if cmd == nil {
		t.Error("ctrl+z does nothing")
	} else if _, ok := cmd().(tea.SuspendMsg); !ok {
		t.Error("ctrl+z does not suspend")
	}
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil {
		t.Error("x does something")
	}
}

// A daemon that went away is asked again, and its view is back when it is.
func TestTopOutlivesItsDaemon(t *testing.T) {
	m := window(aMesh(), 80, 24, false)
	_, cmd := m.Update(sight{at: clitest.Then, err: errors.New("the daemon went away")})
	if cmd == nil {
		t.Fatal("it is not asked again")
	}
	if msg := cmd(); msg != (again{}) {
		t.Errorf("%v", msg)
	}
	m = after(m, sight{at: clitest.Then.Add(3 * time.Second), err: errors.New("the daemon went away")})
	if f := m.frame(); !strings.Contains(f, "The daemon went away. Retrying") || !strings.Contains(f, "state of 3s ago") || !strings.Contains(f, "JOB j8") {
		t.Errorf("%s", f)
	}
	m = after(m, sight{at: clitest.Then.Add(4 * time.Second), mesh: aMesh()})
	if f := m.frame(); strings.Contains(f, "went away") || !strings.Contains(f, "03:02:05") {
		t.Errorf("%s", f)
	}
}

func TestBarsAndPortions(t *testing.T) {
	nan := json.Number("NaN")
	none, _ := nan.Float64()
	for share, want := range map[float64]string{0: "░░░░", 0.5: "██░░", 0.99: "███░", 1: "████", 7: "████", -1: "░░░░", none: "░░░░"} {
		if got := output.Bar(share, 4); got != want {
			t.Errorf("%g: %s", share, got)
		}
	}
	for _, c := range []struct {
		sizes []float64
		want  []int
	}{
		{[]float64{1, 1, 2}, []int{3, 2, 5}}, {[]float64{0, 5, 0}, []int{0, 10, 0}}, {[]float64{0, 0}, []int{0, 0}},
		{[]float64{-1, 1}, []int{0, 10}}, {[]float64{1e-9, 1}, []int{0, 10}}, {[]float64{none, 1}, []int{0, 10}}, {[]float64{1e308, 1e308}, []int{0, 0}},
	} {
		if got := portions(c.sizes, 10); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.sizes, got)
		}
	}
	for seconds, want := range map[float64]string{0: "0s", 12.3456: "12.3s", 0.21207: "212ms", 0.0479: "47.9ms", 1e-6: "1µs", 3725: "1h2m10s", 1.5: "1.5s"} {
		if got := short(seconds); got != want {
			t.Errorf("%g: %s, want %s", seconds, got, want)
		}
	}
	if pace(100, 0) != "-" || pace(100, 0.5) != "200 B" || pace(1<<63, 1e-9) != "-" {
		t.Error("what was sent in a second")
	}
}
