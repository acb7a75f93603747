package top

import (
	"slices"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/hopmesh/hopmesh/node/api"
)

const (
	// lookEvery is the time between two snapshots.
	lookEvery = 500 * time.Millisecond
	// restAfter times the duration of a snapshot is the least pause before the next, so that a
	// job of ten thousand epochs does not keep a node busy.
	restAfter = 9
	// maxHappened is how many events are kept.
	maxHappened = 100
	// unbounded is the height of a frame that is printed.
	unbounded = 1 << 20
)

// sight is the result of one look.
type sight struct {
	at   time.Time
	took time.Duration
	mesh snapshot
	err  error
}

// again is the message that the next look is due.
type again struct{}

// happened is the message of an event.
type happened api.Event

// model is the state of the view. Update and View are pure: look is passed in, and the time
// comes with its results.
type model struct {
	addr   string
	paint  paint
	keys   keyMap
	look   func(chosen string) tea.Cmd
	width  int
	height int
	once   bool // the frame is printed: no keys, no events

	paused bool
	chosen string // a job's id; "": the first
	mesh   *snapshot
	seen   time.Time // time of mesh
	now    time.Time // time of the latest sight, even a failed one
	lost   error     // of the latest sight
	heard  []api.Event
	events []api.Event // the part of heard that is shown
}

func newModel(addr string, colours bool) model {
	return model{addr: addr, paint: paint(colours), keys: newKeyMap(), width: 80, height: 24}
}

// Init starts the first look.
func (m model) Init() tea.Cmd { return m.look(m.chosen) }

// Update handles a message. Either a look or a tick is pending, never both.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.pressed(msg)
	case sight:
		m.take(msg)
		return m, tea.Tick(max(lookEvery, restAfter*msg.took), func(time.Time) tea.Msg { return again{} })
	case again:
		if m.paused {
			return m, tea.Tick(lookEvery, func(time.Time) tea.Msg { return again{} })
		}
		return m, m.look(m.chosen)
	case happened:
		// Cloned, since an older model may still be drawn.
		m.heard = append(slices.Clone(m.heard), api.Event(msg))
		m.heard = m.heard[max(0, len(m.heard)-maxHappened):]
		if !m.paused {
			m.events = m.heard
		}
	}
	return m, nil
}

// take keeps the latest snapshot, and the error if there is no newer one.
func (m *model) take(s sight) {
	if m.paused {
		return
	}
	m.now, m.lost = s.at, s.err
	if s.err == nil {
		m.mesh, m.seen = &s.mesh, s.at
	}
}

// keyMap holds the keys of the view.
type keyMap struct {
	quit, suspend, pause            key.Binding
	next, previous, cycle, backward key.Binding
}

func newKeyMap() keyMap {
	return keyMap{
		quit:     key.NewBinding(key.WithKeys("q", "ctrl+c", "esc"), key.WithHelp("q", "quits")),
		suspend:  key.NewBinding(key.WithKeys("ctrl+z")),
		pause:    key.NewBinding(key.WithKeys("p", "space"), key.WithHelp("p", "pauses")),
		next:     key.NewBinding(key.WithKeys("down", "j"), key.WithHelp("arrows, tab", "choose a job")),
		previous: key.NewBinding(key.WithKeys("up", "k")),
		cycle:    key.NewBinding(key.WithKeys("tab", "right")),
		backward: key.NewBinding(key.WithKeys("shift+tab", "left")),
	}
}

// help returns the line at the bottom of the view.
func (k keyMap) help() string {
	h := help.New()
	h.Styles, h.ShortSeparator = help.Styles{}, "   "
	return h.ShortHelpView([]key.Binding{k.quit, k.next, k.pause})
}

// pressed handles a key.
func (m model) pressed(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch keys := m.keys; {
	case key.Matches(k, keys.quit):
		return m, tea.Quit
	case key.Matches(k, keys.suspend):
		return m, tea.Suspend
	case key.Matches(k, keys.pause):
		m.paused = !m.paused
		if !m.paused {
			m.events = m.heard
		}
	case key.Matches(k, keys.next):
		m.choose(1, false)
	case key.Matches(k, keys.previous):
		m.choose(-1, false)
	case key.Matches(k, keys.cycle):
		m.choose(1, true)
	case key.Matches(k, keys.backward):
		m.choose(-1, true)
	}
	return m, nil
}

// choose moves the choice by some jobs, and from the last to the first if around is set.
func (m *model) choose(by int, around bool) {
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

// View draws the frame on the alternate screen, so that the terminal is restored afterwards.
func (m model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	return v
}
