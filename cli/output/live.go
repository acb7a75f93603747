package output

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

const (
	// betweenLines is the time between two lines about the same work.
	betweenLines = 5 * time.Second
	// betweenBars is the time between two drawings of the bar.
	betweenBars = 100 * time.Millisecond
	// liveBar is the width of the bar.
	liveBar = 24
)

// Clock tells commands the time. Tests of what commands print stop it.
var Clock = time.Now

// Live shows on stderr how far some work is: as a bar at the bottom of a terminal, or
// else as a line every few seconds. Write errors are ignored: the work matters more.
//
// It has no timer of its own. Daemons report at least every few seconds.
type Live struct {
	Terminal bool // draw bars
	Now      func() time.Time

	w       io.Writer
	printed time.Time // when the last line was due; zero before the first
	drawn   time.Time
	bar     bool // a bar is on the terminal
}

// NewLive returns a Live that writes to w, with bars if w is a terminal.
func NewLive(w io.Writer) *Live {
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &Live{w: w, Terminal: terminal, Now: Clock}
}

// Line prints a line, above the bar if there is one.
func (l *Live) Line(text string) {
	l.Clear()
	_, _ = fmt.Fprintln(l.w, text)
}

// Begin starts the time until the next line is due.
func (l *Live) Begin() { l.printed = l.Now() }

// Due reports whether the last line was long enough ago for another one. The first call
// only starts the time.
func (l *Live) Due() bool {
	if l.printed.IsZero() {
		l.Begin()
	}
	return l.Now().Sub(l.printed) >= betweenLines
}

// Bar draws a bar that is filled to a share, with a text behind it. It does nothing soon
// after the last drawing, unless there is no bar on the terminal.
func (l *Live) Bar(share float64, text string) {
	now := l.Now()
	if l.bar && now.Sub(l.drawn) < betweenBars {
		return
	}
	l.bar, l.drawn = true, now
	line := Bar(share, liveBar) + " " + text
	if f, ok := l.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			line = ansi.Truncate(line, width-1, "…")
		}
	}
	_, _ = fmt.Fprint(l.w, "\r"+ansi.EraseLineRight+line)
}

// Clear removes the bar from the terminal.
func (l *Live) Clear() {
	if l.bar {
		_, _ = fmt.Fprint(l.w, "\r"+ansi.EraseLineRight)
		l.bar = false
	}
}

// Bar returns a bar of a width, without colours, filled to a share. It is full only if
// the share is 1.
func Bar(share float64, width int) string {
	if !(share > 0) { // also NaN
		share = 0
	}
	plain := lipgloss.NoColor{}
	b := progress.New(progress.WithWidth(width), progress.WithoutPercentage(), progress.WithColors(plain),
		progress.WithFillCharacters(progress.DefaultFullCharFullBlock, progress.DefaultEmptyCharBlock))
	b.EmptyColor = plain
	return b.ViewAs(math.Floor(min(share, 1)*float64(width)) / float64(width))
}
