package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	// worthALine is how long a stage lasts that is told of when it is over.
	worthALine = time.Second
	// betweenLines is how often a stage is told of meanwhile, without a terminal.
	betweenLines = 5 * time.Second
)

// clock is stopped in tests of what commands print.
var clock = time.Now

// progress shows on stderr what a daemon is doing: a bar on a terminal, else a
// line now and then. It has no clock of its own: the daemon sends a line every
// few seconds whatever happens.
type progress struct {
	w        io.Writer
	terminal bool
	quiet    bool // --json: only notes
	now      func() time.Time

	stage api.Progress // the latest of the stage under way
	begun time.Time    // zero before the first stage
	told  time.Time
	bar   *progressbar.ProgressBar
}

func newProgress(w io.Writer, quiet bool) *progress {
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &progress{w: w, terminal: terminal, quiet: quiet, now: clock}
}

// tell shows one event. What stderr does not take is lost.
func (p *progress) tell(e api.DatasetEvent) {
	if e.Note != "" {
		p.clear()
		_, _ = fmt.Fprintln(p.w, sentence(e.Note))
	}
	if e.Progress == nil || p.quiet {
		return
	}
	now := p.now()
	if p.begun.IsZero() || e.Progress.Stage != p.stage.Stage {
		p.end(true)
		p.begun, p.told = now, now
	}
	p.stage = *e.Progress
	switch {
	case p.terminal:
		p.draw()
	case now.Sub(p.told) >= betweenLines:
		p.told = now
		_, _ = fmt.Fprintf(p.w, "%s: %s\n", cell(p.stage.Stage), p.standing(now.Sub(p.begun)))
	}
}

// end closes the stage under way: with what it came to, if it came to an end.
func (p *progress) end(whole bool) {
	p.clear()
	if p.begun.IsZero() {
		return
	}
	took := p.now().Sub(p.begun)
	p.begun = time.Time{}
	if !whole || took < worthALine && p.terminal {
		return
	}
	text := "done"
	if took >= worthALine {
		text = fmt.Sprintf("done in %s", duration(took))
		if p.stage.Done > 0 {
			text += ", " + p.rate(took)
		}
	}
	_, _ = fmt.Fprintf(p.w, "%s: %s\n", cell(p.stage.Stage), text)
}

func (p *progress) draw() {
	s := p.stage
	if p.bar == nil {
		most := int64(-1) // a bar without an end
		if s.Total > 0 {
			most = int64(min(s.Total, 1<<62))
		}
		p.bar = progressbar.NewOptions64(most,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(cell(s.Stage)), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowIts(), progressbar.OptionSetItsString(cell(s.Unit)),
			progressbar.OptionShowBytes(s.Unit == "bytes"), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish())
	}
	if s.Total > 0 && p.bar.GetMax64() != int64(min(s.Total, 1<<62)) {
		p.bar.ChangeMax64(int64(min(s.Total, 1<<62)))
	}
	done := min(s.Done, 1<<62)
	if s.Total > 0 {
		done = min(done, s.Total)
	}
	if !p.bar.IsFinished() {
		_ = p.bar.Set64(int64(done))
	}
}

// clear takes the bar off the terminal, so that a line can stand there.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// standing says how far a stage is, how fast, and how long it still takes.
func (p *progress) standing(took time.Duration) string {
	s := p.stage
	if s.Done == 0 {
		return "begun " + duration(took) + " ago"
	}
	if s.Total == 0 || s.Done > s.Total {
		return fmt.Sprintf("%s, %s", p.amount(float64(s.Done)), p.rate(took))
	}
	share := float64(s.Done) / float64(s.Total)
	left := time.Duration(min(float64(took)*(1-share)/share, float64(1<<62)))
	return fmt.Sprintf("%.0f %%, %s, about %s left", 100*share, p.rate(took), duration(left))
}

func (p *progress) rate(took time.Duration) string {
	return p.amount(float64(p.stage.Done)/took.Seconds()) + "/s"
}

func (p *progress) amount(n float64) string {
	if p.stage.Unit == "bytes" {
		return formatSize(uint64(n))
	}
	prefix := ""
	for _, next := range []string{"k", "M", "G"} {
		if n < 1000 {
			break
		}
		n, prefix = n/1000, next
	}
	digits := 0
	if n < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f%s %s", digits, n, prefix, cell(p.stage.Unit))
}

// duration shows what people want to know of a time.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
