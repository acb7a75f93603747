package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func trainWatch() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Watch a job until it ends",
		Long: "Shows how far a job is until it ends, and then what came of it. An interrupt ends the watching only.\n" +
			"Ends with exit code 1 if the job has failed. With --json nothing is shown before the end, and then what\n" +
			"`hopmesh train show` shows.",
		Example:           "  hopmesh train watch j1",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return watchJob(cmd, &d, args[0], d.json) },
	}
	d.flags(cmd)
	return cmd
}

// watchJob shows a job until it ends; show prints it then, as JSON.
func watchJob(cmd *cobra.Command, d *daemon, id string, show bool) error {
	v := newView(cmd.ErrOrStderr(), d.json)
	j, err := ask(cmd, d, func(ctx context.Context, c *api.Client) (api.Job, error) { return c.WatchJob(ctx, id, v.tell) })
	v.clear()
	if cmd.Context().Err() != nil && j.ID == "" {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Job %s goes on: `hopmesh train watch %s` shows it again, `hopmesh train stop %s` stops it.\n", cell(id), cell(id), cell(id))
		return err
	}
	if err != nil {
		return err
	}
	if show {
		err = printJSON(cmd.OutOrStdout(), j)
	} else if !d.json {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), outcome(j))
	}
	if err == nil && j.State == "failed" {
		if d.json {
			return errSaid
		}
		return errors.New(cell(j.Error))
	}
	return err
}

// outcome says in a sentence what came of a job.
func outcome(j api.Job) string {
	verb := "is"
	if j.State == "failed" {
		verb = "has"
	}
	text := fmt.Sprintf("Job %s %s %s after epoch %d of %d", cell(j.ID), verb, cell(j.State), j.Epoch, j.EpochsTotal)
	if j.Best != nil {
		verb := "best in"
		if j.Best.ValAccuracy == nil {
			verb = "kept is"
		}
		text += fmt.Sprintf(": %s epoch %d%s%s", verb, j.Best.Epoch, ofModel(j), scores(j.Best, " and "))
	}
	if last := j.History[max(0, len(j.History)-100):]; len(last) > 0 {
		text += ", " + spent(last)
		if shared(j) {
			text += ", " + size(bytesSent(last)/uint64(len(last))) + " sent an epoch"
		}
	}
	return text + "."
}

// view shows on stderr how far a job is: a bar on a terminal, else a line now and
// then. What stderr does not take is lost.
type view struct {
	w        io.Writer
	terminal bool
	quiet    bool // --json: only notes
	now      func() time.Time

	told  time.Time
	bar   *progressbar.ProgressBar
	state api.JobSummary
	epoch *api.JobEpoch // the latest
	val   *float64      // the latest accuracy on validation
	here  api.JobProgress
}

func newView(w io.Writer, quiet bool) *view {
	p := newProgress(w, quiet)
	return &view{w: w, terminal: p.terminal, quiet: quiet, now: clock}
}

func (v *view) tell(e api.JobEvent) {
	switch {
	case e.Note != "":
		v.say(sentence(e.Note))
	case v.quiet:
	case e.State != nil:
		v.state = *e.State
		v.begin()
	case e.Progress != nil:
		v.here = *e.Progress
		v.show(false)
	case e.Epoch != nil:
		v.epoch = e.Epoch
		if e.Epoch.ValAccuracy != nil {
			v.val = e.Epoch.ValAccuracy
		}
		v.show(true)
	}
}

func (v *view) say(text string) {
	v.clear()
	_, _ = fmt.Fprintln(v.w, text)
}

// begin tells of a state that is not an end.
func (v *view) begin() {
	s := v.state
	switch s.State {
	case "queued":
		v.say(fmt.Sprintf("Job %s is queued.", cell(s.ID)))
	case "running":
		where := ""
		if len(s.Nodes) > 0 {
			where = " on " + cell(listed(s.Nodes))
		}
		v.say(fmt.Sprintf("Job %s trains %s on %s%s, %d epochs.", cell(s.ID), cell(modelsOf(s.Model, s.Models)), cell(s.Dataset), where, s.EpochsTotal))
	}
}

// show draws the bar, or writes a line if the last was some time ago: of whole epochs
// only, as long as there are some. Where nodes share the work, whole epochs have their
// lines above the bar, too: it has no room for where the time goes.
func (v *view) show(whole bool) {
	total := v.state.EpochsTotal
	done := v.state.Epoch
	if v.epoch != nil {
		done = v.epoch.Epoch
	}
	split := ""
	if whole {
		split = v.split()
	}
	if v.due(whole) && (!v.terminal || split != "") {
		v.told = v.now()
		if v.bar != nil {
			_ = v.bar.Clear() // it is drawn again, and remembers how fast it was
		}
		_, _ = fmt.Fprintln(v.w, v.standing(done, total)+split)
	}
	if v.terminal {
		v.draw(done, total)
	}
}

// due says whether it is time for a line.
func (v *view) due(whole bool) bool {
	now := v.now()
	if v.told.IsZero() {
		v.told = now
	}
	return now.Sub(v.told) >= betweenLines && (whole || v.epoch == nil || v.epoch.Seconds >= betweenLines.Seconds())
}

func (v *view) standing(done, total int) string {
	text := fmt.Sprintf("epoch %d of %d", done, total)
	if v.here.Epoch > done && v.here.Steps > 1 {
		text += fmt.Sprintf(", step %d of %d of the next", v.here.Step, v.here.Steps)
	}
	if v.epoch != nil {
		if v.state.Models > 0 {
			text += fmt.Sprintf(", model %d ahead", v.epoch.Model)
		}
		text += fmt.Sprintf(": loss %.4f", v.epoch.Loss)
		if v.val != nil {
			text += ", validation " + percent(*v.val)
		}
		text += ", " + brief(v.epoch.Seconds) + " an epoch"
	}
	return text
}

// split says where the time of the latest epoch went, and what was sent, if nodes
// share the work.
func (v *view) split() string {
	if len(v.state.Nodes) < 2 && !remote(*v.epoch) {
		return ""
	}
	text := ""
	if parts := phases(v.epoch.Phases); parts != "" {
		text = " (" + parts + ")"
	}
	return text + ", " + size(total(v.epoch.Bytes)) + " sent"
}

// draw counts in thousandths of an epoch, so that long ones move too.
func (v *view) draw(done, total int) {
	const fine = 1000
	text := v.standing(done, total)
	if v.bar != nil {
		v.bar.Describe(text)
	} else {
		v.bar = progressbar.NewOptions64(int64(total)*fine,
			progressbar.OptionSetWriter(v.w), progressbar.OptionSetDescription(text), progressbar.OptionSetWidth(24), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	at := int64(done) * fine
	if h := v.here; h.Epoch > done && h.Steps > 0 {
		at += int64(min(h.Step, h.Steps)) * fine / int64(h.Steps)
	}
	if at = min(at, int64(total)*fine); !v.bar.IsFinished() {
		_ = v.bar.Set64(at)
	}
}

// clear takes the bar off the terminal, so that a line can stand there.
func (v *view) clear() {
	if v.bar != nil {
		_ = v.bar.Clear()
		v.bar = nil
	}
}
