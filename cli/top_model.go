package cli

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/hopmesh/hopmesh/node/api"
)

const (
	// lookEvery is how often the mesh is looked at.
	lookEvery = 500 * time.Millisecond
	// restAfter times what a look took is waited at least before the next, so that
	// a job of ten thousand epochs does not keep a node busy with telling of it.
	restAfter = 9
	// maxHappened is how many events are remembered.
	maxHappened = 100
	// unbounded is the height of a frame that nobody scrolls.
	unbounded = 1 << 20
)

// A sight is what came of one look.
type sight struct {
	at   time.Time
	took time.Duration
	mesh snapshot
	err  error
}

// again says that it is time to look.
type again struct{}

// happened is one event of the node.
type happened api.Event

// topModel is all that is shown. Update and View are pure: what looks is given, and
// the time comes with what it saw.
type topModel struct {
	addr   string
	paint  paint
	look   func(chosen string) tea.Cmd
	width  int
	height int
	once   bool // a frame that is printed: no keys, and events are not waited for

	paused bool
	chosen string // a job's id; "": the first
	mesh   *snapshot
	seen   time.Time // when mesh was
	now    time.Time // of the latest sight, also of one that failed
	lost   error     // why it did
	heard  []api.Event
	events []api.Event // those of heard that are shown
}

func newTop(addr string, colours bool) topModel {
	return topModel{addr: addr, paint: paint(colours), width: 80, height: 24}
}

// Init looks for the first time.
func (m topModel) Init() tea.Cmd { return m.look(m.chosen) }

// Update takes in what came. There is one look under way, or one tick, never both.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case sight:
		m.take(msg)
		return m, tea.Tick(max(lookEvery, restAfter*msg.took), func(time.Time) tea.Msg { return again{} })
	case again:
		if m.paused {
			return m, tea.Tick(lookEvery, func(time.Time) tea.Msg { return again{} })
		}
		return m, m.look(m.chosen)
	case happened:
		// Cloned, since an older model may be on the screen still.
		m.heard = append(slices.Clone(m.heard), api.Event(msg))
		m.heard = m.heard[max(0, len(m.heard)-maxHappened):]
		if !m.paused {
			m.events = m.heard
		}
	}
	return m, nil
}

// take keeps the latest sight that there was, and why there is no newer one.
func (m *topModel) take(s sight) {
	if m.paused {
		return
	}
	m.now, m.lost = s.at, s.err
	if s.err == nil {
		m.mesh, m.seen = &s.mesh, s.at
	}
}

func (m topModel) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c", "esc":
		return m, tea.Quit
	case "ctrl+z":
		return m, tea.Suspend
	case "p", "space":
		m.paused = !m.paused
		if !m.paused {
			m.events = m.heard
		}
	case "down", "j":
		m.choose(1, false)
	case "up", "k":
		m.choose(-1, false)
	case "tab", "right":
		m.choose(1, true)
	case "shift+tab", "left":
		m.choose(-1, true)
	}
	return m, nil
}

// choose goes some jobs on, from the last to the first if it may go around.
func (m *topModel) choose(by int, around bool) {
	if m.mesh == nil || len(m.mesh.Jobs) == 0 {
		return
	}
	jobs := m.mesh.Jobs
	id := pick(jobs, m.chosen)
	at := slices.IndexFunc(jobs, func(j api.JobSummary) bool { return j.ID == id }) + by
	if around {
		at = (at + len(jobs)) % len(jobs)
	}
	m.chosen = jobs[min(max(at, 0), len(jobs)-1)].ID
}

// View draws the frame on a screen of its own, so that what stood in the terminal is
// there again afterwards.
func (m topModel) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	return v
}
